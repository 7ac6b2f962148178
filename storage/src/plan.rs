//! What an edit makes of a revision tree. Pure: no tables, no sequence.
//!
//! Source: CouchDB `couch_db_updater:merge_rev_tree`, with the choices of
//! `docs/adr/0003-planning-apart-from-applying.md`.

use crate::json::{Body, revision_hash};
use crate::model::body_place::BodyPlace;
use crate::model::doc_id::DocId;
use crate::model::rev::{RevHash, RevId};
use crate::model::rev_path::RevPath;
use crate::model::rev_tree::{Growing, HistoryNeeded, Leaf, Presence, RevTree, Tip};
use crate::model::sequence::Sequence;

/// A proposed revision of a document.
#[derive(Debug, Clone)]
pub struct Edit {
    id: DocId,
    kind: EditKind,
    deleted: bool,
    body: Body,
    /// The hash of an interactive edit on the parent it names, made where the edit was made.
    hash: Option<RevHash>,
    expected: Option<Expected>,
}

/// How a document was when an edit of it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The edit goes on from this leaf, or from none.
    Base(Option<RevId>),
    /// The document's latest sequence is this one, zero being that of one that never was. Edits that the same request
    /// makes of it before do not count.
    At(Sequence),
}

/// Where a proposed revision belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditKind {
    /// On top of a leaf, or as a new document; refused otherwise.
    Interactive {
        /// The leaf.
        parent: Option<RevId>,
    },
    /// Wherever its ancestry says; never refused.
    Replicated {
        /// The revision and its ancestry.
        path: RevPath,
    },
}

impl Edit {
    /// An ordinary edit (`new_edits=true`). The revision's hash is computed here.
    pub fn interactive(id: DocId, parent: Option<RevId>, deleted: bool, body: Body) -> Edit {
        let hash = Some(revision_hash(&body, parent.as_ref(), deleted));
        Edit { id, kind: EditKind::Interactive { parent }, deleted, body, hash, expected: None }
    }

    /// A revision made elsewhere (`new_edits=false`).
    pub fn replicated(id: DocId, path: RevPath, deleted: bool, body: Body) -> Edit {
        Edit { id, kind: EditKind::Replicated { path }, deleted, body, hash: None, expected: None }
    }

    /// The same edit, to be made only where the document is still as it was looked at. Otherwise nothing of its request
    /// is written ([`Attempt::Moved`](crate::Attempt::Moved)).
    pub fn expecting(self, expected: Expected) -> Edit {
        Edit { expected: Some(expected), ..self }
    }

    /// How the document must be.
    pub fn expected(&self) -> Option<&Expected> {
        self.expected.as_ref()
    }

    /// Whether a document is as the edit expects it that has this tree, its latest sequence being this one.
    pub(crate) fn expects(&self, at: Sequence, tree: &Growing) -> bool {
        match &self.expected {
            None => true,
            Some(Expected::Base(base)) => self.base_in(tree).map(|(rev, _)| rev) == *base,
            Some(Expected::At(expected)) => at == *expected,
        }
    }

    /// The leaf of a tree that the edit names as what it goes on from; of a replicated edit, the nearest of its
    /// ancestors that is a leaf.
    pub(crate) fn base_in(&self, tree: &Growing) -> Option<(RevId, Tip)> {
        let leaf = |rev: RevId| tree.tip(&rev).map(|tip| (rev, tip));
        match &self.kind {
            EditKind::Interactive { parent } => leaf(parent.clone()?),
            EditKind::Replicated { path } => path.revs().skip(1).find_map(leaf),
        }
    }

    /// Whose revision it is.
    pub fn id(&self) -> &DocId {
        &self.id
    }

    /// Where it belongs.
    pub fn kind(&self) -> &EditKind {
        &self.kind
    }

    /// Whether it is a tombstone.
    pub fn deleted(&self) -> bool {
        self.deleted
    }

    /// Its body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The revision this edit makes on a parent: the same edit makes the same one on every server. `None` when the
    /// parent's generation is the last one.
    fn rev_on(&self, parent: Option<&RevId>, named: bool) -> Option<RevId> {
        let generation = parent.map_or(0, |parent| parent.generation).checked_add(1)?;
        let hash = self.hash.clone().filter(|_| named);
        let hash = hash.unwrap_or_else(|| revision_hash(&self.body, parent, self.deleted));
        Some(RevId::new(generation, hash))
    }
}

