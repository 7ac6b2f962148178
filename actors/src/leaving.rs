//! Feeds that tell what leaves, and how far they have looked: who comes back later must know whether a version that was
//! written over had been looked at by then.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Changed, Previous};

/// The feeds of one database that tell what leaves.
pub(crate) struct Leaving(Mutex<Feeds>);

struct Feeds {
    /// The highest sequence of a change that came when a feed had not looked at the version before. What was before the
    /// database was opened is not known.
    unsure_up_to: Sequence,
    /// How far each has looked.
    looked: BTreeMap<u64, Sequence>,
    next: u64,
    written_over: WrittenOver,
}

/// Up to which change versions were written over that someone who was away may have been given. Each entry is a change
/// and the place of the version it wrote over; one is dropped when a later change wrote over a version at least as
/// late, so the later the change, the earlier the version.
#[derive(Default)]
struct WrittenOver(VecDeque<Over>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Over {
    version: Sequence,
    by: Sequence,
}

/// So many are kept; beyond that the oldest are taken for one, which says more than they do.
const KEPT: usize = 1000;

impl WrittenOver {
    fn add(&mut self, over: Over) {
        while self.0.back().is_some_and(|kept| kept.version <= over.version) {
            self.0.pop_back();
        }
        self.0.push_back(over);
        if self.0.len() > KEPT
            && let Some(oldest) = self.0.pop_front()
            && let Some(next) = self.0.front_mut()
        {
            next.version = oldest.version;
        }
    }

    /// The last change that was written over a version behind a place.
    fn behind(&self, place: Sequence) -> Option<Sequence> {
        let end = self.0.partition_point(|over| over.version > place);
        self.0.get(end.checked_sub(1)?).map(|over| over.by)
    }
}

/// A feed among them, until it is dropped.
pub(crate) struct Looking {
    among: Arc<Leaving>,
    number: u64,
}

impl Leaving {
    /// None yet, of a database whose update sequence is `newest`.
    pub fn new(newest: Sequence) -> Arc<Leaving> {
        Arc::new(Leaving(Mutex::new(Feeds {
            unsure_up_to: newest,
            looked: BTreeMap::new(),
            next: 0,
            written_over: WrittenOver::default(),
        })))
    }

    fn feeds(&self) -> MutexGuard<'_, Feeds> {
        self.0.lock()
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
    pub fn committed(&self, changes: &[Changed]) {
        let mut feeds = self.feeds();
        for change in changes {
            if let Previous::Winner(previous) = change.previous {
                feeds.written_over.add(Over { version: previous.seq, by: change.seq });
            }
        }
        let Some(slowest) = feeds.looked.values().min().copied() else { return };
        let was_looked_at = |change: &&Changed| match change.previous {
            Previous::Nothing => true,
            Previous::Unknown => false,
            Previous::Winner(previous) => previous.seq <= slowest,
        };
        if let Some(unsure) = changes.iter().rev().find(|change| !was_looked_at(change)) {
            feeds.unsure_up_to = feeds.unsure_up_to.max(unsure.seq);
        }
    }

    /// Takes note that a feed begins at `start`; gives the place above which every change came when all feeds had
    /// looked at the version before. Its reader may have been away: when it is so again, it has not looked at versions
    /// behind `start` which were written over meanwhile. Who begins at the beginning has none.
    pub fn begin_at(&self, start: Sequence) -> Sequence {
        let mut feeds = self.feeds();
        let unsure_up_to = feeds.unsure_up_to;
        if start > Sequence::ZERO
            && let Some(by) = feeds.written_over.behind(start)
        {
            feeds.unsure_up_to = unsure_up_to.max(by);
        }
        unsure_up_to
    }
}

impl Looking {
    /// Takes note that the feed has looked at all up to a place, in a state that is published.
    pub fn note_looked(&self, up_to: Sequence) {
        self.among.feeds().looked.insert(self.number, up_to);
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.among.feeds().looked.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use seqtide_storage::PreviousWinner;
    use seqtide_storage::model::body_place::BodyPlace;
    use seqtide_storage::model::doc_id::DocId;
    use seqtide_storage::model::rev_tree::RevTree;

    use super::*;

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn change(version: u64, by: u64) -> Changed {
        let winner = PreviousWinner { seq: seq(version), deleted: false, leaves: 1, body: BodyPlace::Empty };
        let id = DocId::parse("a").unwrap();
        Changed { seq: seq(by), id, tree: RevTree::default(), body: None, previous: Previous::Winner(winner) }
    }

    /// A reader that was away while a document changed twice, came back, and was cut again between the two places was
    /// taken for one that had looked at the first change.
    #[test]
    fn who_was_away_when_a_version_was_written_over_has_not_looked_at_it_when_it_comes_back_again() {
        let leaving = Leaving::new(seq(3));
        leaving.committed(&[change(3, 4)]);
        leaving.committed(&[change(4, 9)]);
        assert_eq!(leaving.begin_at(seq(3)), seq(3), "what it has itself it knows");
        assert_eq!(leaving.begin_at(seq(5)), seq(9));
    }

    #[test]
    fn who_begins_or_has_kept_up_makes_nothing_unsure() {
        let leaving = Leaving::new(seq(3));
        leaving.committed(&[change(3, 4)]);
        leaving.committed(&[change(4, 9)]);
        for start in [0, 4, 9] {
            assert_eq!(leaving.begin_at(seq(start)), seq(3), "{start}");
        }
    }

    proptest! {
        #[test]
        fn the_last_change_over_a_version_behind_a_place_is_found_or_a_later_one(
            versions in prop::collection::vec(0u64..3000, 1..3000),
            place in 0u64..3000,
        ) {
            let mut written_over = WrittenOver::default();
            for (by, version) in (3000..).zip(&versions) {
                written_over.add(Over { version: seq(*version), by: seq(by) });
            }
            let last = versions.iter().rposition(|version| *version > place).map(|at| seq(3000 + at as u64));
            let found = written_over.behind(seq(place));
            prop_assert!(found >= last, "{found:?} before {last:?}");
            prop_assert!(written_over.0.len() <= KEPT);
            if versions.len() <= KEPT {
                prop_assert_eq!(found, last);
            }
        }
    }
}
