//! What is known of a feed from outside while it is open: what it is of, how far it has come and what its reader was sent;
//! and what it is told from outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::now_secs;
use tokio::sync::watch;

use crate::drain::Drain;
use crate::feed::EndReason;
use crate::metrics::FeedKind;

/// A feed's number: one opened later has a higher one, also after a restart.
pub type FeedId = u64;

/// Ids begin at the second of the start, with room for so many feeds a second: they stay exact in a JavaScript number.
const IDS_A_SECOND: u64 = 1 << 20;

/// A live feed whose reader has lacked rows for this long lags.
const LAGS_AFTER: Duration = Duration::from_secs(1);

/// What a feed is; it does not change.
#[derive(Debug, PartialEq, Eq)]
pub struct FeedAbout {
    /// What it is served as.
    pub kind: FeedKind,
    /// The database it is of; `None` of a feed of all databases' updates.
    pub database: Option<DbName>,
    /// What it leaves out, for people; `None` where it shows everything.
    pub filter: Option<String>,
    /// How its sequences are written.
    pub seq_format: SeqFormat,
}

/// How a feed stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    /// It has not given everything there was yet.
    CatchingUp,
    /// It gives what happens as it happens.
    Live,
    /// It was live, and there have been rows for a second that it has not given.
    Lagging,
    /// It ends shortly, because the engine does.
    Draining,
}

impl FeedState {
    /// The state's name in answers.
    pub fn name(self) -> &'static str {
        match self {
            FeedState::CatchingUp => "catching-up",
            FeedState::Live => "live",
            FeedState::Lagging => "lagging",
            FeedState::Draining => "draining",
        }
    }

    /// The state of a feed that was live, and lacks rows since.
    pub fn of_live(behind_since: Option<Instant>) -> FeedState {
        if behind_since.is_some_and(|since| since.elapsed() >= LAGS_AFTER) {
            FeedState::Lagging
        } else {
            FeedState::Live
        }
    }
}

/// What goes with a feed wherever it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedRecord {
    /// Its number.
    pub id: FeedId,
    /// When it was opened, in seconds since 1970.
    pub opened_secs: u64,
    /// Rows it was given.
    pub rows: u64,
    /// Bytes that were handed to its connection.
    pub bytes: u64,
}

/// An open feed as it stands.
#[derive(Debug, Clone)]
pub struct FeedInfo {
    /// Its number, and what its reader was sent.
    pub record: FeedRecord,
    /// What it is.
    pub about: Arc<FeedAbout>,
    /// Who reads it, where that is known.
    pub client: Option<SocketAddr>,
    /// How it stands.
    pub state: FeedState,
    /// Everything up to here has been given, as far as it passes the filter.
    pub position: Sequence,
    /// Since when there are rows that it has not given; `None` of a feed that has everything.
    pub behind_since: Option<Instant>,
}

/// What a feed is told from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// To end at once.
    End(EndReason),
    /// To end in its turn.
    Drain(Drain),
}

/// A feed that is open and reads for itself.
pub(crate) struct KnownFeed {
    about: Arc<FeedAbout>,
    client: OnceLock<SocketAddr>,
    progress: Mutex<Progress>,
    orders: watch::Sender<Option<Order>>,
}

struct Progress {
    record: FeedRecord,
    position: Sequence,
    was_live: bool,
    behind_since: Option<Instant>,
}

