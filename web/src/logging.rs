//! The log: what `tracing` gathers, to stderr, as text or JSON.
//!
//! A thread of its own writes it, so that nobody waits for who reads it: a pipe whose reader stalls is full soon.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write, stderr};
use std::panic::{self, PanicHookInfo};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::{Config, ConfigError, LogFormat};

/// Lines that may wait to be written; those that come while so many do are lost, and counted.
const LINES_MAX: usize = 4096;

/// How often it is said in the log how many lines it has lost.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// How long the end of the process waits for lines to be written, and how often it looks whether they are.
const END_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Where lines go once there is a log.
static LINES: OnceLock<SyncSender<Vec<u8>>> = OnceLock::new();
/// How many of them wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// How many were lost.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// Why the log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not one.
    #[error(transparent)]
    Filter(#[from] ConfigError),
    /// The process has a log already.
    #[error("the log was started before")]
    Started,
    /// There is no thread to write it.
    #[error("the log has no thread: {0}")]
    Thread(#[source] io::Error),
}

/// Starts the process's log. Panics are told there, too.
///
/// # Errors
/// When the filter is wrong, a log runs already, or the system gives no thread.
pub fn start(config: &Config) -> Result<(), LogError> {
    let filter = config.log_filter()?;
    let (sender, lines) = sync_channel(LINES_MAX);
    thread::Builder::new().name("stderr".to_owned()).spawn(|| write_all(lines)).map_err(LogError::Thread)?;
    LINES.set(sender).map_err(|_| LogError::Started)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Line)
        // It would tell stderr that nothing can be written there, and panic when it cannot.
        .log_internal_errors(false)
        .with_ansi(stderr().is_terminal());
    let started = match config.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|_| LogError::Started)?;
    panic::set_hook(Box::new(tell_panic));
    Ok(())
}

/// Says a line on stderr: behind those of the log, where there is one.
pub fn say(line: &str) {
    let line = format!("{line}\n").into_bytes();
    match LINES.get() {
        Some(lines) => queue(lines, line),
        None => drop(stderr().write_all(&line)),
    }
}

/// Waits until everything is written that was said, for as long as the end of the process may take.
pub fn finish() {
    let began = Instant::now();
    while WAITING.load(Ordering::Acquire) > 0 && began.elapsed() < END_MAX {
        thread::sleep(LOOK_EVERY);
    }
}

/// How many lines were lost, as who reads them was too slow or has gone.
pub fn lines_lost() -> usize {
    LOST.load(Ordering::Relaxed)
}

/// Says in the log how many of its lines were lost so far, whenever that has grown: be it by what said so before.
pub async fn tell_what_is_lost() {
    let (mut ticks, mut told) = (tokio::time::interval(TOLD_EVERY), 0);
    loop {
        ticks.tick().await;
        let lost = lines_lost();
        if lost > told {
            tracing::warn!(lines = lost, "lines of the log were lost so far: who reads it is too slow");
            told = lost;
        }
    }
}

/// A line of the log, which comes in one piece.
struct Line;

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(lines) = LINES.get() {
            queue(lines, line.to_vec());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn queue(lines: &SyncSender<Vec<u8>>, line: Vec<u8>) {
    WAITING.fetch_add(1, Ordering::Release);
    if lines.try_send(line).is_err() {
        over(false);
    }
}

/// A line waits no more: it was written, or is lost.
fn over(is_written: bool) {
    if !is_written {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
    WAITING.fetch_sub(1, Ordering::Release);
}

fn write_all(lines: Receiver<Vec<u8>>) {
    for line in lines {
        over(stderr().write_all(&line).is_ok());
    }
}

/// What the system's own way of telling would write to stderr at once, on the thread that panics.
fn tell_panic(panic: &PanicHookInfo<'_>) {
    let (thread, backtrace) = (thread::current(), Backtrace::capture());
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let place = panic.location().map(ToString::to_string);
    let why = panic.payload_as_str().unwrap_or("no text");
    tracing::error!(thread = thread.name(), place, why, backtrace, "a thread panicked");
}
