//! What every request can reach.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use seqtide::storage::json::ScanLimits;
use seqtide::storage::{Outcome, Write};
use seqtide::{Database, Engine, Written};

use actix_web::http::StatusCode;

use crate::config::Config;
use crate::error::ApiError;

/// What every request can reach.
pub struct State {
    /// The engine.
    pub engine: Engine,
    /// The configuration.
    pub config: Config,
    /// The metrics, ready to be printed.
    pub metrics: PrometheusHandle,
}

impl State {
    /// A database by its name.
    ///
    /// # Errors
    /// 400 for a bad name, 404 when there is none.
    pub fn database(&self, name: &str) -> Result<Database, ApiError> {
        Ok(self.engine.database(name)?)
    }

    /// What a document may be.
    pub fn scan_limits(&self) -> ScanLimits {
        ScanLimits { nesting_max: self.config.limits.nesting_max }
    }

    /// Writes in one commit, waiting no longer than the configuration allows.
    ///
    /// # Errors
    /// 503 when the queue is full or the wait too long, 507 when the disk is full.
    pub async fn write(&self, database: &Database, writes: Vec<Write>) -> Result<Written, ApiError> {
        let longest: Duration = self.config.limits.write_timeout;
        match tokio::time::timeout(longest, database.write(writes)).await {
            Ok(written) => Ok(written?),
            Err(_elapsed) => Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "timeout",
                "The write took too long. It may still be made: read the document before trying again.",
            )),
        }
    }

    /// Writes one thing; its outcome, and the request's sequence.
    ///
    /// # Errors
    /// As [`State::write`].
    pub async fn write_one(&self, database: &Database, write: Write) -> Result<(Outcome, Written), ApiError> {
        let mut written = self.write(database, vec![write]).await?;
        let outcome = written.outcomes.pop().unwrap_or(Outcome::Done);
        Ok((outcome, written))
    }
}