/// What an edit makes of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing: the revision was known.
    Known { rev: RevId },
    /// Something new: the revision, or ancestors of one that was there.
    Changed { rev: RevId },
    /// An interactive edit whose parent is not where it may go, or that makes a revision that is there already.
    Conflict,
}

/// Plans an edit, and leaves the tree as it is. `body` is where its body will lie; branches keep at most `revs_limit`
/// revisions.
///
/// # Errors
/// [`HistoryNeeded`] when ancestors that are not at hand decide.
pub(crate) fn plan(tree: &mut Growing, edit: &Edit, body: BodyPlace, revs_limit: u32) -> Result<Plan, HistoryNeeded> {
    Ok(match &edit.kind {
        EditKind::Interactive { parent } => match interactive_rev(tree.whole(), edit, parent.as_ref())? {
            Some((_, rev)) => Plan::Changed { rev },
            None => Plan::Conflict,
        },
        EditKind::Replicated { path } => merged(path, tree.would_merge(path, edit.deleted, body, revs_limit)?),
    })
}

/// Plans an edit as [`plan`] does, and makes it.
///
/// # Errors
/// [`HistoryNeeded`] when ancestors that are not at hand decide.
pub(crate) fn make(tree: &mut Growing, edit: &Edit, body: BodyPlace, revs_limit: u32) -> Result<Plan, HistoryNeeded> {
    Ok(match &edit.kind {
        EditKind::Interactive { parent } => match interactive_rev(tree.whole(), edit, parent.as_ref())? {
            Some((base, rev)) if tree.extend(base.as_ref(), rev.clone(), edit.deleted, body, revs_limit) => {
                Plan::Changed { rev }
            }
            _ => Plan::Conflict,
        },
        EditKind::Replicated { path } => merged(path, tree.merge(path, edit.deleted, body, revs_limit)?),
    })
}

fn merged(path: &RevPath, is_new: bool) -> Plan {
    let rev = path.rev();
    if is_new { Plan::Changed { rev } } else { Plan::Known { rev } }
}

