//! What is known in memory of the index of a database's feed: whether it is being made, and whether it is of use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use seqtide_storage::{FeedIndexStatus, StorageError, Table};

use crate::metrics;

/// Work on an index that goes on: it is made of the past, or rows of fields that were given up are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexWork {
    pub started: SystemTime,
    /// When it last got on.
    pub updated: SystemTime,
}

/// The index of a database's feed. Its writer goes on with it; who asks waits for nobody.
#[derive(Default)]
pub(crate) struct Indexing {
    work: Mutex<Option<IndexWork>>,
    /// Whether there may be an index: none was found at opening, and none was asked for since, where not.
    present: AtomicBool,
    /// Whether a row of it is damaged: nothing is looked up any more.
    damaged: AtomicBool,
}

impl Indexing {
    /// Of a database that was opened, of whose file so much is known to be damaged. A damaged file is not written to,
    /// and read without its index.
    pub fn opened(status: &FeedIndexStatus, file_is_sound: bool) -> Indexing {
        let indexing = Indexing::default();
        if file_is_sound {
            indexing.present.store(!status.fields.is_empty(), Ordering::Relaxed);
            if status.untended {
                indexing.begin();
            }
        }
        indexing
    }

    /// The work that goes on.
    pub fn now(&self) -> Option<IndexWork> {
        *self.work.lock()
    }

    /// Takes note that the index is of other fields now: there is work.
    pub fn redefined(&self) {
        self.present.store(true, Ordering::Relaxed);
        self.damaged.store(false, Ordering::Relaxed);
        self.begin();
    }

    fn begin(&self) {
        let now = SystemTime::now();
        self.work.lock().get_or_insert(IndexWork { started: now, updated: now });
    }

    /// Takes note of a slice.
    pub fn got_on(&self, done: bool) {
        let mut work = self.work.lock();
        match (&mut *work, done) {
            (Some(going_on), false) => going_on.updated = SystemTime::now(),
            _ => *work = None,
        }
    }

    /// Gives up; what is left to do is found at the next opening.
    pub fn stop(&self) {
        *self.work.lock() = None;
    }

    /// Whether something may be looked up.
    pub fn may_serve(&self) -> bool {
        self.present.load(Ordering::Relaxed) && !self.is_damaged()
    }

    /// Whether a row of it was found damaged.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Takes note of what a look-up came upon. Said once: feeds read on without the index.
    pub fn came_upon(&self, error: &StorageError) {
        if error.is_damage_of(Table::FeedIndex) && !self.damaged.swap(true, Ordering::Relaxed) {
            metrics::damaged_read();
            tracing::error!(%error, "the feed's index is damaged: it is not used until it is removed and made anew");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(untended: bool) -> FeedIndexStatus {
        FeedIndexStatus { fields: vec!["a".to_owned()], untended, ..FeedIndexStatus::default() }
    }

    #[test]
    fn work_goes_on_until_it_is_done_and_begins_with_other_fields() {
        let indexing = Indexing::opened(&FeedIndexStatus::default(), true);
        assert!(!indexing.may_serve() && indexing.now().is_none());
        indexing.redefined();
        let work = indexing.now().unwrap();
        indexing.got_on(false);
        let later = indexing.now().unwrap();
        assert!(indexing.may_serve() && later.started == work.started && later.updated >= work.updated);
        indexing.got_on(true);
        assert_eq!(indexing.now(), None);
    }

    #[test]
    fn what_was_left_to_do_goes_on_after_opening_but_not_in_a_damaged_file() {
        assert!(Indexing::opened(&status(true), true).now().is_some());
        assert!(Indexing::opened(&status(false), true).now().is_none());
        let damaged = Indexing::opened(&status(true), false);
        assert!(damaged.now().is_none() && !damaged.may_serve());
    }

    #[test]
    fn a_damaged_row_of_the_index_ends_its_use_until_it_is_made_anew() {
        let missing = |table| StorageError::Missing { table, key: "k".to_owned() };
        let indexing = Indexing::opened(&status(false), true);
        indexing.came_upon(&missing("bodies"));
        assert!(indexing.may_serve());
        indexing.came_upon(&missing("feed_index"));
        assert!(!indexing.may_serve() && indexing.is_damaged());
        indexing.redefined();
        assert!(indexing.may_serve());
    }
}
