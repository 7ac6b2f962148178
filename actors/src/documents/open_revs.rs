//! Which revisions `open_revs` gives, before any of their bodies is read.

use std::collections::HashSet;

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::rev_tree::{Leaf, RevTree};
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{DocTree, Snapshot, StorageError};

use super::revisions::Revisions;

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
    let never_was = || DocTree { seq: Sequence::ZERO, tree: RevTree::default() };
    let doc = snapshot.tree(id)?.unwrap_or_else(never_was);
    let revisions = Revisions { snapshot, id, doc: &doc };
    let mut missing: HashSet<&RevId> = revs.into_iter().flatten().collect();
    let mut found = match revs {
        None => of_leaves(&revisions)?,
        Some(revs) if latest => latest_of(&revisions, revs, &mut missing)?,
        Some(revs) => of_listed(&revisions, revs, &mut missing)?,
    };
    found.sort();
    // Several revisions may have a leaf under them in common.
    found.dedup();
    let mut missing: Vec<RevId> = missing.into_iter().cloned().collect();
    missing.sort();
    Ok(found.into_iter().map(OpenRev::Found).chain(missing.into_iter().map(OpenRev::Missing)).collect())
}

fn of_leaves(revisions: &Revisions<'_>) -> Result<Vec<RevId>, StorageError> {
    let mut found = Vec::new();
    for Leaf { rev, body, .. } in revisions.tree().leaves() {
        if revisions.snapshot.has_body(*body)? {
            found.push(rev.clone());
        }
    }
    Ok(found)
}

/// The listed revisions that can be read, which are not missing then.
fn of_listed<'r>(
    revisions: &Revisions<'_>,
    revs: &'r [RevId],
    missing: &mut HashSet<&'r RevId>,
) -> Result<Vec<RevId>, StorageError> {
    let mut known = Vec::new();
    revisions.look_up(revs, |rev, found| known.push((rev, found.body)))?;
    let mut found = Vec::with_capacity(known.len());
    for (rev, body) in known {
        if revisions.snapshot.has_body(body)? {
            missing.remove(rev);
            found.push(rev.clone());
        }
    }
    Ok(found)
}

/// The leaves that the listed revisions are or became and that can be read. What has one is not missing then.
fn latest_of<'r>(
    revisions: &Revisions<'_>,
    revs: &'r [RevId],
    missing: &mut HashSet<&'r RevId>,
) -> Result<Vec<RevId>, StorageError> {
    let mut found = Vec::new();
    let under = |leaf: &Leaf, on_branch: &[&'r RevId]| {
        if revisions.snapshot.has_body(leaf.body)? {
            found.push(leaf.rev.clone());
            for rev in on_branch {
                missing.remove(rev);
            }
        }
        Ok(())
    };
    revisions.leaves_under(revs, under)?;
    Ok(found)
}
