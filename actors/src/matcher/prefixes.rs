//! Groups by the start of the ids they wait for.

use std::collections::HashMap;
use std::sync::Arc;

use super::groups::Group;
use super::place::{Place, forget_the_gone};

/// Places by prefix. An id is looked up once for each length that a prefix has.
#[derive(Default)]
pub(super) struct PrefixIndex {
    places: HashMap<Arc<str>, Place>,
    /// How many prefixes there are of each length.
    lengths: HashMap<usize, usize>,
}

impl PrefixIndex {
    pub fn add(&mut self, prefix: &Arc<str>, group: &Arc<Group>) {
        let place = self.places.entry(Arc::clone(prefix)).or_insert_with(|| {
            *self.lengths.entry(prefix.len()).or_default() += 1;
            Place::default()
        });
        place.add(group);
    }

    /// How many groups stand under a prefix.
    pub fn crowd(&self, prefix: &str) -> usize {
        self.places.get(prefix).map_or(0, Place::crowd)
    }

    /// The places of the prefixes that an id starts with.
    pub fn each_place(&mut self, id: &str, mut visit: impl FnMut(&mut Place)) {
        for length in self.lengths.keys() {
            if let Some(place) = id.get(..*length).and_then(|prefix| self.places.get_mut(prefix)) {
                visit(place);
            }
        }
    }

    /// Drops the groups nobody is in; gives how many are left.
    pub fn forget_the_gone(&mut self) -> usize {
        let left = forget_the_gone(&mut self.places);
        self.lengths.clear();
        for prefix in self.places.keys() {
            *self.lengths.entry(prefix.len()).or_default() += 1;
        }
        left
    }
}