/// The revision that an interactive edit makes, and the leaf that it goes on from.
///
/// # Errors
/// [`HistoryNeeded`] when that revision may lie among ancestors that are not at hand. As its parent is a leaf, and
/// nobody's ancestor, it can only be the oldest of a branch.
fn interactive_rev(
    tree: &RevTree,
    edit: &Edit,
    parent: Option<&RevId>,
) -> Result<Option<(Option<RevId>, RevId)>, HistoryNeeded> {
    let (base, named) = match (tree.winner(), parent) {
        (None, None) => (None, true),
        // A deleted document is made again by an edit that names no parent: its history goes on.
        (Some(tombstone), None) if tombstone.deleted && !edit.deleted => (Some(tombstone.rev.clone()), false),
        (Some(winner), Some(parent)) if !winner.deleted => (Some(parent.clone()), true),
        _ => return Ok(None),
    };
    let is_leaf = base.as_ref().is_none_or(|base| tree.leaf(base).is_some());
    let Some(rev) = edit.rev_on(base.as_ref(), named).filter(|_| is_leaf) else { return Ok(None) };
    let is_oldest = |leaf: &Leaf| leaf.ancestors.deeper > 0 && leaf.root_generation() == rev.generation;
    match tree.find(&rev) {
        // The same edit may have come by replication already, without its parent.
        Presence::Present { .. } => Ok(None),
        Presence::HistoryNeeded if tree.leaves().iter().any(is_oldest) => Err(HistoryNeeded),
        Presence::HistoryNeeded | Presence::Absent => Ok(Some((base, rev))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u32 = 1000;

    fn rev(text: &str) -> RevId {
        RevId::parse(text).unwrap()
    }

    fn edit(parent: Option<&str>, deleted: bool) -> Edit {
        Edit::interactive(DocId::stored("a"), parent.map(rev), deleted, Body::empty())
    }

    fn pushed(start: u64, hashes: &[&str], deleted: bool) -> Edit {
        let hashes = hashes.iter().map(|hash| RevHash::parse(hash).unwrap()).collect();
        Edit::replicated(DocId::stored("a"), RevPath::new(start, hashes).unwrap(), deleted, Body::empty())
    }

    fn planned(tree: &RevTree, edit: &Edit) -> Plan {
        plan(&mut Growing::from(tree.clone()), edit, BodyPlace::Empty, LIMIT).unwrap()
    }

    fn changed(tree: &RevTree, edit: &Edit) -> (RevId, RevTree) {
        let mut growing = Growing::from(tree.clone());
        let made = make(&mut growing, edit, BodyPlace::Empty, LIMIT).unwrap();
        assert_eq!(planned(tree, edit), made);
        match made {
            Plan::Changed { rev } => (rev, growing.whole().clone()),
            other => panic!("{other:?}"),
        }
    }

    /// Replicates revisions one after the other.
    fn tree_of(pushes: &[(u64, &[&str], bool)]) -> RevTree {
        pushes.iter().fold(RevTree::default(), |tree, (start, hashes, deleted)| {
            changed(&tree, &pushed(*start, hashes, *deleted)).1
        })
    }

    #[test]
    fn planning_leaves_the_tree_it_is_given_as_it_was() {
        let tree = tree_of(&[(2, &["b", "a"], false)]);
        let mut growing = Growing::from(tree.clone());
        for edit in [edit(Some("2-b"), true), pushed(3, &["c", "b"], false)] {
            assert!(matches!(plan(&mut growing, &edit, BodyPlace::Empty, LIMIT), Ok(Plan::Changed { .. })), "{edit:?}");
            assert_eq!(growing.whole(), &tree);
        }
    }

    #[test]
    fn an_edit_without_a_parent_makes_a_document_only_where_none_is() {
        let (rev, _) = changed(&RevTree::default(), &edit(None, false));
        assert_eq!(rev, RevId::new(1, revision_hash(&Body::empty(), None, false)));
        assert_eq!(planned(&tree_of(&[(1, &["a"], false)]), &edit(None, false)), Plan::Conflict);
    }

    #[test]
    fn a_document_is_made_again_on_its_winning_tombstone_and_hashed_there() {
        let tree = tree_of(&[(2, &["b", "a"], true), (3, &["c"], true)]);
        let (rev, tree) = changed(&tree, &edit(None, false));
        assert_eq!(rev, RevId::new(4, revision_hash(&Body::empty(), Some(&self::rev("3-c")), false)));
        let leaves: Vec<_> = tree.leaves().iter().map(|leaf| leaf.rev.clone()).collect();
        assert_eq!(leaves, [rev, self::rev("2-b")]);
        let gone = tree_of(&[(2, &["b", "a"], true)]);
        for refused in [edit(Some("2-b"), false), edit(Some("2-b"), true), edit(None, true)] {
            assert_eq!(planned(&gone, &refused), Plan::Conflict, "{refused:?}");
        }
    }

    #[test]
    fn an_edit_goes_on_any_leaf_of_a_live_document() {
        let tree = tree_of(&[(2, &["b", "a"], false), (2, &["c", "a"], true), (1, &["z"], false)]);
        for leaf in ["2-b", "2-c", "1-z"] {
            let (rev, _) = changed(&tree, &edit(Some(leaf), false));
            assert_eq!(rev.generation, self::rev(leaf).generation + 1);
        }
        assert_eq!(planned(&tree, &edit(Some("1-a"), false)), Plan::Conflict);
    }

    #[test]
    fn an_edit_needs_history_only_where_that_decides() {
        let mut tree = tree_of(&[(4, &["d", "c", "b"], false), (1, &["z"], false), (2, &["y", "x"], false)]);
        for leaf in tree.leaves_mut() {
            leaf.ancestors.deeper = leaf.ancestors.recent.len() as u32;
            leaf.ancestors.recent.truncate(0);
        }
        let mut growing = Growing::from(tree.clone());
        // What the second makes may be the oldest one below 4-d.
        for needs in [pushed(3, &["w", "b"], false), edit(Some("1-z"), false)] {
            assert_eq!(plan(&mut growing, &needs, BodyPlace::Empty, LIMIT), Err(HistoryNeeded), "{needs:?}");
            assert_eq!(make(&mut growing, &needs, BodyPlace::Empty, LIMIT), Err(HistoryNeeded), "{needs:?}");
        }
        assert_eq!(planned(&tree, &edit(Some("1-a"), false)), Plan::Conflict, "it is no leaf");
        for leaf in ["4-d", "2-y"] {
            assert!(matches!(planned(&tree, &edit(Some(leaf), false)), Plan::Changed { .. }), "{leaf}");
        }
    }
}
