//! Where groups stand together: under an id, a key, a prefix, or in a list of their own.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::groups::Group;

/// Groups. One whose last subscriber has left is dropped when it is next met.
#[derive(Default)]
pub(super) struct Place(Vec<Weak<Group>>);

impl Place {
    pub fn add(&mut self, group: &Arc<Group>) {
        self.0.push(Arc::downgrade(group));
    }

    /// The groups that someone is in.
    pub fn groups(&mut self) -> Vec<Arc<Group>> {
        let mut groups = Vec::with_capacity(self.0.len());
        self.0.retain(|group| {
            let group = group.upgrade();
            let subscribed = group.is_some();
            groups.extend(group);
            subscribed
        });
        groups
    }

    /// The first group of which this is true.
    pub fn find(&self, is_it: impl Fn(&Group) -> bool) -> Option<Arc<Group>> {
        self.0.iter().filter_map(Weak::upgrade).find(|group| is_it(group))
    }

    /// How many groups stand here, those included that nobody is in any more.
    pub fn crowd(&self) -> usize {
        self.0.len()
    }

    /// Drops the groups nobody is in; gives how many are left.
    pub fn forget_the_gone(&mut self) -> usize {
        self.0.retain(|group| group.strong_count() > 0);
        self.0.len()
    }
}

/// Drops the groups nobody is in, and the places where none is left; gives how many are.
pub(super) fn forget_the_gone<K>(places: &mut HashMap<K, Place>) -> usize {
    let mut left = 0;
    places.retain(|_, place| {
        let here = place.forget_the_gone();
        left += here;
        here > 0
    });
    left
}
