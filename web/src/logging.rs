//! The log: what `tracing` gathers, to stderr, as text or JSON.
//!
//! A thread of its own writes it, so that nobody waits for who reads it: a pipe whose reader stalls is full soon.

use std::io::{IsTerminal, stderr};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};

use crate::config::{Config, ConfigError, LogFormat};

/// Lines that may wait to be written; those that come while so many do are lost, and counted.
const LINES_MAX: usize = 4096;

/// How often it is said in the log what it has lost.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// How long the end of the process waits for lines to be written.
const END_MAX: Duration = Duration::from_secs(2);

/// How many lines of this process's log were lost.
static LOST: OnceLock<ErrorCounter> = OnceLock::new();

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

/// The process's log, which is written until this is dropped.
#[must_use]
pub struct Log(Option<WorkerGuard>);

/// Starts the process's log.
///
/// # Errors
/// When the filter is wrong or a log runs already.
pub fn start(config: &Config) -> Result<Log, LogError> {
    let filter = config.log_filter()?;
    let (lines, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(LINES_MAX).thread_name("stderr").finish(stderr());
    let lost = lines.error_counter();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines)
        // It would tell stderr that nothing can be written there, and panic when it cannot.
        .log_internal_errors(false)
        .with_ansi(stderr().is_terminal());
    let started = match config.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|_| LogError::Started)?;
    let _ = LOST.set(lost);
    Ok(Log(Some(guard)))
}

/// How many lines of this process's log were lost: who reads it was too slow.
pub fn lines_lost() -> usize {
    LOST.get().map_or(0, ErrorCounter::dropped_lines)
}

/// Says in the log, now and then, how many of its lines were lost before.
pub async fn tell_what_is_lost() {
    let (mut ticks, mut told) = (tokio::time::interval(TOLD_EVERY), 0);
    loop {
        ticks.tick().await;
        let lost = lines_lost();
        if lost > told {
            tracing::warn!(lines = lost - told, "lines of the log were lost: who reads it was too slow");
            told = lost;
        }
    }
}

impl Drop for Log {
    /// Has what waits written; on a thread of its own, as stderr and stdout, where the guard says what it could not do,
    /// may both be full pipes.
    fn drop(&mut self) {
        let (guard, (ended, end)) = (self.0.take(), mpsc::channel());
        let end_log = move || {
            drop(guard);
            let _ = ended.send(());
        };
        if thread::Builder::new().name("stderr".to_owned()).spawn(end_log).is_ok() {
            let _ = end.recv_timeout(END_MAX);
        }
    }
}
