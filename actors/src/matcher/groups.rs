//! The groups, and where each is found: under what must be so of every change that concerns it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use seqtide_storage::model::doc_id::DocId;
use tokio::sync::watch;

use super::Mark;
use super::asking::Asking;
use super::place::{Place, forget_the_gone};
use super::prefixes::PrefixIndex;
use super::terms::TermIndex;
use crate::filter::{Filter, Passed};
use crate::metrics::FilterMetrics;
use crate::row::Row;
use crate::selector::{DocView, Selector};

/// Below so many places nothing is cleared out.
const PLACES_MIN: usize = 64;

/// Subscribers that wait for the same changes.
pub(super) struct Group {
    pub woken: watch::Sender<Mark>,
    pub filter: Filter,
    all_leaves: bool,
}

impl Group {
    /// Whether a row may concern the group, as far as that can be told here.
    pub fn may_wait_for(&self, row: &Row, winner: Option<&DocView<'_>>, counted: &FilterMetrics) -> bool {
        let Filter { ids, test, .. } = &self.filter;
        ids.contains(row.change().id.as_str())
            && !matches!(row.judge(test, winner, self.all_leaves, counted), Ok(Passed::Nothing))
    }

    /// How many steps it takes to tell, roughly and at most; none where it may take long, as that is not done here.
    pub fn steps(&self, row: &Row) -> usize {
        let (test, change) = (&self.filter.test, row.change());
        if test.takes_long(change) { 0 } else { test.steps(change) }
    }

    fn is_of(&self, filter: &Filter, all_leaves: bool) -> bool {
        self.all_leaves == all_leaves && self.filter == *filter
    }

    /// Whether the selector looks at losing leaves.
    fn opens_losers(&self) -> bool {
        self.all_leaves && self.filter.test.selector.is_some()
    }
}

/// Groups that wait for some changes only. Each stands where few others do: under its ids, under a term of its selector
/// or its prefix, or else among those that every change is shown to.
#[derive(Default)]
pub(super) struct Groups {
    by_id: HashMap<DocId, Place>,
    by_term: TermIndex,
    by_prefix: PrefixIndex,
    others: Place,
    /// Once more, whatever a losing leaf may concern: indexes know of winners.
    opening_losers: Place,
    /// Once more, those without listed ids, by hash: equal filters share a group.
    shared: HashMap<u64, Place>,
    hashes: RandomState,
    /// In how many places groups stand, those included that nobody is in any more.
    pub places: usize,
    /// How many were left when these were forgotten last.
    places_kept: usize,
}

impl Groups {
    /// The group that waits for what passes the filter, of all ids or those with a prefix.
    pub fn join(&mut self, filter: &Filter, prefix: Option<&Arc<str>>, all_leaves: bool) -> Arc<Group> {
        let hash = self.hashes.hash_one((prefix, &filter.test, &filter.function, all_leaves));
        if let Some(same) = self.shared.get(&hash).and_then(|place| place.find(|it| it.is_of(filter, all_leaves))) {
            return same;
        }
        let group = self.new_group(filter, all_leaves);
        self.shared.entry(hash).or_default().add(&group);
        let keys = self.stand(&group, prefix);
        self.stands_in(1 + keys);
        group
    }

    /// A group by itself, as each list of ids has one: they are not compared. It stands under no id yet.
    pub fn new_group(&mut self, filter: &Filter, all_leaves: bool) -> Arc<Group> {
        let group = Arc::new(Group { woken: watch::Sender::default(), filter: filter.clone(), all_leaves });
        if group.opens_losers() {
            self.opening_losers.add(&group);
            self.stands_in(1);
        }
        group
    }

    /// Puts a group under some of its ids.
    pub fn stand_under(&mut self, ids: &[&DocId], group: &Arc<Group>) {
        for id in ids {
            self.by_id.entry((*id).clone()).or_default().add(group);
        }
        self.stands_in(ids.len());
    }

    /// Puts a group where few others stand, so that `{"type":"order","owner":7}` is found by its owner where thousands
    /// wait for orders. Gives in how many places it stands.
    fn stand(&mut self, group: &Arc<Group>, prefix: Option<&Arc<str>>) -> usize {
        let terms = group.filter.test.selector.as_ref().map(Selector::equality_terms).unwrap_or_default();
        let crowds = terms.iter().filter_map(|term| Some((self.by_term.crowd(term)?, term.keys.len(), term)));
        let term = crowds.min_by_key(|(crowd, keys, _)| (*crowd, *keys));
        match (term, prefix) {
            (Some((crowd, keys, term)), prefix)
                if prefix.is_none_or(|prefix| crowd <= self.by_prefix.crowd(prefix)) =>
            {
                self.by_term.add(term, group);
                keys
            }
            (_, Some(prefix)) => {
                self.by_prefix.add(prefix, group);
                1
            }
            (_, None) => {
                self.others.add(group);
                1
            }
        }
    }

    /// Clears out groups nobody is in whenever the places have doubled since the last time: cheap on the whole, and the
    /// places stay in proportion to the subscribers there are.
    fn stands_in(&mut self, places: usize) {
        self.places += places;
        if self.places < PLACES_MIN.max(2 * self.places_kept) {
            return;
        }
        let mut left = self.by_term.forget_the_gone() + self.by_prefix.forget_the_gone();
        left += self.others.forget_the_gone() + self.opening_losers.forget_the_gone();
        left += forget_the_gone(&mut self.by_id) + forget_the_gone(&mut self.shared);
        (self.places, self.places_kept) = (left, left);
    }

    /// The groups that these rows concern, or may concern as far as that can be told here; each once.
    pub fn concerned_by(&mut self, rows: &[Arc<Row>], counted: &FilterMetrics) -> Vec<Arc<Group>> {
        if self.places == 0 {
            return Vec::new();
        }
        let mut asking = Asking::new(counted);
        for row in rows {
            let change = row.change();
            let winner = DocView::of_winner(change);
            let mut ask = |place: &mut Place| asking.ask(place, row, winner.as_ref());
            if let Some(place) = self.by_id.get_mut(change.id.as_str()) {
                ask(place);
            }
            self.by_prefix.each_place(change.id.as_str(), &mut ask);
            if let Some(winner) = &winner {
                self.by_term.each_place(winner, &mut ask);
            }
            // Seldom: the document is in conflict, or was.
            if change.leaves.len() > 1 {
                ask(&mut self.opening_losers);
            }
            ask(&mut self.others);
        }
        asking.concerned()
    }
}
