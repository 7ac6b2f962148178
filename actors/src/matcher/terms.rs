//! Groups by an equality or `$in` term of their selectors.

use std::collections::HashMap;
use std::sync::Arc;

use super::groups::Group;
use super::place::{Place, forget_the_gone};
use crate::selector::{DocView, EqualityTerm, FieldPath, ScalarKey};

/// Most fields that groups stand under: a document is looked up once for each.
const FIELDS_MAX: usize = 32;
/// Most keys of a term that is stood under.
const TERM_KEYS_MAX: usize = 1_000;
/// Most keys of a document that are looked up for a field. One with more is a candidate for all that stand there.
const DOCUMENT_KEYS_MAX: usize = 1_000;

/// Places by field and key.
#[derive(Default)]
pub(super) struct TermIndex(HashMap<FieldPath, HashMap<ScalarKey, Place>>);

impl TermIndex {
    /// How many groups a group would stand with; `None` when it may not stand under this term.
    pub fn crowd(&self, term: &EqualityTerm) -> Option<usize> {
        if term.keys.len() > TERM_KEYS_MAX {
            return None;
        }
        match self.0.get(&term.path) {
            Some(places) => Some(term.keys.iter().filter_map(|key| places.get(key)).map(Place::crowd).sum()),
            None => (self.0.len() < FIELDS_MAX).then_some(0),
        }
    }

    /// Puts a group under each key of a term: under none, it is never found.
    pub fn add(&mut self, term: &EqualityTerm, group: &Arc<Group>) {
        let places = self.0.entry(term.path.clone()).or_default();
        for key in &term.keys {
            places.entry(*key).or_default().add(group);
        }
    }

    /// The places under the keys of a document; one may be given several times.
    pub fn each_place(&mut self, document: &DocView<'_>, mut visit: impl FnMut(&mut Place)) {
        for (path, places) in &mut self.0 {
            let mut keys = document.scalar_keys(path);
            for key in keys.by_ref().take(DOCUMENT_KEYS_MAX) {
                if let Some(place) = places.get_mut(&key) {
                    visit(place);
                }
            }
            if keys.next().is_some() {
                places.values_mut().for_each(&mut visit);
            }
        }
    }

    /// Drops the groups nobody is in; gives in how many places the others stand.
    pub fn forget_the_gone(&mut self) -> usize {
        let mut left = 0;
        self.0.retain(|_, places| {
            left += forget_the_gone(places);
            !places.is_empty()
        });
        left
    }
}