impl KnownFeed {
    fn new(about: Arc<FeedAbout>, record: FeedRecord, was_live: bool) -> KnownFeed {
        let behind_since = was_live.then(Instant::now);
        let progress = Progress { record, position: Sequence::ZERO, was_live, behind_since };
        KnownFeed { about, client: OnceLock::new(), progress: Mutex::new(progress), orders: watch::Sender::new(None) }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is.
    pub fn about(&self) -> Arc<FeedAbout> {
        Arc::clone(&self.about)
    }

    /// Takes note of who reads it.
    pub fn read_by(&self, client: SocketAddr) {
        let _same = self.client.set(client);
    }

    /// Takes note that it looks for rows.
    pub fn reads(&self) {
        self.progress().behind_since.get_or_insert_with(Instant::now);
    }

    /// Takes note that it has given everything and waits.
    pub fn waits(&self) {
        let mut progress = self.progress();
        progress.was_live = true;
        progress.behind_since = None;
    }

    /// Takes note of where it stands, having given so many more rows.
    pub fn gave(&self, rows: usize, position: Sequence) {
        let mut progress = self.progress();
        progress.record.rows += rows as u64;
        progress.position = position;
    }

    /// Takes note of bytes that were handed to its connection.
    pub fn sent(&self, bytes: usize) {
        self.progress().record.bytes += bytes as u64;
    }

    /// What goes with it wherever it is served.
    pub fn record(&self) -> FeedRecord {
        self.progress().record
    }

    /// What it is told.
    pub fn orders(&self) -> watch::Receiver<Option<Order>> {
        self.orders.subscribe()
    }

    /// What it was told last.
    pub fn order(&self) -> Option<Order> {
        *self.orders.borrow()
    }

    /// Tells it something; that it is to end is not taken back.
    fn tell(&self, order: Order) {
        self.orders.send_if_modified(|told| {
            let is_over = matches!(told, Some(Order::End(_)));
            if !is_over {
                *told = Some(order);
            }
            !is_over
        });
    }

    fn info(&self) -> FeedInfo {
        let progress = self.progress();
        let state = match (self.order(), progress.was_live) {
            (Some(_), _) => FeedState::Draining,
            (None, false) => FeedState::CatchingUp,
            (None, true) => FeedState::of_live(progress.behind_since),
        };
        FeedInfo {
            record: progress.record,
            about: self.about(),
            client: self.client.get().copied(),
            state,
            position: progress.position,
            behind_since: progress.behind_since,
        }
    }
}

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
    fn feeds(&self) -> MutexGuard<'_, Feeds> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a feed that is opened.
    pub fn open(&self, about: FeedAbout) -> Arc<KnownFeed> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let record = FeedRecord { id, opened_secs: now_secs(), rows: 0, bytes: 0 };
        self.add(KnownFeed::new(Arc::new(about), record, false))
    }

    /// Takes note of a live feed that reads for itself again.
    pub fn reopen(&self, about: Arc<FeedAbout>, record: FeedRecord) -> Arc<KnownFeed> {
        self.add(KnownFeed::new(about, record, true))
    }

    fn add(&self, known: KnownFeed) -> Arc<KnownFeed> {
        let known = Arc::new(known);
        let mut feeds = self.feeds();
        if let Some(drain) = feeds.drain {
            known.tell(Order::Drain(drain));
        }
        feeds.by_id.insert(known.record().id, Arc::clone(&known));
        known
    }

    /// Forgets a feed that is closed, or does not read for itself any more.
    pub fn forget(&self, id: FeedId) {
        self.feeds().by_id.remove(&id);
    }

    /// All of them, in the order in which they were opened.
    pub fn list(&self) -> Vec<FeedInfo> {
        self.feeds().by_id.values().map(|known| known.info()).collect()
    }

    /// Ends one; `false` where it is none of these.
    pub fn end(&self, id: FeedId, reason: EndReason) -> bool {
        let found = self.feeds().by_id.get(&id).cloned();
        found.inspect(|known| known.tell(Order::End(reason))).is_some()
    }

    /// Tells all, and those to come, to end in their turn.
    pub fn drain(&self, drain: Drain) {
        let mut feeds = self.feeds();
        feeds.drain = Some(drain);
        feeds.by_id.values().for_each(|known| known.tell(Order::Drain(drain)));
    }

    /// How long who comes is to wait before coming again, because they were told to.
    pub fn closed_for(&self) -> Option<Duration> {
        let drain = self.feeds().drain?;
        Some(drain.closed_for(self.next_id.fetch_add(1, Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> FeedAbout {
        FeedAbout { kind: FeedKind::Sse, database: None, filter: None, seq_format: SeqFormat::Integer }
    }

    #[test]
    fn a_feed_is_known_until_it_is_forgotten_and_its_record_goes_with_it() {
        let feeds = KnownFeeds::default();
        let (first, second) = (feeds.open(about()), feeds.open(about()));
        first.gave(3, Sequence::new(0, 7));
        first.sent(100);
        let list = feeds.list();
        assert_eq!(list.len(), 2);
        assert!(list[0].record.id < list[1].record.id && list[1].record.id < 1 << 53);
        assert_eq!((list[0].record.rows, list[0].record.bytes), (3, 100));
        assert_eq!((list[0].position, list[0].state), (Sequence::new(0, 7), FeedState::CatchingUp));
        feeds.forget(first.record().id);
        feeds.forget(second.record().id);
        assert!(feeds.list().is_empty());
        feeds.reopen(first.about(), first.record());
        assert_eq!(feeds.list()[0].record, list[0].record);
    }

    #[test]
    fn a_feed_lags_when_it_lacks_rows_for_a_while_and_no_more_when_it_waits() {
        let feeds = KnownFeeds::default();
        let feed = feeds.open(about());
        feed.reads();
        assert_eq!(feed.info().state, FeedState::CatchingUp);
        feed.waits();
        assert_eq!((feed.info().state, feed.info().behind_since), (FeedState::Live, None));
        feed.reads();
        assert_eq!(feed.info().state, FeedState::Live, "for a moment only");
        feed.progress().behind_since = Instant::now().checked_sub(LAGS_AFTER);
        feed.reads();
        assert_eq!(feed.info().state, FeedState::Lagging);
        feed.waits();
        assert_eq!(feed.info().state, FeedState::Live);
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
