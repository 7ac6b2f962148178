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

use crate::filter::{Filter, Ids, Test};
use crate::row::Row;
use crate::selector::DocView;

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
    /// By what a document must be like, and whether all its leaves are looked at. Each is tried on each change.
    by_test: HashMap<(Test, bool), Weak<Group>>,
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

    /// Joins the group that waits for what may pass the filter. Where it names ids, they decide alone.
    pub fn join(&self, filter: &Filter, all_leaves: bool) -> Wake {
        let mut groups = self.groups();
        let group = match &filter.ids {
            Ids::All if filter.test == Test::NONE => return Wake::new(self.all.subscribe(), None),
            Ids::All => groups.join_test(&filter.test, all_leaves),
            Ids::Listed(ids) => groups.join_ids(ids.iter()),
            Ids::Prefix(prefix) => groups.join_prefix(prefix),
        };
        Wake::new(group.woken.subscribe(), Some(group))
    }

    /// Wakes whom the changes of a commit concern. They must be readable by then.
    pub fn publish(&self, rows: &[Arc<Row>], newest: Sequence) {
        let before = self.examined();
        let mut groups = self.groups();
        if !groups.is_empty() {
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
    fn is_empty(&self) -> bool {
        self.by_id.is_empty() && self.by_prefix.is_empty() && self.by_test.is_empty()
    }

    fn join_test(&mut self, test: &Test, all_leaves: bool) -> Arc<Group> {
        let key = (test.clone(), all_leaves);
        if let Some(group) = self.by_test.get(&key).and_then(Weak::upgrade) {
            return group;
        }
        let group = Arc::<Group>::default();
        self.by_test.insert(key, Arc::downgrade(&group));
        self.forget_the_gone();
        group
    }

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
        if full(self.by_test.len(), self.by_test.capacity()) {
            self.by_test.retain(|_, group| group.strong_count() > 0);
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
        self.by_test.retain(|_, group| group.strong_count() > 0);
        let mut waiting: Vec<_> = self.by_test.iter().collect();
        for row in rows {
            let change = row.change();
            let winner = change.body.as_ref().map(|body| DocView::new(&change.id, change.winner(), body));
            waiting.retain(|((test, all_leaves), group)| {
                let concerns = test.may_pass(change, winner.as_ref(), *all_leaves);
                if concerns {
                    add(group);
                }
                !concerns
            });
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
    use seqtide_storage::json::Body;
    use seqtide_storage::model::rev::RevId;
    use seqtide_storage::model::sequence::SeqFormat;
    use seqtide_storage::{Change, LeafRev};

    use super::*;
    use crate::selector::Selector;

    fn commit(matcher: &Matcher, version: u64, id: &str) {
        commit_leaves(matcher, version, id, "{}", &[("1-a", false)]);
    }

    /// Commits a document with this winner's body and these leaves, each deleted or not.
    fn commit_leaves(matcher: &Matcher, version: u64, id: &str, body: &'static str, leaves: &[(&str, bool)]) {
        let leaf = |(rev, deleted): &(&str, bool)| LeafRev { rev: RevId::parse(rev).unwrap(), deleted: *deleted };
        let leaves = leaves.iter().map(leaf).collect();
        let seq = Sequence::new(0, version);
        let body = Some(Body::from_stored(body.as_bytes().into()));
        let change = Change { seq, id: DocId::parse(id).unwrap(), leaves, body };
        matcher.publish(&[Arc::new(Row::new(change, SeqFormat::Integer))], seq);
    }

    fn selector(json: &str) -> Filter {
        Filter::selector(Selector::from_json(json).unwrap())
    }

    fn ids(ids: &[&str]) -> Filter {
        Filter::ids(ids.iter().map(|id| DocId::parse(id).unwrap()))
    }

    #[test]
    fn a_commit_wakes_whom_it_concerns_and_nobody_else() {
        let matcher = Matcher::new(Sequence::ZERO);
        let mut all = matcher.join(&Filter::ALL, false);
        let mut two = matcher.join(&ids(&["a", "b"]), false);
        let mut other = matcher.join(&ids(&["c"]), false);
        let mut prefix = matcher.join(&Filter::prefix("ab"), false);
        let mut design = matcher.join(&Filter::design(), false);
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
    fn a_test_wakes_by_what_the_winner_is_like_and_where_a_loser_may_pass() {
        let matcher = Matcher::new(Sequence::ZERO);
        let mut winner = matcher.join(&selector(r#"{"t":1}"#), false);
        let mut any_leaf = matcher.join(&selector(r#"{"t":1}"#), true);
        let mut conflicts = matcher.join(&Filter::conflicts_only(), false);
        let mut gone = matcher.join(&selector(r#"{"_deleted":true}"#), false);
        for (version, body, leaves, whom) in [
            (1, r#"{"t":1}"#, &[("1-a", false)][..], [true, true, false, false]),
            (2, r#"{"t":2}"#, &[("1-a", false)], [false, false, false, false]),
            (3, r#"{"t":2}"#, &[("2-b", false), ("2-a", false)], [false, true, true, false]),
            (4, r#"{"t":2}"#, &[("2-b", false), ("2-a", true)], [false, true, false, false]),
            (5, r#"{"t":1}"#, &[("2-b", true)], [true, true, false, true]),
        ] {
            commit_leaves(&matcher, version, "d", body, leaves);
            let wakes = [&mut winner, &mut any_leaf, &mut conflicts, &mut gone];
            let idle_up_to = wakes.map(|wake| wake.nothing_up_to(Sequence::new(0, version)));
            let expected = whom.map(|woken| Some(Sequence::new(0, if woken { version - 1 } else { version })));
            assert_eq!(idle_up_to, expected, "{body} {leaves:?}");
        }
    }

    #[test]
    fn equal_selectors_share_a_group() {
        let matcher = Matcher::new(Sequence::ZERO);
        let texts = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"b":{"$eq":2},"a":1}"#];
        let _same: Vec<Wake> = texts.iter().map(|json| matcher.join(&selector(json), false)).collect();
        assert_eq!(matcher.groups().by_test.len(), 1);
        let _other = matcher.join(&selector(texts[0]), true);
        assert_eq!(matcher.groups().by_test.len(), 2);
    }

    #[test]
    fn who_was_woken_twice_cannot_tell_where_the_first_one_was() {
        let matcher = Matcher::new(Sequence::ZERO);
        let mut wake = matcher.join(&ids(&["a"]), false);
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
            drop(matcher.join(&ids(&[&format!("d{n}")]), false));
            drop(matcher.join(&Filter::prefix(&format!("p{n}")), false));
            drop(matcher.join(&selector(&format!("{{\"n\":{n}}}")), false));
        }
        let groups = matcher.groups();
        assert!(groups.by_id.len() < 100, "{}", groups.by_id.len());
        assert!(groups.by_prefix.len() < 100, "{}", groups.by_prefix.len());
        assert!(groups.by_test.len() < 100, "{}", groups.by_test.len());
        assert_eq!(groups.prefix_lengths.values().sum::<usize>(), groups.by_prefix.len());
    }
}
