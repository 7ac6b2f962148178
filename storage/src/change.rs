//! A change as feeds show it.

use crate::json::Body;
use crate::model::body_place::BodyPlace;
use crate::model::doc_id::DocId;
use crate::model::rev::RevId;
use crate::model::rev_tree::{Leaf, RevTree};
use crate::model::sequence::Sequence;

/// Which part of a document a page of changes carries besides the winner's revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detail {
    /// All leaves.
    pub leaves: bool,
    /// The winner's body.
    pub bodies: bool,
}

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

/// What a document was before it was written to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Previous {
    /// Nothing: it is new.
    Nothing,
    /// That is not known: it was written before file format 5.
    Unknown,
    /// It had this winner.
    Winner(PreviousWinner),
}

/// The winner of a document before it was written to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviousWinner {
    /// The document's latest sequence then.
    pub seq: Sequence,
    /// Whether it was a tombstone.
    pub deleted: bool,
    /// How many leaves the document had.
    pub leaves: u32,
    /// Where its body lies, as long as it is not reclaimed.
    pub body: BodyPlace,
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
    /// What it was before.
    pub previous: Previous,
}

/// A document that a commit has changed, at its latest sequence: the [`Change`] that feeds show of it, before anybody
/// has asked for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The sequence of the latest write to the document's tree.
    pub seq: Sequence,
    /// The document.
    pub id: DocId,
    /// Its revisions.
    pub tree: RevTree,
    /// The winner's body.
    pub body: Option<Body>,
    /// What it was before.
    pub previous: Previous,
}

impl From<Changed> for Change {
    fn from(Changed { seq, id, tree, body, previous }: Changed) -> Change {
        Change { seq, id, leaves: leaf_revs(&tree), body, previous }
    }
}

impl AsRef<Change> for Change {
    fn as_ref(&self) -> &Change {
        self
    }
}

impl Change {
    /// About how many bytes a feed sends of it where so much of it is shown, its id and revisions being plain.
    pub fn bytes(&self, detail: Detail) -> usize {
        let id = self.id.as_str().len();
        let document = self.body.as_ref().filter(|_| detail.bodies).map_or(0, |body| body.as_bytes().len() + id + 64);
        let others = if detail.leaves { self.leaves.len() - 1 } else { 0 };
        104 + id + 48 * others + document
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
