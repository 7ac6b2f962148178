//! An end in stages: feeds end one after the other over some time, and their readers are told when to come back.

use std::time::Duration;

use tokio::time::Instant;

use crate::known::FeedId;

/// No drain takes longer.
const OVER_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A stretch of time over which feeds end, and behind which their readers come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    begun: Instant,
    over: Duration,
}

impl Drain {
    /// How long whoever comes back waits beyond the end, for the server to be there again: at a proxy a browser that
    /// meets none gives up.
    pub const STARTS_WITHIN: Duration = Duration::from_secs(2);

    /// From now on, for so long.
    pub fn now(over: Duration) -> Drain {
        Drain { begun: Instant::now(), over: over.min(OVER_MAX) }
    }

    /// When the last feed ends.
    pub fn until(&self) -> Instant {
        self.begun + self.over
    }

    /// When this feed ends. Each has its own moment, spread evenly over the time.
    pub fn ends_at(&self, id: FeedId) -> Instant {
        self.begun + self.over.mul_f64(share(id))
    }

    /// How long the reader of a feed that ends then is to wait, once it has ended, before it comes back: until the last
    /// feed has ended, for nobody is let in before, and until the server is there again; then its share of as long
    /// again, so that not all come at once.
    pub fn retry(&self, id: FeedId, ends_at: Instant) -> Duration {
        let left = self.until().saturating_duration_since(ends_at);
        left + Drain::STARTS_WITHIN + self.over.mul_f64(share(!id))
    }

    /// How long a newcomer is to wait before it comes again: as long as the reader of a feed that ends now.
    pub fn closed_for(&self, id: FeedId) -> Duration {
        self.retry(!id, Instant::now())
    }
}

/// A number from 0 up to 1, spread evenly over ids that follow each other. Source: Fibonacci hashing, Knuth, TAOCP 6.4.
pub(crate) fn share(id: FeedId) -> f64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let spread = id.wrapping_mul(GOLDEN) >> 32;
    spread as f64 / (1_u64 << 32) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_end_evenly_over_the_time_and_readers_come_back_evenly_behind_it() {
        const FEEDS: u64 = 1000;
        let over = Duration::from_secs(10);
        let drain = Drain::now(over);
        let (mut ends, mut returns) = ([0; 10], [0; 10]);
        for id in 77_777..77_777 + FEEDS {
            let end = drain.ends_at(id);
            assert!(end >= drain.begun && end < drain.until());
            ends[(end - drain.begun).as_secs() as usize] += 1;
            let back = end + drain.retry(id, end);
            let first = drain.until() + Drain::STARTS_WITHIN;
            assert!(back >= first && back <= first + over);
            returns[(back - first).as_secs().min(9) as usize] += 1;
        }
        for tenth in ends.iter().chain(&returns) {
            assert!((80..=120).contains(tenth), "{ends:?} {returns:?}");
        }
    }
}
