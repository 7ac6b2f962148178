//! A tree that paths keep coming to.

use super::nodes::{Growth, Nodes};
use super::{HistoryNeeded, Merge, RevTree, Tip};
use crate::model::body_place::BodyPlace;
use crate::model::rev::RevId;
use crate::model::rev_path::RevPath;

/// So many paths are merged one by one at least: taking a tree apart costs as much as a few of them.
const PATHS_FEW: u32 = 8;

/// A tree under edit. When many paths come to it one after the other it is taken apart, so that each of them costs its
/// own length however many leaves there are, until somebody looks at it.
#[derive(Debug)]
pub(crate) struct Growing {
    /// The tree as it was before it was taken apart.
    tree: RevTree,
    apart: Option<Apart>,
    /// How many paths came to the whole tree, or were tried on it.
    paths: u32,
    /// How many are to come before it is taken apart: the more, the less came of it before.
    paths_few: u32,
}

#[derive(Debug)]
struct Apart {
    nodes: Nodes,
    /// The limit under which it is settled.
    revs_limit: u32,
}

impl From<RevTree> for Growing {
    fn from(tree: RevTree) -> Growing {
        Growing { tree, apart: None, paths: 0, paths_few: PATHS_FEW }
    }
}

impl Growing {
    /// The tree, put together.
    pub fn whole(&mut self) -> &RevTree {
        if let Some(Apart { nodes, .. }) = self.apart.take() {
            self.tree = nodes.grown();
        }
        &self.tree
    }

    /// Puts another tree in its place.
    pub fn set(&mut self, tree: RevTree) {
        (self.tree, self.apart) = (tree, None);
    }

    /// Puts a new revision on top of the leaf `parent` as [`RevTree::extend`] does; says whether that is a leaf.
    pub fn extend(
        &mut self,
        parent: Option<&RevId>,
        rev: RevId,
        deleted: bool,
        body: BodyPlace,
        revs_limit: u32,
    ) -> bool {
        self.whole();
        self.tree.extend(parent, rev, deleted, body, revs_limit)
    }

    /// Merges a path as [`RevTree::merge`] does; says whether it brought something new.
    ///
    /// # Errors
    /// [`HistoryNeeded`].
    pub fn merge(
        &mut self,
        path: &RevPath,
        deleted: bool,
        body: BodyPlace,
        revs_limit: u32,
    ) -> Result<bool, HistoryNeeded> {
        if let Some(growth) = self.growth_apart(path, revs_limit)
            && let Some(Apart { nodes, .. }) = &mut self.apart
        {
            return Ok(nodes.grow(path, deleted, body, growth));
        }
        let merge = self.whole().merge(path, deleted, body, revs_limit)?;
        Ok(match merge {
            Merge::Known => false,
            Merge::Changed(tree) => {
                self.tree = tree;
                true
            }
        })
    }

    /// Whether [`Growing::merge`] would bring something new.
    ///
    /// # Errors
    /// [`HistoryNeeded`].
    pub fn would_merge(
        &mut self,
        path: &RevPath,
        deleted: bool,
        body: BodyPlace,
        revs_limit: u32,
    ) -> Result<bool, HistoryNeeded> {
        match self.growth_apart(path, revs_limit) {
            Some(growth) => Ok(!matches!(growth, Growth::Nothing)),
            None => Ok(self.whole().merge(path, deleted, body, revs_limit)? != Merge::Known),
        }
    }

    /// Takes note of a path that comes, and takes the tree apart when there have been many. Gives what the path does to
    /// the tree while that is apart; `None` where the tree has to be whole for it.
    fn growth_apart(&mut self, path: &RevPath, revs_limit: u32) -> Option<Growth> {
        if self.apart.is_none() && self.paths >= self.paths_few {
            (self.paths, self.paths_few) = (0, self.paths_few.saturating_mul(2));
            self.apart = Nodes::settled(&self.tree, revs_limit).map(|nodes| Apart { nodes, revs_limit });
        }
        let apart = self.apart.as_ref().filter(|apart| apart.revs_limit == revs_limit);
        let growth = apart.and_then(|apart| apart.nodes.growth(path, revs_limit));
        match growth {
            Some(_) => self.paths_few = (self.paths_few / 2).max(PATHS_FEW),
            None => self.paths += 1,
        }
        growth
    }

    /// The leaf with this revision.
    pub fn tip(&self, rev: &RevId) -> Option<Tip> {
        match &self.apart {
            Some(apart) => apart.nodes.tip(rev),
            None => self.tree.leaf(rev).map(|leaf| Tip { deleted: leaf.deleted, body: leaf.body }),
        }
    }
}
