//! Which revisions of a document somebody else has and a database lacks.

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::{Snapshot, StorageError};

/// What a target lacks of a document's revisions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevsDiff {
    /// Revisions that are no node of the tree, in the order asked.
    pub missing: Vec<RevId>,
    /// Leaves that may be ancestors of them, winner first.
    pub possible_ancestors: Vec<RevId>,
}

/// Compares revisions with a document's tree; `None` when nothing is missing.
///
/// Source: CouchDB `couch_key_tree:find_missing`, `couch_db:possible_ancestors`.
///
/// # Errors
/// [`StorageError`].
pub fn revs_diff(snapshot: &Snapshot<'_>, id: &DocId, revs: &[RevId]) -> Result<Option<RevsDiff>, StorageError> {
    let tree = snapshot.tree(id)?.map(|doc| doc.tree).unwrap_or_default();
    let lacking = tree.look_up(revs, |leaf| snapshot.ancestors(id, leaf), |_, _| {})?;
    let missing: Vec<RevId> = revs.iter().filter(|rev| lacking.contains(rev)).cloned().collect();
    let Some(newest) = missing.iter().map(|rev| rev.generation).max() else { return Ok(None) };
    let older = tree.leaves().iter().filter(|leaf| leaf.rev.generation < newest);
    let possible_ancestors = older.map(|leaf| leaf.rev.clone()).collect();
    Ok(Some(RevsDiff { missing, possible_ancestors }))
}
