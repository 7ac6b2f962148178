//! What a store measures of itself, for whoever watches it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A store's figures of now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreGauge {
    /// Bytes of the pages that tables need.
    pub used_bytes: usize,
    /// Bytes of the pages that were ever in use: those that are not needed can be used again.
    pub end_bytes: usize,
    /// The address space reserved, in bytes.
    pub map_bytes: usize,
    /// Bytes of one page.
    pub page_bytes: usize,
    /// Commits that the log has synced since the store was opened.
    pub log_syncs: Timed,
    /// Commits that LMDB has synced since then.
    pub lmdb_syncs: Timed,
}

/// How often something was done, and how long it took altogether.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timed {
    /// How often.
    pub count: u64,
    /// How long.
    pub took: Duration,
}

/// Counts what takes its time.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Stopwatch {
    /// Does it, and counts it if it succeeds.
    pub fn time<T, E>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let began = Instant::now();
        let done = act()?;
        self.nanos.fetch_add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(done)
    }

    pub fn read(&self) -> Timed {
        let took = Duration::from_nanos(self.nanos.load(Ordering::Relaxed));
        Timed { count: self.count.load(Ordering::Relaxed), took }
    }
}
