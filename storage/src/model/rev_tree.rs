//! The revision tree of a document, kept as its leaves, each with its line of ancestors.
//!
//! A revision is known by its generation and hash, and has at most one parent, the first that is told of it; what is
//! not an ancestor of another revision is a leaf. The first leaf is the winner. Source: CouchDB `couch_key_tree` and
//! `couch_doc:to_doc_info_path`.
//!
//! Old ancestors may stay on disk (`deeper`, in `chunks`): most edits extend a leaf and need none of them. A merge that
//! does need them says so ([`HistoryNeeded`]) and is asked again with [`RevTree::with_history`].

use std::cmp::Ordering;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::body_place::BodyPlace;
use super::rev::{RevHash, RevId};
use super::rev_path::RevPath;

use self::nodes::Nodes;

pub(crate) use self::growing::Growing;
pub use self::line::Line;
pub use self::looking_up::Found;

mod growing;
mod line;
mod looking_up;
mod nodes;

/// All revisions of a document that are known. Leaves stand in winning order. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevTree {
    leaves: Arc<Vec<Leaf>>,
}

/// The tip of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its revision.
    pub rev: RevId,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// Where its body lies.
    pub body: BodyPlace,
    /// What it came from.
    pub ancestors: Ancestors,
}

/// What a leaf is apart from its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tip {
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// Where its body lies.
    pub body: BodyPlace,
}

/// A revision that is not a leaf; its generation follows from its place in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Its hash.
    pub hash: RevHash,
    /// Whether it is a tombstone that was built on, as when a deleted document is made again.
    pub deleted: bool,
    /// Where its body lay when it was last a leaf.
    pub body: BodyPlace,
}

/// A leaf's ancestors, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ancestors {
    /// The newest ones, at hand.
    pub recent: Line,
    /// The numbers of the history chunks that hold the older ones, newest first.
    pub chunks: Vec<u32>,
    /// How many older ones there are, in the chunks.
    pub deeper: u32,
}

impl Ancestor {
    /// One of which only the id was received.
    fn unknown(hash: &RevHash) -> Ancestor {
        Ancestor { hash: hash.clone(), deleted: false, body: BodyPlace::Unknown }
    }
}

impl Ancestors {
    /// How many ancestors are known, at hand or not.
    pub fn len(&self) -> usize {
        self.recent.len() + self.deeper as usize
    }

    /// Whether the leaf is a root.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all but the newest `keep` ancestors.
    fn stem(&mut self, keep: usize) {
        self.recent.truncate(keep);
        let deeper_kept = keep.saturating_sub(self.recent.len());
        self.deeper = self.deeper.min(u32::try_from(deeper_kept).unwrap_or(u32::MAX));
    }
}

impl Leaf {
    /// How many revisions its branch has, itself included.
    pub fn branch_len(&self) -> usize {
        1 + self.ancestors.len()
    }

    /// The generation of the oldest revision of the branch that is known.
    pub(crate) fn root_generation(&self) -> u64 {
        self.rev.generation.saturating_sub(self.ancestors.len() as u64)
    }

    fn winning_order(&self, other: &Leaf) -> Ordering {
        self.order_to(other.deleted, &other.rev)
    }

    /// Whether it stands before or behind the leaf with this revision.
    fn order_to(&self, deleted: bool, rev: &RevId) -> Ordering {
        self.deleted.cmp(&deleted).then_with(|| rev.cmp(&self.rev))
    }

    /// Where `rev` would stand on this branch: 0 for the leaf itself, 1 for its parent.
    fn steps_to(&self, generation: u64) -> Option<usize> {
        usize::try_from(self.rev.generation.checked_sub(generation)?).ok()
    }

