//! Which revisions `open_revs` gives, before any of their bodies is read.

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::rev_tree::{Presence, RevTree};
use seqtide_storage::{Snapshot, StorageError};

/// A revision that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenRev {
    /// It can be read.
    Found(RevId),
    /// It is unknown, or its body was never received or is gone.
    Missing(RevId),
}

/// All leaves of a document, or what became of the listed revisions: each itself, or with `latest` the leaves that it
/// is or became. Those that can be read come first, in the order of generation and hash.
///
/// # Errors
/// [`StorageError`].
pub fn open_revs(
    snapshot: &Snapshot<'_>,
    id: &DocId,
    revs: Option<&[RevId]>,
    latest: bool,
) -> Result<Vec<OpenRev>, StorageError> {
    let mut tree = snapshot.tree(id)?.map(|doc| doc.tree).unwrap_or_default();
    let mut found = Vec::new();
    let mut missing = Vec::new();
    match revs {
        None => found = readable(snapshot, &tree, leaves(&tree))?,
        Some(revs) => {
            tree = snapshot.with_history(id, &tree)?;
            for rev in revs {
                let meant = if latest { leaves_under(&tree, rev) } else { vec![rev.clone()] };
                let readable = readable(snapshot, &tree, meant)?;
                if readable.is_empty() {
                    missing.push(rev.clone());
                }
                found.extend(readable);
            }
        }
    }
    found.sort();
    missing.sort();
    // Several revisions may have a leaf under them in common, and a revision may be asked for twice.
    found.dedup();
    missing.dedup();
    Ok(found.into_iter().map(OpenRev::Found).chain(missing.into_iter().map(OpenRev::Missing)).collect())
}

fn leaves(tree: &RevTree) -> Vec<RevId> {
    tree.leaves().iter().map(|leaf| leaf.rev.clone()).collect()
}

fn leaves_under(tree: &RevTree, rev: &RevId) -> Vec<RevId> {
    tree.leaves_under(rev).into_iter().map(|leaf| leaf.rev.clone()).collect()
}

fn readable(snapshot: &Snapshot<'_>, tree: &RevTree, revs: Vec<RevId>) -> Result<Vec<RevId>, StorageError> {
    let mut readable = Vec::with_capacity(revs.len());
    for rev in revs {
        if let Presence::Present { body, .. } = tree.find(&rev)
            && snapshot.has_body(body)?
        {
            readable.push(rev);
        }
    }
    Ok(readable)
}
