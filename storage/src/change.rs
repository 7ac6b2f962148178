//! A change as feeds show it.

use crate::json::Body;
use crate::model::doc_id::DocId;
use crate::model::rev::RevId;
use crate::model::rev_tree::{Leaf, RevTree};
use crate::model::sequence::Sequence;
use crate::snapshot::Detail;

/// A leaf as a feed lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafRev {
    /// Its revision.
    pub rev: RevId,
    /// Whether it is a tombstone.
    pub deleted: bool,
}

impl From<&Leaf> for LeafRev {
    fn from(leaf: &Leaf) -> LeafRev {
        LeafRev { rev: leaf.rev.clone(), deleted: leaf.deleted }
    }
}

/// A document at its latest sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The sequence of the latest write to the document's tree.
    pub seq: Sequence,
    /// The document.
    pub id: DocId,
    /// Its leaves, the winner first: all of them when they were asked for, else the winner alone.
    pub leaves: Vec<LeafRev>,
    /// The winner's body, when it was asked for.
    pub body: Option<Body>,
}

impl AsRef<Change> for Change {
    fn as_ref(&self) -> &Change {
        self
    }
}

impl Change {
    /// About how many bytes it has where so much of it is shown.
    pub fn bytes(&self, detail: Detail) -> usize {
        let body = self.body.as_ref().filter(|_| detail.bodies).map_or(0, |body| body.as_bytes().len());
        let leaves = if detail.leaves { self.leaves.len() } else { 1 };
        body + self.id.as_str().len() + 64 * leaves
    }

    /// The winner.
    pub fn winner(&self) -> &LeafRev {
        &self.leaves[0]
    }

    /// Whether the document is deleted: its winner is a tombstone.
    pub fn deleted(&self) -> bool {
        self.winner().deleted
    }
}

/// The leaves of a tree, winner first.
pub(crate) fn leaf_revs(tree: &RevTree) -> Vec<LeafRev> {
    tree.leaves().iter().map(LeafRev::from).collect()
}