    /// The ancestors down to a generation, newest first, in as much as `line` has of them.
    fn down_to<'l>(&self, generation: u64, line: &'l Line) -> impl Iterator<Item = (u64, Ancestor)> + 'l {
        (generation..self.rev.generation).rev().zip(line.iter())
    }

    /// Whether an ancestor of these generations is known, but not at hand.
    fn has_deeper(&self, generations: &RangeInclusive<u64>) -> bool {
        let at_hand_from = self.rev.generation.saturating_sub(self.ancestors.recent.len() as u64);
        let (oldest, newest) = (generations.start(), generations.end());
        self.ancestors.deeper > 0 && *oldest < at_hand_from && *newest >= self.root_generation()
    }
}

/// Whether a revision is in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Present {
        /// Whether it is a tombstone.
        deleted: bool,
        /// Where its body lies.
        body: BodyPlace,
    },
    /// It is not.
    Absent,
    /// Only the older ancestors can tell.
    HistoryNeeded,
}

/// What merging a path did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// Nothing: all of it was known.
    Known,
    /// It brought something new. The path's own revision may still have been known (only ancestors were new).
    Changed(RevTree),
}

/// What is to be found out needs ancestors that are not at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryNeeded;

impl RevTree {
    /// A tree from its leaves, in any order.
    pub fn from_leaves(mut leaves: Vec<Leaf>) -> RevTree {
        leaves.sort_by(Leaf::winning_order);
        RevTree { leaves: Arc::new(leaves) }
    }

    /// A tree from leaves that stand in winning order; `None` when they do not, or one stands there twice.
    pub(crate) fn from_stored(leaves: Vec<Leaf>) -> Option<RevTree> {
        leaves.is_sorted_by(|leaf, next| leaf.winning_order(next).is_lt()).then(|| RevTree { leaves: Arc::new(leaves) })
    }

    /// The leaves, deleted ones too, winner first.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The leaves, to be changed in what does not decide their order.
    pub(crate) fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Leaf> {
        Arc::make_mut(&mut self.leaves).iter_mut()
    }

    /// The leaf that stands for the document; `None` only in the tree of a document that never was.
    pub fn winner(&self) -> Option<&Leaf> {
        self.leaves.first()
    }

    /// Whether the document is there: its winner is no tombstone.
    pub fn is_live(&self) -> bool {
        self.winner().is_some_and(|winner| !winner.deleted)
    }

    /// The leaf with this revision.
    pub fn leaf(&self, rev: &RevId) -> Option<&Leaf> {
        self.place_of(rev).map(|at| &self.leaves[at])
    }

    /// Where a leaf stands. Their order tells: there may be thousands, and all may be asked for.
    fn place_of(&self, rev: &RevId) -> Option<usize> {
        let among = |deleted| self.leaves.binary_search_by(|leaf| leaf.order_to(deleted, rev)).ok();
        among(false).or_else(|| among(true))
    }

    /// The leaves of a later generation, the only ones that may have an ancestor of this one; best first.
    fn leaves_above(&self, generation: u64) -> impl Iterator<Item = &Leaf> {
        let (live, deleted) = self.leaves.split_at(self.leaves.partition_point(|leaf| !leaf.deleted));
        let above = move |leaves: &[Leaf]| leaves.partition_point(|leaf| leaf.rev.generation > generation);
        live[..above(live)].iter().chain(&deleted[..above(deleted)])
    }

    /// Looks a revision up among leaves and ancestors.
    pub fn find(&self, rev: &RevId) -> Presence {
        if let Some(Leaf { deleted, body, .. }) = self.leaf(rev) {
            return Presence::Present { deleted: *deleted, body: *body };
        }
        let (mut answer, generation) = (Presence::Absent, rev.generation);
        for leaf in self.leaves_above(generation) {
            match leaf.down_to(generation, &leaf.ancestors.recent).find(|(at, _)| *at == generation) {
                Some((_, Ancestor { hash, deleted, body })) if hash == rev.hash => {
                    return Presence::Present { deleted, body };
                }
                None if leaf.has_deeper(&(generation..=generation)) => answer = Presence::HistoryNeeded,
                _ => {}
            }
        }
        answer
    }

