//! Whom does a commit wake? Subscribers stand in groups by what they wait for, so that a commit wakes those it may
//! concern and costs nothing for the others.
//!
//! A woken subscriber is not told what changed: it pulls. One that was not woken knows that nothing up to
//! [`Matcher::examined`] concerned it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::Sequence;
use tokio::sync::watch;

use crate::filter::Filter;
use crate::row::Row;

/// The wake groups of one database.
pub(crate) struct Matcher {
    /// Everyone who waits for any change.
    all: watch::Sender<Mark>,
    groups: Mutex<Groups>,
    /// Every change up to here has woken whom it concerns.
    examined: watch::Sender<Sequence>,
}

/// Groups that wait for some changes only. One whose last subscriber has left is dropped when it is next met.
#[derive(Default)]
struct Groups {
    by_id: HashMap<DocId, Vec<Weak<Group>>>,
    by_prefix: HashMap<Arc<str>, Weak<Group>>,
    /// How many prefixes there are of each length: a change looks up one prefix a length.
    prefix_lengths: HashMap<usize, usize>,
}

/// When a group was woken last.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// How many commits have woken it.
    wakes: u64,
    /// Up to where everything had been examined before the last of them.
    examined_before: Sequence,
}

impl Mark {
    fn next(self, examined_before: Sequence) -> Mark {
        Mark { wakes: self.wakes + 1, examined_before }
    }
}

/// Subscribers that wait for the same changes.
#[derive(Default)]
struct Group {
    woken: watch::Sender<Mark>,
}

/// A place in a wake group, left when dropped.
pub(crate) struct Wake {
    woken: watch::Receiver<Mark>,
    wakes_seen: u64,
    _group: Option<Arc<Group>>,
}

impl Wake {
    fn new(woken: watch::Receiver<Mark>, group: Option<Arc<Group>>) -> Wake {
        let wakes_seen = woken.borrow().wakes;
        Wake { woken, wakes_seen, _group: group }
    }

    /// Waits until a change may concern this subscriber; at once if one did since the last call.
    pub async fn woken(&mut self) {
        if self.woken.changed().await.is_err() {
            // The database is closing; its feeds are told so another way.
            std::future::pending().await
        }
    }

    /// Up to where nothing concerned this subscriber since it was here last, `examined` being what the matcher said
    /// before. `None` when it was woken more than once: then it cannot tell.
    pub fn nothing_up_to(&mut self, examined: Sequence) -> Option<Sequence> {
        let mark = *self.woken.borrow_and_update();
        let wakes = mark.wakes - std::mem::replace(&mut self.wakes_seen, mark.wakes);
        match wakes {
            0 => Some(examined),
            1 => Some(mark.examined_before),
            _ => None,
        }
    }
}

impl Matcher {
    /// The groups of a database whose update sequence is `at`.
    pub fn new(at: Sequence) -> Matcher {
        Matcher { all: watch::Sender::default(), groups: Mutex::default(), examined: watch::Sender::new(at) }
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to where every change has woken whom it concerns.
    pub fn examined(&self) -> Sequence {
        *self.examined.borrow()
    }

    /// Joins the group that waits for what passes the filter.
    pub fn join(&self, filter: &Filter) -> Wake {
        let mut groups = self.groups();
        let group = match filter {
            Filter::All => return Wake::new(self.all.subscribe(), None),
            Filter::Ids(ids) => groups.join_ids(ids.iter()),
            Filter::Prefix(prefix) => groups.join_prefix(prefix),
        };
        Wake::new(group.woken.subscribe(), Some(group))
    }

    /// Wakes whom the changes of a commit concern. They must be readable by then.
    pub fn publish(&self, rows: &[Arc<Row>], newest: Sequence) {
        let before = self.examined();
        let mut groups = self.groups();
        if !groups.by_id.is_empty() || !groups.by_prefix.is_empty() {
            for group in groups.concerned_by(rows) {
                group.woken.send_modify(|mark| *mark = mark.next(before));
            }
        }
        drop(groups);
        if !rows.is_empty() {
            self.all.send_modify(|mark| *mark = mark.next(before));
        }
        self.examined.send_replace(newest);
    }
}

impl Groups {
    fn join_ids<'a>(&mut self, ids: impl Iterator<Item = &'a DocId>) -> Arc<Group> {
        let group = Arc::<Group>::default();
        for id in ids {
            let waiting = self.by_id.entry(id.clone()).or_default();
            waiting.retain(|group| group.strong_count() > 0);
            waiting.push(Arc::downgrade(&group));
        }
        self.forget_the_gone();
        group
    }

    fn join_prefix(&mut self, prefix: &Arc<str>) -> Arc<Group> {
        if let Some(group) = self.by_prefix.get(prefix).and_then(Weak::upgrade) {
            return group;
        }
        let group = Arc::<Group>::default();
        if self.by_prefix.insert(Arc::clone(prefix), Arc::downgrade(&group)).is_none() {
            *self.prefix_lengths.entry(prefix.len()).or_default() += 1;
        }
        self.forget_the_gone();
        group
    }

