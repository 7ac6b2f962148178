//! One feed that reads for itself.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
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
    state: FeedState,
    behind_since: Option<Instant>,
}

impl KnownFeed {
    pub(super) fn new(about: Arc<FeedAbout>, record: FeedRecord, state: FeedState) -> KnownFeed {
        let behind_since = (state != FeedState::CatchingUp).then(Instant::now);
        let progress = Progress { record, position: Sequence::ZERO, state, behind_since };
        KnownFeed { about, client: OnceLock::new(), progress: Mutex::new(progress), orders: watch::Sender::new(None) }
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
    pub fn note_reading(&self) {
        self.progress.lock().behind_since.get_or_insert_with(Instant::now);
    }

    /// Takes note that it has given everything there is.
    pub fn note_caught_up(&self) {
        self.progress.lock().behind_since = None;
    }

    /// Takes note that its reader was told that it is in this state. One that ends shortly is in no other any more.
    pub fn note_state(&self, state: FeedState) {
        let mut progress = self.progress.lock();
        if progress.state != FeedState::Draining {
            progress.state = state;
        }
    }

    /// Takes note of where it stands, having given so many more rows.
    pub fn note_given(&self, rows: usize, position: Sequence) {
        let mut progress = self.progress.lock();
        progress.record.rows += rows as u64;
        progress.position = position;
    }

    /// Takes note of bytes that were handed to its connection.
    pub fn sent(&self, bytes: usize) {
        self.progress.lock().record.bytes += bytes as u64;
    }

    /// What goes with it wherever it is served.
    pub fn record(&self) -> FeedRecord {
        self.progress.lock().record
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
        let progress = self.progress.lock();
        FeedInfo {
            record: progress.record,
            about: self.about(),
            client: self.client.get().copied(),
            state: progress.state,
            position: progress.position,
            behind_since: progress.behind_since,
        }
    }
}

#[cfg(test)]
mod tests {
    use seqtide_storage::model::sequence::SeqFormat;

    use super::*;
    use crate::feed::kind::FeedKind;

    #[test]
    fn a_feed_is_in_the_state_that_its_reader_was_told_and_lacks_rows_from_when_it_looks_for_some() {
        let about = FeedAbout { kind: FeedKind::Sse, database: None, filter: None, seq_format: SeqFormat::Integer };
        let feed = KnownFeed::new(Arc::new(about), FeedRecord::default(), FeedState::CatchingUp);
        feed.note_reading();
        assert_eq!((feed.info().state, feed.info().behind_since.is_some()), (FeedState::CatchingUp, true));
        feed.note_caught_up();
        assert_eq!((feed.info().state, feed.info().behind_since), (FeedState::CatchingUp, None), "it was told nothing");
        for state in [FeedState::Live, FeedState::Lagging, FeedState::Live, FeedState::Draining] {
            feed.note_state(state);
            assert_eq!(feed.info().state, state);
        }
        feed.note_state(FeedState::Live);
        assert_eq!(feed.info().state, FeedState::Draining, "it has caught up, and ends shortly all the same");
    }
}
