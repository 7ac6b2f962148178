//! Feeds that tell what leaves, and how far they have looked: who comes back later must know whether a version that was
//! written over had been looked at by then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Change, Previous};

/// The feeds of one database that tell what leaves.
pub(crate) struct Leaving(Mutex<Feeds>);

struct Feeds {
    /// The highest sequence of a change that came when a feed had not looked at the version before. What was before the
    /// database was opened is not known.
    unsure_up_to: Sequence,
    /// How far each has looked.
    looked: BTreeMap<u64, Sequence>,
    next: u64,
}

/// A feed among them, until it is dropped.
pub(crate) struct Looking {
    among: Arc<Leaving>,
    number: u64,
}

impl Leaving {
    /// None yet, of a database whose update sequence is `newest`.
    pub fn new(newest: Sequence) -> Arc<Leaving> {
        Arc::new(Leaving(Mutex::new(Feeds { unsure_up_to: newest, looked: BTreeMap::new(), next: 0 })))
    }

    fn feeds(&self) -> MutexGuard<'_, Feeds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A feed that has looked at nothing.
    pub fn join(self: &Arc<Leaving>) -> Looking {
        let mut feeds = self.feeds();
        let number = feeds.next;
        feeds.next += 1;
        feeds.looked.insert(number, Sequence::ZERO);
        Looking { among: Arc::clone(self), number }
    }

    /// Takes note of the changes of a commit, before it is published.
    pub fn committed(&self, changes: &[Change]) {
        let mut feeds = self.feeds();
        let Some(slowest) = feeds.looked.values().min().copied() else { return };
        let was_looked_at = |change: &&Change| match change.previous {
            Previous::Nothing => true,
            Previous::Unknown => false,
            Previous::Winner(previous) => previous.seq <= slowest,
        };
        if let Some(unsure) = changes.iter().rev().find(|change| !was_looked_at(change)) {
            feeds.unsure_up_to = feeds.unsure_up_to.max(unsure.seq);
        }
    }

    /// Above this, every change came when all feeds had looked at the version before.
    pub fn unsure_up_to(&self) -> Sequence {
        self.feeds().unsure_up_to
    }
}

impl Looking {
    /// Takes note that the feed has looked at all up to a place, in a state that is published.
    pub fn looked_at(&self, up_to: Sequence) {
        self.among.feeds().looked.insert(self.number, up_to);
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.among.feeds().looked.remove(&self.number);
    }
}
