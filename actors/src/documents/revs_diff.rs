//! Which revisions of a document somebody else has and a database lacks.

use std::collections::HashSet;

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::rev_tree::{Ancestor, RevTree};
use seqtide_storage::{Snapshot, StorageError};

/// What a target lacks of a document's revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevsDiff {
    /// Revisions that are no node of the tree, in the order asked.
    pub missing: Vec<RevId>,
    /// Leaves that may be ancestors of them, winner first.
    pub possible_ancestors: Vec<RevId>,
}

/// Which of some revisions are not among those that a tree has at hand.
struct Lacking<'r> {
    revs: HashSet<&'r RevId>,
    /// Some may be among its older ancestors.
    history_needed: bool,
}

impl<'r> Lacking<'r> {
    /// Walks along each branch once, and no further than the oldest of the revisions may be: there may be many of both.
    fn in_tree(tree: &RevTree, revs: &'r [RevId]) -> Lacking<'r> {
        let mut lacking = Lacking { revs: revs.iter().collect(), history_needed: false };
        let Some(oldest) = revs.iter().map(|rev| rev.generation).min() else { return lacking };
        let mut may_be_deeper = false;
        for leaf in tree.leaves() {
            lacking.revs.remove(&leaf.rev);
            let generations = (oldest..leaf.rev.generation).rev();
            for (generation, Ancestor { hash, .. }) in generations.zip(leaf.ancestors.recent.iter()) {
                lacking.revs.remove(&RevId { generation, hash });
            }
            let reaches = leaf.rev.generation.saturating_sub(leaf.ancestors.recent.len() as u64);
            may_be_deeper |= leaf.ancestors.deeper > 0 && oldest < reaches;
        }
        lacking.history_needed = may_be_deeper && !lacking.revs.is_empty();
        lacking
    }
}

/// Compares revisions with a document's tree; `None` when nothing is missing.
///
/// Source: CouchDB `couch_key_tree:find_missing`, `couch_db:possible_ancestors`.
///
/// # Errors
/// [`StorageError`].
pub fn revs_diff(snapshot: &Snapshot<'_>, id: &DocId, revs: &[RevId]) -> Result<Option<RevsDiff>, StorageError> {
    let mut tree = snapshot.tree(id)?.map(|doc| doc.tree).unwrap_or_default();
    let mut lacking = Lacking::in_tree(&tree, revs);
    if lacking.history_needed {
        tree = snapshot.with_history(id, &tree)?;
        lacking = Lacking::in_tree(&tree, revs);
    }
    let missing: Vec<RevId> = revs.iter().filter(|rev| lacking.revs.contains(rev)).cloned().collect();
    let Some(newest) = missing.iter().map(|rev| rev.generation).max() else { return Ok(None) };
    let older = tree.leaves().iter().filter(|leaf| leaf.rev.generation < newest);
    let possible_ancestors = older.map(|leaf| leaf.rev.clone()).collect();
    Ok(Some(RevsDiff { missing, possible_ancestors }))
}
