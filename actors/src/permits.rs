//! A bound on how many of something there are at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

/// How many feeds are open, and how many may be.
pub(crate) struct FeedPermits {
    open: Arc<AtomicUsize>,
    feeds_max: usize,
}

/// The right to one open feed, given back when dropped.
pub(crate) struct FeedPermit {
    open: Arc<AtomicUsize>,
}

impl FeedPermits {
    pub fn new(feeds_max: usize) -> FeedPermits {
        FeedPermits { open: Arc::default(), feeds_max }
    }

    /// Takes one more.
    pub fn take(&self) -> Result<FeedPermit, Error> {
        let feeds_max = self.feeds_max;
        let more = |open: usize| (open < feeds_max).then_some(open + 1);
        match self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(FeedPermit { open: Arc::clone(&self.open) }),
            Err(_) => Err(Error::TooManyFeeds { feeds_max }),
        }
    }
}

impl Drop for FeedPermit {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_end_at_the_bound_and_come_back() {
        let permits = FeedPermits::new(2);
        let first = permits.take().unwrap();
        let _second = permits.take().unwrap();
        assert!(matches!(permits.take(), Err(Error::TooManyFeeds { feeds_max: 2 })));
        drop(first);
        assert!(permits.take().is_ok());
    }
}
