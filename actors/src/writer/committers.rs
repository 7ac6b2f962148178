//! The threads that write: each database's writer lives on one of them, and may block it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Arbiter, ArbiterHandle};

use super::rest::call_at_rest;

/// A fixed number of threads.
pub(crate) struct Committers {
    threads: Vec<ArbiterHandle>,
    next: AtomicUsize,
}

impl Committers {
    /// Starts the threads; they end with the actors' system, on which this is called. Each calls this when it
    /// [rests](super::rest).
    ///
    /// # Errors
    /// [`io::Error`] when the system has no more of them, or no open files for them.
    pub fn start(threads: usize, at_rest: fn()) -> io::Result<Committers> {
        let threads: Vec<_> = (0..threads).map(|_| Ok(Arbiter::try_new()?.handle())).collect::<io::Result<_>>()?;
        for thread in &threads {
            thread.spawn_fn(have_short_slices);
            thread.spawn(call_at_rest(at_rest));
        }
        Ok(Committers { threads, next: AtomicUsize::new(0) })
    }

    /// The thread for the next writer.
    pub fn next(&self) -> &ArbiterHandle {
        &self.threads[self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len()]
    }
}

/// Has this thread have its turns soon; where it cannot, it has them as others do.
fn have_short_slices() {
    #[cfg(target_os = "linux")]
    if let Err(error) = super::short_slices::ask() {
        tracing::debug!(%error, "a thread that commits has slices as others have");
    }
}
