//! The log: what `tracing` gathers, to stderr, as text or JSON.

use std::io::IsTerminal;

use crate::config::{Config, ConfigError, LogFormat};

/// Why the log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not one.
    #[error(transparent)]
    Filter(#[from] ConfigError),
    /// The process has a log already.
    #[error("the log was started before")]
    Started,
}

/// Starts the process's log.
///
/// # Errors
/// When the filter is wrong or a log runs already.
pub fn start(config: &Config) -> Result<(), LogError> {
    let log = tracing_subscriber::fmt()
        .with_env_filter(config.log_filter()?)
        .with_writer(std::io::stderr)
        // It would tell stderr that nothing can be written there, and panic when it cannot.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match config.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|_| LogError::Started)
}