    /// Clears out groups nobody is in, whenever the tables have doubled since the last time: cheap on the whole, and
    /// the tables stay in proportion to the subscribers there are.
    fn forget_the_gone(&mut self) {
        let full = |len: usize, capacity: usize| len * 8 >= capacity * 7;
        if full(self.by_id.len(), self.by_id.capacity()) {
            self.by_id.retain(|_, waiting| {
                waiting.retain(|group| group.strong_count() > 0);
                !waiting.is_empty()
            });
        }
        if full(self.by_prefix.len(), self.by_prefix.capacity()) {
            let lengths = &mut self.prefix_lengths;
            self.by_prefix.retain(|prefix, group| group.strong_count() > 0 || forget_length(lengths, prefix.len()));
        }
    }

    /// The groups that wait for one of these rows, each once.
    fn concerned_by(&mut self, rows: &[Arc<Row>]) -> Vec<Arc<Group>> {
        let mut concerned: HashMap<*const Group, Arc<Group>> = HashMap::new();
        let mut add = |group: &Weak<Group>| {
            let group = group.upgrade();
            group.map(|group| concerned.insert(Arc::as_ptr(&group), group)).is_some()
        };
        for row in rows {
            let id = row.change().id.as_str();
            if let Some(waiting) = self.by_id.get_mut(id) {
                waiting.retain(&mut add);
                if waiting.is_empty() {
                    self.by_id.remove(id);
                }
            }
            for length in self.prefix_lengths.keys() {
                let prefix = id.get(..*length);
                if let Some(group) = prefix.and_then(|prefix| self.by_prefix.get(prefix)) {
                    add(group);
                }
            }
        }
        concerned.into_values().collect()
    }
}

/// Takes a prefix's length off the count; gives `false`, so that the prefix is not retained.
fn forget_length(lengths: &mut HashMap<usize, usize>, length: usize) -> bool {
    if let Some(count) = lengths.get_mut(&length) {
        *count -= 1;
        if *count == 0 {
            lengths.remove(&length);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use seqtide_storage::model::rev::RevId;
    use seqtide_storage::model::sequence::SeqFormat;
    use seqtide_storage::{Change, LeafRev};

    use super::*;

    fn commit(matcher: &Matcher, version: u64, id: &str) {
        let leaves = vec![LeafRev { rev: RevId::parse("1-a").unwrap(), deleted: false }];
        let seq = Sequence::new(0, version);
        let change = Change { seq, id: DocId::parse(id).unwrap(), leaves, body: None };
        matcher.publish(&[Arc::new(Row::new(change, SeqFormat::Integer))], seq);
    }

    fn ids(ids: &[&str]) -> Filter {
        Filter::ids(ids.iter().map(|id| DocId::parse(id).unwrap()))
    }

    #[test]
    fn a_commit_wakes_whom_it_concerns_and_nobody_else() {
        let matcher = Matcher::new(Sequence::ZERO);
        let mut all = matcher.join(&Filter::All);
        let mut two = matcher.join(&ids(&["a", "b"]));
        let mut other = matcher.join(&ids(&["c"]));
        let mut prefix = matcher.join(&Filter::prefix("ab"));
        let mut design = matcher.join(&Filter::design());
        let at = |version| Some(Sequence::new(0, version));
        let mut idle_up_to = |version| {
            let wakes = [&mut all, &mut two, &mut other, &mut prefix, &mut design];
            wakes.map(|wake| wake.nothing_up_to(Sequence::new(0, version)))
        };
        assert_eq!(idle_up_to(0), [at(0); 5]);
        for (version, id, whom) in [
            (1, "a", [true, true, false, false, false]),
            (2, "abc", [true, false, false, true, false]),
            (3, "_design/x", [true, false, false, false, true]),
            (4, "é", [true, false, false, false, false]),
        ] {
            commit(&matcher, version, id);
            let expected = whom.map(|woken| at(if woken { version - 1 } else { version }));
            assert_eq!(idle_up_to(version), expected, "{id}");
            assert_eq!(idle_up_to(version), [at(version); 5]);
            assert_eq!(Some(matcher.examined()), at(version));
        }
    }

    #[test]
    fn who_was_woken_twice_cannot_tell_where_the_first_one_was() {
        let matcher = Matcher::new(Sequence::ZERO);
        let mut wake = matcher.join(&ids(&["a"]));
        commit(&matcher, 1, "a");
        commit(&matcher, 2, "a");
        assert_eq!(wake.nothing_up_to(matcher.examined()), None);
        commit(&matcher, 3, "b");
        assert_eq!(wake.nothing_up_to(matcher.examined()), Some(Sequence::new(0, 3)));
    }

    #[test]
    fn groups_nobody_is_in_are_forgotten() {
        let matcher = Matcher::new(Sequence::ZERO);
        for n in 0..5_000 {
            drop(matcher.join(&ids(&[&format!("d{n}")])));
            drop(matcher.join(&Filter::prefix(&format!("p{n}"))));
        }
        let groups = matcher.groups();
        assert!(groups.by_id.len() < 100, "{}", groups.by_id.len());
        assert!(groups.by_prefix.len() < 100, "{}", groups.by_prefix.len());
        assert_eq!(groups.prefix_lengths.values().sum::<usize>(), groups.by_prefix.len());
    }
}
