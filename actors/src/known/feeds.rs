//! The feeds that read for themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use seqtide_storage::now_secs;

use super::{FeedAbout, FeedId, FeedInfo, FeedRecord, FeedState, KnownFeed, Order};
use crate::drain::Drain;
use crate::end_reason::EndReason;

/// Ids begin at the second of the start, with room for so many feeds a second: they stay exact in a JavaScript number.
const IDS_A_SECOND: u64 = 1 << 20;

/// The feeds that are open and read for themselves, by their ids.
pub(crate) struct KnownFeeds {
    next_id: AtomicU64,
    feeds: Mutex<Feeds>,
}

#[derive(Default)]
struct Feeds {
    by_id: BTreeMap<FeedId, Arc<KnownFeed>>,
    /// What all of them were told, and those to come are.
    drain: Option<Drain>,
}

impl Default for KnownFeeds {
    fn default() -> KnownFeeds {
        KnownFeeds { next_id: AtomicU64::new(now_secs() * IDS_A_SECOND), feeds: Mutex::default() }
    }
}

impl KnownFeeds {
    /// Takes note of a feed that is opened.
    pub fn open(&self, about: FeedAbout) -> Arc<KnownFeed> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let record = FeedRecord { id, opened_secs: now_secs(), rows: 0, bytes: 0 };
        self.add(KnownFeed::new(Arc::new(about), record, FeedState::CatchingUp))
    }

    /// Takes note of a live feed that reads for itself again, and was told last that it is in this state.
    pub fn reopen(&self, about: Arc<FeedAbout>, record: FeedRecord, state: FeedState) -> Arc<KnownFeed> {
        self.add(KnownFeed::new(about, record, state))
    }

    fn add(&self, known: KnownFeed) -> Arc<KnownFeed> {
        let known = Arc::new(known);
        let mut feeds = self.feeds.lock();
        if let Some(drain) = feeds.drain {
            known.tell(Order::Drain(drain));
        }
        feeds.by_id.insert(known.record().id, Arc::clone(&known));
        known
    }

    /// Forgets a feed that is closed, or does not read for itself any more.
    pub fn forget(&self, id: FeedId) {
        self.feeds.lock().by_id.remove(&id);
    }

    /// All of them, in the order in which they were opened.
    pub fn list(&self) -> Vec<FeedInfo> {
        self.feeds.lock().by_id.values().map(|known| known.info()).collect()
    }

    /// Ends one; `false` where it is none of these.
    pub fn end(&self, id: FeedId, reason: EndReason) -> bool {
        // Told before it can be forgotten: who forgets it asks what it was told.
        let feeds = self.feeds.lock();
        feeds.by_id.get(&id).inspect(|known| known.tell(Order::End(reason))).is_some()
    }

    /// Tells all, and those to come, to end in their turn.
    pub fn drain(&self, drain: Drain) {
        let mut feeds = self.feeds.lock();
        feeds.drain = Some(drain);
        feeds.by_id.values().for_each(|known| known.tell(Order::Drain(drain)));
    }

    /// How long who comes is to wait before coming again, because they were told to.
    pub fn closed_for(&self) -> Option<Duration> {
        let drain = self.feeds.lock().drain?;
        Some(drain.closed_for(self.next_id.fetch_add(1, Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use seqtide_storage::model::sequence::{SeqFormat, Sequence};

    use super::*;
    use crate::feed::kind::FeedKind;

    fn about() -> FeedAbout {
        FeedAbout { kind: FeedKind::Sse, database: None, filter: None, seq_format: SeqFormat::Integer }
    }

    #[test]
    fn a_feed_is_known_until_it_is_forgotten_and_its_record_goes_with_it() {
        let feeds = KnownFeeds::default();
        let (first, second) = (feeds.open(about()), feeds.open(about()));
        first.note_given(3, Sequence::new(0, 7));
        first.sent(100);
        let list = feeds.list();
        assert_eq!(list.len(), 2);
        assert!(list[0].record.id < list[1].record.id && list[1].record.id < 1 << 53);
        assert_eq!((list[0].record.rows, list[0].record.bytes), (3, 100));
        assert_eq!((list[0].position, list[0].state), (Sequence::new(0, 7), FeedState::CatchingUp));
        feeds.forget(first.record().id);
        feeds.forget(second.record().id);
        assert!(feeds.list().is_empty());
        feeds.reopen(first.about(), first.record(), FeedState::Live);
        assert_eq!(feeds.list()[0].record, list[0].record);
    }

    #[test]
    fn an_end_is_not_taken_back_and_a_drain_is_for_those_to_come_too() {
        let feeds = KnownFeeds::default();
        let feed = feeds.open(about());
        assert!(!feeds.end(feed.record().id + 1, EndReason::Revoked), "there is none");
        assert!(feeds.end(feed.record().id, EndReason::Revoked));
        let drain = Drain::now(Duration::from_secs(1));
        feeds.drain(drain);
        assert_eq!(*feed.orders().borrow_and_update(), Some(Order::End(EndReason::Revoked)));
        assert_eq!(feeds.open(about()).order(), Some(Order::Drain(drain)));
    }
}