    /// The same tree with every leaf's ancestors at hand, as `load` gives them (all of them, newest first).
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn with_history<E>(&self, mut load: impl FnMut(&Leaf) -> Result<Line, E>) -> Result<RevTree, E> {
        let mut tree = self.clone();
        for leaf in tree.leaves_mut().filter(|leaf| leaf.ancestors.deeper > 0) {
            let recent = load(leaf)?;
            leaf.ancestors = Ancestors { recent, chunks: Vec::new(), deeper: 0 };
        }
        Ok(tree)
    }

    /// Puts a new revision on top of the leaf `parent`, or as a new root; branches keep at most `revs_limit` revisions.
    /// Says whether `parent` is a leaf, and stays as it is if not.
    pub fn extend(
        &mut self,
        parent: Option<&RevId>,
        rev: RevId,
        deleted: bool,
        body: BodyPlace,
        revs_limit: u32,
    ) -> bool {
        let at = match parent.map(|parent| self.place_of(parent)) {
            Some(None) => return false,
            at => at.flatten(),
        };
        let ancestors = at.map_or_else(Ancestors::default, |at| lineage(&self.leaves[at], &[], revs_limit));
        self.put_leaf(Leaf { rev, deleted, body, ancestors }, at);
        true
    }

    /// Takes a new leaf, in the place of the one it was built on.
    fn put_leaf(&mut self, leaf: Leaf, instead_of: Option<usize>) {
        // Where nobody else has the tree, the other leaves need not be copied: there may be thousands.
        if let Some(leaves) = Arc::get_mut(&mut self.leaves) {
            match instead_of {
                Some(at) => drop(leaves.remove(at)),
                // Most trees have one leaf, and there are many trees.
                None => leaves.reserve_exact(1),
            }
            let at = leaves.partition_point(|other| other.winning_order(&leaf).is_lt());
            leaves.insert(at, leaf);
        } else {
            *self = self.with_leaf(leaf, instead_of);
        }
    }

    /// The tree with a new leaf, which takes the place of the one it was built on.
    fn with_leaf(&self, leaf: Leaf, instead_of: Option<usize>) -> RevTree {
        let others = self.leaves.iter().enumerate().filter(|(at, _)| Some(*at) != instead_of);
        // Most trees have one leaf, and there are many trees.
        let mut leaves = Vec::with_capacity(self.leaves.len() + usize::from(instead_of.is_none()));
        leaves.extend(others.map(|(_, other)| other.clone()));
        leaves.push(leaf);
        RevTree::from_leaves(leaves)
    }

    /// Merges a replicated path; the body belongs to its newest revision. A revision that is known already keeps its
    /// first body, and one cut off by stemming comes back as a root of its own, as in CouchDB.
    ///
    /// # Errors
    /// [`HistoryNeeded`] when ancestors that are not at hand decide.
    pub fn merge(
        &self,
        path: &RevPath,
        deleted: bool,
        body: BodyPlace,
        revs_limit: u32,
    ) -> Result<Merge, HistoryNeeded> {
        let rev = path.rev();
        if self.leaves.is_empty() {
            let ancestors = unknown_ancestors(path.hashes(), revs_limit);
            return Ok(Merge::Changed(RevTree::from_leaves(vec![Leaf { rev, deleted, body, ancestors }])));
        }
        if self.knows_whole_path(path, revs_limit) {
            return Ok(Merge::Known);
        }
        if let Some((leaf, steps)) = self.leaf_under_path(path, revs_limit) {
            let ancestors = lineage(&self.leaves[leaf], &path.hashes()[1..steps], revs_limit);
            return Ok(Merge::Changed(self.with_leaf(Leaf { rev, deleted, body, ancestors }, Some(leaf))));
        }
        if self.leaves.iter().any(|leaf| leaf.ancestors.deeper > 0) {
            return Err(HistoryNeeded);
        }
        Ok(self.merge_at_large(path, deleted, body, revs_limit))
    }

