//! One feed that reads for itself.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use seqtide_storage::model::sequence::Sequence;
use tokio::sync::watch;

use super::{FeedAbout, FeedInfo, FeedRecord, FeedState, Order};

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
    pub(super) fn new(about: Arc<FeedAbout>, record: FeedRecord, was_live: bool) -> KnownFeed {
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

    /// Takes note that it has given everything there is.
    pub fn has_everything(&self) {
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
    pub(super) fn tell(&self, order: Order) {
        self.orders.send_if_modified(|told| {
            let is_over = matches!(told, Some(Order::End(_)));
            if !is_over {
                *told = Some(order);
            }
            !is_over
        });
    }

    pub(super) fn info(&self) -> FeedInfo {
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

#[cfg(test)]
mod tests {
    use seqtide_storage::model::sequence::SeqFormat;

    use super::super::LAGS_AFTER;
    use super::*;
    use crate::metrics::FeedKind;

    #[test]
    fn a_feed_lags_when_it_lacks_rows_for_a_while_and_no_more_when_it_has_everything() {
        let about = FeedAbout { kind: FeedKind::Sse, database: None, filter: None, seq_format: SeqFormat::Integer };
        let feed = KnownFeed::new(Arc::new(about), FeedRecord::default(), false);
        feed.reads();
        assert_eq!(feed.info().state, FeedState::CatchingUp);
        feed.has_everything();
        assert_eq!((feed.info().state, feed.info().behind_since), (FeedState::Live, None));
        feed.reads();
        assert_eq!(feed.info().state, FeedState::Live, "for a moment only");
        feed.progress().behind_since = Instant::now().checked_sub(LAGS_AFTER);
        feed.reads();
        assert_eq!(feed.info().state, FeedState::Lagging);
        feed.has_everything();
        assert_eq!(feed.info().state, FeedState::Live);
    }
}
