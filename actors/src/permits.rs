//! A bound on how many feeds there are at once, and which they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::drain::share;
use crate::error::Error;
use crate::known::{FeedAbout, FeedRecord, FeedState, KnownFeed, KnownFeeds};

/// The longest stretch of time over which they come back, however long they are to wait at least.
const COMEBACK_MAX: Duration = Duration::from_secs(60 * 60);

/// So many readers may come back in a second when all their connections have broken.
const COMEBACKS_A_SECOND: f64 = 1000.0;

/// All feeds together name so many documents at most: each takes some hundred bytes.
const LISTED_IDS_MAX: usize = 2_000_000;

/// How many feeds are open, and how many may be.
pub(crate) struct FeedPermits {
    open: Arc<Open>,
}

struct Open {
    feeds_max: usize,
    feeds: AtomicUsize,
    /// How many documents they name.
    listed_ids: AtomicUsize,
    /// Told when the last one is given back.
    none_left: Notify,
    known: KnownFeeds,
}

/// The right to one open feed, given back when dropped.
pub(crate) struct FeedPermit {
    open: Arc<Open>,
    /// How many documents it names.
    listed_ids: usize,
    /// While the feed reads for itself.
    known: Option<Arc<KnownFeed>>,
}

impl FeedPermits {
    pub fn new(feeds_max: usize) -> FeedPermits {
        let (feeds, listed_ids, none_left, known) = Default::default();
        FeedPermits { open: Arc::new(Open { feeds_max, feeds, listed_ids, none_left, known }) }
    }

    /// Takes one more.
    pub fn take(&self) -> Result<FeedPermit, Error> {
        if let Some(retry) = self.known().closed_for() {
            return Err(Error::Draining { retry });
        }
        let feeds_max = self.open.feeds_max;
        match take_more(&self.open.feeds, 1, feeds_max) {
            true => Ok(FeedPermit { open: Arc::clone(&self.open), listed_ids: 0, known: None }),
            false => Err(Error::TooManyFeeds { feeds_max }),
        }
    }

    /// Takes one more, for a feed that names so many documents.
    pub fn take_listing(&self, ids: usize) -> Result<FeedPermit, Error> {
        let mut permit = self.take()?;
        if !take_more(&self.open.listed_ids, ids, LISTED_IDS_MAX) {
            return Err(Error::TooManyListedIds { ids_max: LISTED_IDS_MAX });
        }
        permit.listed_ids = ids;
        Ok(permit)
    }

    /// Whether one more could be taken.
    pub fn check_room(&self) -> Result<(), Error> {
        self.take().map(drop)
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.open.feeds.load(Ordering::Relaxed)
    }

    /// The feeds that read for themselves.
    pub fn known(&self) -> &KnownFeeds {
        &self.open.known
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

/// Counts so many more, unless they are too many then.
fn take_more(taken: &AtomicUsize, more: usize, most: usize) -> bool {
    let add = |taken: usize| taken.checked_add(more).filter(|all| *all <= most);
    taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

impl FeedPermit {
    /// How long its reader is to wait, `least` at least, before it comes back when its connection breaks: everyone has
    /// their share of a time over which all who are here could come back, at [`COMEBACKS_A_SECOND`]. With little room
    /// left it is four times as long.
    pub fn comeback(&self, least: Duration) -> Duration {
        let Some(known) = &self.known else { return least };
        let open = self.open.feeds.load(Ordering::Relaxed);
        let is_tight = open > self.open.feeds_max / 10 * 9;
        let spread = Duration::from_secs_f64(open as f64 / COMEBACKS_A_SECOND) * if is_tight { 4 } else { 1 };
        least.saturating_add(spread.max(least.min(COMEBACK_MAX)).mul_f64(share(known.record().id)))
    }

    /// The same of a feed that is known from now on.
    pub fn known_as(mut self, about: FeedAbout) -> FeedPermit {
        self.known = Some(self.open.known.open(about));
        self
    }

    /// Has a live feed known again that was forgotten, and was told last that it is in this state.
    pub fn know_again(&mut self, about: Arc<FeedAbout>, record: FeedRecord, state: FeedState) {
        self.known = Some(self.open.known.reopen(about, record, state));
    }

    /// The feed, while it is known.
    pub fn known(&self) -> Option<&Arc<KnownFeed>> {
        self.known.as_ref()
    }

    /// Forgets the feed, which does not read for itself any more; what was known of it.
    pub fn forget(&mut self) -> Option<Arc<KnownFeed>> {
        let known = self.known.take()?;
        self.open.known.forget(known.record().id);
        Some(known)
    }
}

impl Drop for FeedPermit {
    fn drop(&mut self) {
        self.forget();
        self.open.listed_ids.fetch_sub(self.listed_ids, Ordering::Relaxed);
        if self.open.feeds.fetch_sub(1, Ordering::Release) == 1 {
            self.open.none_left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use seqtide_storage::model::sequence::SeqFormat;

    use super::*;
    use crate::feed::kind::FeedKind;

    #[test]
    fn permits_end_at_the_bound_and_come_back() {
        let permits = FeedPermits::new(2);
        let first = permits.take().unwrap();
        let _second = permits.take().unwrap();
        assert!(matches!(permits.take(), Err(Error::TooManyFeeds { feeds_max: 2 })));
        drop(first);
        assert!(permits.take().is_ok());
    }

    #[test]
    fn documents_that_feeds_name_are_bounded_for_all_of_them() {
        let permits = FeedPermits::new(100);
        let most = permits.take_listing(LISTED_IDS_MAX - 1).unwrap();
        let _one = permits.take_listing(1).unwrap();
        let refused = permits.take_listing(1).map(drop);
        assert!(matches!(refused, Err(Error::TooManyListedIds { ids_max: LISTED_IDS_MAX })), "{refused:?}");
        let _none = permits.take_listing(0).unwrap();
        drop(most);
        assert!(permits.take_listing(LISTED_IDS_MAX - 1).is_ok());
        assert_eq!(permits.taken(), 2, "who is refused has taken none");
    }

    #[test]
    fn readers_come_back_over_the_longer_a_time_the_more_there_are() {
        let least = Duration::from_secs(1);
        let about = || FeedAbout { kind: FeedKind::Sse, database: None, filter: None, seq_format: SeqFormat::Integer };
        let latest = |open: usize, feeds_max: usize| {
            let permits = FeedPermits::new(feeds_max);
            let taken: Vec<_> = (0..open).map(|_| permits.take().unwrap().known_as(about())).collect();
            let comebacks: Vec<_> = taken.iter().map(|permit| permit.comeback(least)).collect();
            assert!(comebacks.iter().all(|comeback| *comeback >= least));
            comebacks.into_iter().max().unwrap().as_secs_f64()
        };
        for (open, feeds_max, seconds) in [(100, 20_000, 2.0), (5000, 20_000, 6.0), (5000, 5000, 21.0)] {
            let latest = latest(open, feeds_max);
            assert!(latest <= seconds && latest > seconds * 0.95, "{open} of {feeds_max}: {latest}");
        }
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
