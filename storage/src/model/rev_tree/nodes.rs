//! A tree taken apart.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::{Ancestor, Ancestors, Leaf, Line, RevTree, Tip};
use crate::model::body_place::BodyPlace;
use crate::model::rev::{RevHash, RevId};
use crate::model::rev_path::RevPath;

/// A tree taken apart into revisions and links to their parents.
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: HashMap<RevId, Node>,
}

#[derive(Debug)]
struct Node {
    parent: Option<RevHash>,
    deleted: bool,
    body: BodyPlace,
    /// How many revisions the branch has whose leaf it is; 0 where it is none.
    branch_len: usize,
}

/// What a path does to a tree that is taken apart.
pub(super) enum Growth {
    /// All of it is there.
    Nothing,
    /// It makes a branch, or lengthens one.
    Branch {
        /// How many of its revisions are taken in, newest first.
        kept: usize,
        /// The newest of its revisions that is there.
        joint: Option<RevId>,
        /// How many revisions the branch has then.
        branch_len: usize,
    },
}

impl Nodes {
    pub(super) fn of(tree: &RevTree) -> Nodes {
        let mut nodes = Nodes { nodes: HashMap::new() };
        for leaf in tree.leaves() {
            let mut line = leaf.ancestors.recent.iter().peekable();
            let parent = line.peek().map(|parent| parent.hash.clone());
            let branch_len = leaf.branch_len();
            nodes.add(leaf.rev.clone(), Node { parent, deleted: leaf.deleted, body: leaf.body, branch_len });
            let mut generation = leaf.rev.generation;
            while let Some(ancestor) = line.next() {
                generation -= 1;
                let parent = line.peek().map(|parent| parent.hash.clone());
                let rev = RevId::new(generation, ancestor.hash.clone());
                nodes.add(rev, Node { parent, deleted: ancestor.deleted, body: ancestor.body, branch_len: 0 });
            }
        }
        nodes
    }

    pub(super) fn add_path(&mut self, path: &RevPath, deleted: bool, body: BodyPlace) {
        self.add_newest(path.hashes(), path.start(), deleted, body);
    }

    /// Adds the newest revisions of a path, down to one of which another parent is known: what the path has below that
    /// is no ancestor of anything.
    fn add_newest(&mut self, hashes: &[RevHash], start: u64, deleted: bool, body: BodyPlace) {
        for (steps, hash) in hashes.iter().enumerate() {
            let rev = RevId::new(start - steps as u64, hash.clone());
            let parent = hashes.get(steps + 1).cloned();
            // A revision that is known keeps its first body, or none.
            let brings_body = steps == 0 && !self.nodes.contains_key(&rev);
            let body = if brings_body { body } else { BodyPlace::Unknown };
            let known =
                self.add(rev, Node { parent: parent.clone(), deleted: steps == 0 && deleted, body, branch_len: 0 });
            if known.parent != parent {
                return;
            }
        }
    }

    /// Adds a revision; one that is known learns at most its parent, and its body. Gives it as it is then.
    fn add(&mut self, rev: RevId, node: Node) -> &Node {
        match self.nodes.entry(rev) {
            Entry::Vacant(slot) => slot.insert(node),
            Entry::Occupied(known) => {
                let known = known.into_mut();
                if known.parent.is_none() {
                    known.parent = node.parent;
                }
                if known.body == BodyPlace::Unknown && matches!(node.body, BodyPlace::Stored { .. } | BodyPlace::Empty)
                {
                    known.body = node.body;
                }
                known
            }
        }
    }

    /// Puts the tree together. Leaves that it had keep their length at least, so that lowering the limit changes no
    /// document by itself.
    pub(super) fn tree(&self, revs_limit: u32) -> RevTree {
        let is_parent: HashSet<RevId> = (self.nodes.iter())
            .filter_map(|(rev, node)| Some(RevId::new(rev.generation - 1, node.parent.clone()?)))
            .collect();
        let leaves = self.nodes.iter().filter(|(rev, _)| !is_parent.contains(rev));
        let leaves = leaves.map(|(rev, node)| self.leaf(rev, node, node.branch_len.max(revs_limit as usize)));
        RevTree::from_leaves(leaves.collect())
    }