    /// Whether the path's revision is at hand and no ancestor in the path could be new.
    fn knows_whole_path(&self, path: &RevPath, revs_limit: u32) -> bool {
        self.leaves.iter().any(|leaf| {
            let Some(steps) = leaf.steps_to(path.start()) else {
                return false;
            };
            let known = match steps.checked_sub(1) {
                None => leaf.rev.hash == path.hashes()[0],
                Some(at) => leaf.ancestors.recent.get(at).is_some_and(|found| found.hash == path.hashes()[0]),
            };
            known && self.nothing_older(path.hashes().len(), leaf, steps, revs_limit)
        })
    }

    /// The leaf that the path extends, and at which step of the path it stands, if no ancestor below it could be new.
    fn leaf_under_path(&self, path: &RevPath, revs_limit: u32) -> Option<(usize, usize)> {
        let step_in_path = |leaf: &Leaf| {
            let steps = usize::try_from(path.start().checked_sub(leaf.rev.generation)?).ok()?;
            (path.hashes().get(steps)? == &leaf.rev.hash).then_some(steps)
        };
        let (at, steps) = (self.leaves.iter().enumerate())
            .filter_map(|(at, leaf)| Some((at, step_in_path(leaf)?)))
            .min_by_key(|(_, steps)| *steps)?;
        let leaf = &self.leaves[at];
        // A root above the leaf may be one of the path's own revisions.
        let roots_below = self.leaves.iter().all(|other| other.root_generation() <= leaf.rev.generation);
        // Nor may one that is known, and has a parent, be had once more with another one.
        let new = || path.revs().take(steps).all(|rev| self.find(&rev) == Presence::Absent);
        let nothing_older = || self.nothing_older(path.hashes().len() - steps, leaf, 0, revs_limit);
        (steps > 0 && roots_below && nothing_older() && new()).then_some((at, steps))
    }

    /// Whether a path that reaches `path_len` revisions down from the leaf's `steps`-th revision holds none that the
    /// tree does not have, or could not keep. What lies below a branch that is cut may still join other branches.
    fn nothing_older(&self, path_len: usize, leaf: &Leaf, steps: usize, revs_limit: u32) -> bool {
        let could_not_keep = self.leaves.len() == 1 && leaf.branch_len() >= revs_limit as usize;
        path_len + steps <= leaf.branch_len() || could_not_keep
    }

    /// Merges by the union of all parent links: order-free, whatever the path touches.
    fn merge_at_large(&self, path: &RevPath, deleted: bool, body: BodyPlace, revs_limit: u32) -> Merge {
        let mut nodes = Nodes::of(self);
        nodes.add_path(path, deleted, body);
        let merged = nodes.tree(revs_limit);
        if merged == *self { Merge::Known } else { Merge::Changed(merged) }
    }
}

/// The ancestors of a revision above `leaf`, with revisions in between of which only the hash is known.
fn lineage(leaf: &Leaf, between: &[RevHash], revs_limit: u32) -> Ancestors {
    let Ancestors { recent: older, chunks, deeper } = &leaf.ancestors;
    let parent = Ancestor { hash: leaf.rev.hash.clone(), deleted: leaf.deleted, body: leaf.body };
    let newer = between.iter().map(Ancestor::unknown).chain([parent]);
    let mut ancestors = Ancestors { recent: Line::before(newer, older), chunks: chunks.clone(), deeper: *deeper };
    ancestors.stem(revs_limit.saturating_sub(1) as usize);
    ancestors
}

fn unknown_ancestors(hashes: &[RevHash], revs_limit: u32) -> Ancestors {
    let older = hashes.iter().take(revs_limit as usize).skip(1);
    let recent = older.map(Ancestor::unknown).collect();
    Ancestors { recent, ..Ancestors::default() }
}

#[cfg(test)]
mod tests;
