//! Looking revisions up along the branches of a tree. There may be many of both: each branch is walked once, and no
//! further than the oldest of the revisions may be; of history that is not at hand, one branch is in memory at a time.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::{Ancestor, Leaf, Line, RevTree};
use crate::model::body_place::BodyPlace;
use crate::model::rev::RevId;

/// A revision that is in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'t> {
    /// The leaf that it is or became, one of them.
    pub leaf: &'t Leaf,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// Where its body lies.
    pub body: BodyPlace,
}

impl RevTree {
    /// Looks revisions up among leaves and all ancestors, tells each of them that is there once, and gives those that
    /// are not. `load` gives all ancestors of a leaf, newest first, where the ones at hand do not tell.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn look_up<'t, 'r, E>(
        &'t self,
        revs: &'r [RevId],
        mut load: impl FnMut(&Leaf) -> Result<Line, E>,
        mut found: impl FnMut(&'r RevId, Found<'t>),
    ) -> Result<HashSet<&'r RevId>, E> {
        let mut sought: HashSet<&RevId> = revs.iter().collect();
        sought.retain(|rev| match self.leaf(rev) {
            Some(leaf) => {
                found(rev, Found { leaf, deleted: leaf.deleted, body: leaf.body });
                false
            }
            None => true,
        });
        let mut walk = |sought: &mut HashSet<&'r RevId>, leaf: &'t Leaf, line: &Line, oldest: u64| {
            for (generation, Ancestor { hash, deleted, body }) in leaf.down_to(oldest, line) {
                if sought.is_empty() {
                    return;
                }
                if let Some(rev) = sought.take(&RevId { generation, hash }) {
                    found(rev, Found { leaf, deleted, body });
                }
            }
        };
        let Some(generations) = generations(&sought) else { return Ok(sought) };
        for leaf in self.leaves_above(*generations.start()) {
            walk(&mut sought, leaf, &leaf.ancestors.recent, *generations.start());
        }
        let Some(generations) = self::generations(&sought) else { return Ok(sought) };
        for leaf in self.leaves_above(*generations.start()).filter(|leaf| leaf.has_deeper(&generations)) {
            if sought.is_empty() {
                break;
            }
            walk(&mut sought, leaf, &load(leaf)?, *generations.start());
        }
        Ok(sought)
    }

    /// Tells the leaves that revisions are or became, each with those that it stands for; a leaf that is one of them
    /// and stands for others too is told twice. `load` gives all ancestors of a leaf, newest first, where the ones at
    /// hand do not tell.
    ///
    /// # Errors
    /// What `load` or `under` fails with.
    pub fn leaves_under<'t, 'r, E>(
        &'t self,
        revs: &'r [RevId],
        mut load: impl FnMut(&Leaf) -> Result<Line, E>,
        mut under: impl FnMut(&'t Leaf, &[&'r RevId]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut older = HashSet::new();
        for rev in revs {
            match self.leaf(rev) {
                // It is nobody's ancestor.
                Some(leaf) => under(leaf, &[rev])?,
                None => _ = older.insert(rev),
            }
        }
        let Some(generations) = generations(&older) else { return Ok(()) };
        let oldest = *generations.start();
        let mut on_branch = Vec::new();
        for leaf in self.leaves_above(oldest) {
            let mut walk = |line: &Line| {
                let revs =
                    leaf.down_to(oldest, line).map(|(generation, Ancestor { hash, .. })| RevId { generation, hash });
                on_branch.extend(revs.filter_map(|rev| older.get(&rev).copied()));
            };
            match leaf.has_deeper(&generations) {
                true => walk(&load(leaf)?),
                false => walk(&leaf.ancestors.recent),
            }
            if !on_branch.is_empty() {
                under(leaf, &on_branch)?;
                on_branch.clear();
            }
        }
        Ok(())
    }
}

/// From the oldest to the newest; `None` where there are no revisions.
fn generations(revs: &HashSet<&RevId>) -> Option<RangeInclusive<u64>> {
    let generations = || revs.iter().map(|rev| rev.generation);
    Some(generations().min()?..=generations().max()?)
}