    fn leaf(&self, rev: &RevId, node: &Node, branch_len_max: usize) -> Leaf {
        let ancestors = Ancestors { recent: self.line_from(rev, node, branch_len_max), ..Ancestors::default() };
        Leaf { rev: rev.clone(), deleted: node.deleted, body: node.body, ancestors }
    }

    fn line_from(&self, rev: &RevId, node: &Node, branch_len_max: usize) -> Line {
        let mut line = Line::default();
        let mut generation = rev.generation;
        let mut parent = node.parent.clone();
        while let Some(hash) = parent.take_if(|_| line.len() + 1 < branch_len_max) {
            generation -= 1;
            let known = self.nodes.get(&RevId::new(generation, hash.clone()));
            line.extend([known.map_or_else(
                || Ancestor::unknown(&hash),
                |node| Ancestor { hash: hash.clone(), deleted: node.deleted, body: node.body },
            )]);
            parent = known.and_then(|node| node.parent.clone());
        }
        line
    }

    /// A tree that a merge at large would give back as it is, taken apart; `None` if it is not, or not all at hand.
    pub(super) fn settled(tree: &RevTree, revs_limit: u32) -> Option<Nodes> {
        let at_hand = tree.leaves().iter().all(|leaf| leaf.ancestors.deeper == 0);
        let nodes = at_hand.then(|| Nodes::of(tree))?;
        (nodes.tree(revs_limit) == *tree).then_some(nodes)
    }

    /// What a path would do to what [`Nodes::settled`] took apart, looked up in the time of its branch's length. `None`
    /// where it does more than make a branch or lengthen one.
    pub(super) fn growth(&self, path: &RevPath, revs_limit: u32) -> Option<Growth> {
        let revs: Vec<RevId> = path.revs().collect();
        let new = revs.iter().position(|rev| self.nodes.contains_key(rev)).unwrap_or(revs.len());
        let known = &revs[new..];
        let parent_of = |rev: &RevId| self.nodes.get(rev)?.parent.as_ref();
        // Who tells of a parent that is not known, or is another one, may change other branches.
        if !known.is_sorted_by(|rev, parent| parent_of(rev) == Some(&parent.hash)) {
            return None;
        }
        if new == 0 {
            return Some(Growth::Nothing);
        }
        // Of a branch of its own nobody knows what is cut off.
        let kept = if known.is_empty() { new.min(revs_limit as usize) } else { revs.len() };
        let joint = known.first().cloned();
        let branch_len = kept.min(new) + joint.as_ref().and_then(|joint| self.branch_len(joint)).unwrap_or(0);
        (branch_len <= revs_limit as usize).then_some(Growth::Branch { kept, joint, branch_len })
    }

    /// Merges a path of which [`Nodes::growth`] says that it does this; says whether it brought something new.
    pub(super) fn grow(&mut self, path: &RevPath, deleted: bool, body: BodyPlace, growth: Growth) -> bool {
        let Growth::Branch { kept, joint, branch_len } = growth else { return false };
        self.add_newest(&path.hashes()[..kept], path.start(), deleted, body);
        self.set_branch_len(&path.rev(), branch_len);
        if let Some(joint) = joint {
            self.set_branch_len(&joint, 0);
        }
        true
    }

    fn set_branch_len(&mut self, rev: &RevId, branch_len: usize) {
        if let Some(node) = self.nodes.get_mut(rev) {
            node.branch_len = branch_len;
        }
    }

    /// How many revisions there are from this one down.
    fn branch_len(&self, rev: &RevId) -> Option<usize> {
        let node = self.nodes.get(rev)?;
        let is_leaf = node.branch_len > 0;
        Some(if is_leaf { node.branch_len } else { 1 + self.line_from(rev, node, usize::MAX).len() })
    }

    /// Puts together what has grown.
    pub(super) fn grown(&self) -> RevTree {
        let leaves = self.nodes.iter().filter(|(_, node)| node.branch_len > 0);
        RevTree::from_leaves(leaves.map(|(rev, node)| self.leaf(rev, node, node.branch_len)).collect())
    }

    /// The leaf with this revision: whether it is a tombstone, and where its body lies.
    pub(super) fn tip(&self, rev: &RevId) -> Option<Tip> {
        let leaf = self.nodes.get(rev).filter(|node| node.branch_len > 0)?;
        Some(Tip { deleted: leaf.deleted, body: leaf.body })
    }
}
