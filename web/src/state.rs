//! What every request can reach.

use std::sync::Arc;
use std::time::Duration;

use seqtide::storage::Write;
use seqtide::storage::json::ScanLimits;
use seqtide::{Database, Engine, WriteOptions, Written};

use actix_web::http::StatusCode;
use tokio_util::sync::CancellationToken;

use crate::bodies::Bodies;
use crate::config::{Config, Limits};
use crate::dashboard::Figures;
use crate::error::ApiError;
use crate::known_feeds;
use crate::subscriptions::connections::Connections;
use crate::takeover::roll::Workers;
use crate::telemetry::Metrics;

/// The shortest member and its comma: `"":0,`.
const MEMBER_BYTES_MIN: usize = 5;

/// Members beside them whose bytes do not count: special ones, and those within.
const SPECIAL_MEMBERS_MAX: usize = 1_000;

/// What every request can reach.
pub struct State {
    /// The engine.
    pub engine: Engine,
    /// The configuration.
    pub config: Config,
    /// What the bodies of requests take.
    pub bodies: Bodies,
    /// The metrics, ready to be printed.
    pub metrics: Metrics,
    /// What they were in the last minutes.
    pub figures: Arc<Figures>,
    /// Connections with many subscriptions.
    pub connections: Arc<Connections>,
    /// The workers, each with the feeds whose connections have left the framework.
    pub workers: Workers,
    /// Cancelled when the server ends.
    pub ending: CancellationToken,
}

impl State {
    /// A database by its name.
    ///
    /// # Errors
    /// 400 for a bad name, 404 when there is none.
    pub fn database(&self, name: &str) -> Result<Database, ApiError> {
        Ok(self.engine.database(name)?)
    }

    /// All metrics as Prometheus reads them, those that have to be asked for included.
    pub async fn metrics_text(&self) -> String {
        known_feeds::measure_lag(&self.engine, &self.workers).await;
        self.metrics.text(&self.engine, &self.bodies)
    }

    /// What a document may be. One with more members has more bytes than it may have.
    pub fn scan_limits(&self) -> ScanLimits {
        let Limits { nesting_max, document_bytes_max, .. } = self.config.limits;
        let members_max = document_bytes_max / MEMBER_BYTES_MIN + SPECIAL_MEMBERS_MAX;
        ScanLimits { nesting_max, members_max, ..ScanLimits::default() }
    }

    /// Writes in one commit, waiting no longer than the configuration allows.
    ///
    /// # Errors
    /// 503 when the queue is full or the wait too long, 507 when the disk is full, 422 for a key of another request.
    pub async fn write_with(
        &self,
        database: &Database,
        writes: Vec<Write>,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        let longest: Duration = self.config.limits.write_timeout;
        // Boxed: every future on the way down would have room for it, and would be moved with it.
        match tokio::time::timeout(longest, Box::pin(database.write_with(writes, options))).await {
            Ok(written) => Ok(written?),
            Err(_elapsed) => Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "timeout",
                "The write took too long. It may still be made: read the document before trying again, or send it \
                 again with the Idempotency-Key it had.",
            )),
        }
    }
}
