//! The signals that ask the program to end.

use std::fs;
use std::io;
use std::task::Poll;

use futures_util::{Stream, stream};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Gives every SIGTERM, SIGINT and SIGHUP; no SIGHUP where that was ignored when the program was started, as `nohup`
/// has it. Asked once, and within a runtime.
///
/// # Errors
/// When the system refuses it.
pub fn terminated() -> io::Result<impl Stream<Item = ()> + Unpin> {
    let mut kinds = vec![SignalKind::terminate(), SignalKind::interrupt()];
    if !is_ignored(Signal::HUP) {
        kinds.push(SignalKind::hangup());
    }
    let mut signals = kinds.into_iter().map(signal).collect::<io::Result<Vec<_>>>()?;
    Ok(stream::poll_fn(move |context| match signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
        true => Poll::Ready(Some(())),
        false => Poll::Pending,
    }))
}

/// Whether this process ignores a signal, as `/proc` tells it; where there is none, it does not.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    ignored >> (signal.as_raw() - 1) & 1 == 1
}
