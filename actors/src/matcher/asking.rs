//! Asks groups whether the rows of a commit concern them.

use std::collections::HashMap;
use std::sync::Arc;

use super::groups::Group;
use super::place::Place;
use crate::metrics::FilterMetrics;
use crate::row::Row;
use crate::selector::DocView;

/// How many steps selectors take over one commit before anyone is woken. A group that would be asked beyond that is
/// woken unasked, and its feeds ask on their own threads: showing some 20,000 small documents to a condition takes
/// 2 ms, or 20 where the selectors are not in the processor's cache, and all databases' writers wait so long.
const STEPS_A_COMMIT_MAX: usize = 8 << 20;

/// What is known of groups while the rows of a commit are gone through.
pub(super) struct Asking<'a> {
    concerned: HashMap<*const Group, Arc<Group>>,
    /// The groups of each place met so far that no row has concerned yet.
    unconcerned: HashMap<*const Place, Vec<Arc<Group>>>,
    /// Those that were taken.
    steps: usize,
    counted: &'a FilterMetrics,
}

impl Asking<'_> {
    pub fn new(counted: &FilterMetrics) -> Asking<'_> {
        Asking { concerned: HashMap::new(), unconcerned: HashMap::new(), steps: 0, counted }
    }

    /// Asks the groups of a place, which stays where it is for as long as this lives, about a row.
    pub fn ask(&mut self, place: &mut Place, row: &Row, winner: Option<&DocView<'_>>) {
        let Asking { concerned, unconcerned, steps, counted } = self;
        let waiting = unconcerned.entry(&raw const *place).or_insert_with(|| place.groups());
        let now = waiting.extract_if(.., |group| {
            if concerned.contains_key(&Arc::as_ptr(group)) {
                return true;
            }
            *steps += group.steps(row);
            *steps > STEPS_A_COMMIT_MAX || group.may_wait_for(row, winner, counted)
        });
        let now: Vec<Arc<Group>> = now.collect();
        concerned.extend(now.into_iter().map(|group| (Arc::as_ptr(&group), group)));
    }

    /// Those that a row concerns, each once.
    pub fn concerned(self) -> Vec<Arc<Group>> {
        self.concerned.into_values().collect()
    }
}
