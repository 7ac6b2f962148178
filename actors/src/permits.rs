//! A bound on how many of something there are at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::error::Error;

/// How many feeds are open, and how many may be.
pub(crate) struct FeedPermits {
    open: Arc<Open>,
    feeds_max: usize,
}

#[derive(Default)]
struct Open {
    feeds: AtomicUsize,
    /// Told when the last one is given back.
    none_left: Notify,
}

/// The right to one open feed, given back when dropped.
pub(crate) struct FeedPermit {
    open: Arc<Open>,
}

impl FeedPermits {
    pub fn new(feeds_max: usize) -> FeedPermits {
        FeedPermits { open: Arc::default(), feeds_max }
    }

    /// Takes one more.
    pub fn take(&self) -> Result<FeedPermit, Error> {
        let feeds_max = self.feeds_max;
        let more = |open: usize| (open < feeds_max).then_some(open + 1);
        match self.open.feeds.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(FeedPermit { open: Arc::clone(&self.open) }),
            Err(_) => Err(Error::TooManyFeeds { feeds_max }),
        }
    }

    /// Waits until none is taken.
    pub async fn none_left(&self) {
        loop {
            let told = self.open.none_left.notified();
            if self.open.feeds.load(Ordering::Acquire) == 0 {
                return;
            }
            told.await;
        }
    }
}

impl Drop for FeedPermit {
    fn drop(&mut self) {
        if self.open.feeds.fetch_sub(1, Ordering::Release) == 1 {
            self.open.none_left.notify_waiters();
        }
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

    #[tokio::test]
    async fn who_waits_for_the_last_one_is_told() {
        let permits = Arc::new(FeedPermits::new(2));
        let (first, second) = (permits.take().unwrap(), permits.take().unwrap());
        let waiting = {
            let permits = Arc::clone(&permits);
            tokio::spawn(async move { permits.none_left().await })
        };
        drop(first);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "one is taken still");
        drop(second);
        waiting.await.unwrap();
    }
}
