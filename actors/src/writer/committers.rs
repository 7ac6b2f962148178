//! The threads that write: each database's writer lives on one of them, and may block it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Arbiter, ArbiterHandle};

/// A fixed number of threads.
pub(crate) struct Committers {
    threads: Vec<ArbiterHandle>,
    next: AtomicUsize,
}

impl Committers {
    /// Starts the threads; they end with the actors' system, on which this is called.
    ///
    /// # Errors
    /// [`io::Error`] when the system has no more of them, or no open files for them.
    pub fn start(threads: usize) -> io::Result<Committers> {
        let threads = (0..threads).map(|_| Ok(Arbiter::try_new()?.handle())).collect::<io::Result<_>>()?;
        Ok(Committers { threads, next: AtomicUsize::new(0) })
    }

    /// The thread for the next writer.
    pub fn next(&self) -> &ArbiterHandle {
        &self.threads[self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len()]
    }
}
