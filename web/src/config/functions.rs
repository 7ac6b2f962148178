//! The section `[functions]`: what functions in design documents may take.

use std::time::Duration;

use seqtide::functions::FunctionsOptions;
use serde::{Deserialize, Serialize};

use super::check::{at_least, at_most, some_time};
use super::error::ConfigError;
use super::millis;

/// Bounds of the worker processes that run filter and validation functions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Functions {
    /// Worker processes at once.
    pub workers_max: usize,
    /// Longest run of one batch of documents; `batch_timeout_ms` in the file.
    #[serde(rename = "batch_timeout_ms", with = "millis")]
    pub batch_timeout: Duration,
    /// Memory of one design document's functions, in bytes.
    pub memory_bytes_max: usize,
}

impl Functions {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        at_least("functions.workers_max", self.workers_max, 2)?;
        at_most("functions.workers_max", self.workers_max, FunctionsOptions::WORKERS_MAX)?;
        some_time("functions.batch_timeout_ms", self.batch_timeout)?;
        at_least("functions.memory_bytes_max", self.memory_bytes_max, 1 << 20)
    }
}
