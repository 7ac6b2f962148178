//! Reading documents of one snapshot.

use std::slice;

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::{DocTree, Snapshot, StorageError};

use super::revisions::Revisions;
use super::{Document, Extras, NotFound, Which};

/// Reads documents of one snapshot, one after the other.
///
/// It keeps the tree that it read last: a document may have thousands of leaves, and all may be asked for one by one.
pub struct Reader<'s> {
    snapshot: &'s Snapshot<'s>,
    last: Option<(DocId, Option<DocTree>)>,
}

impl<'s> Reader<'s> {
    /// Begins to read.
    pub fn new(snapshot: &'s Snapshot<'_>) -> Reader<'s> {
        Reader { snapshot, last: None }
    }

    /// What is read from.
    pub fn snapshot(&self) -> &'s Snapshot<'s> {
        self.snapshot
    }

    /// Reads a revision of a document.
    ///
    /// # Errors
    /// [`StorageError`]; inside, [`NotFound`].
    pub fn document(
        &mut self,
        id: &DocId,
        which: &Which,
        extras: Extras,
    ) -> Result<Result<Document, NotFound>, StorageError> {
        let Some(revisions) = self.revisions(id)? else { return Ok(Err(NotFound::Missing)) };
        let Some(winner) = revisions.tree().winner() else { return Ok(Err(NotFound::Missing)) };
        let (rev, extras) = match which {
            Which::Winner if winner.deleted => return Ok(Err(NotFound::Deleted)),
            Which::Winner => (&winner.rev, extras),
            Which::Rev(rev) => (rev, extras.of_named()),
        };
        Ok(revisions.read(rev, extras)?.ok_or(NotFound::Missing))
    }

    /// Reads the leaves of a document, tombstones too, in the order of generation and hash.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn leaves(&mut self, id: &DocId, extras: Extras) -> Result<Vec<Document>, StorageError> {
        let Some(revisions) = self.revisions(id)? else { return Ok(Vec::new()) };
        revisions.read_each(revisions.tree().leaves().iter().collect(), extras.of_named())
    }

    /// Reads the leaves that a revision is or became, in the order of generation and hash.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn leaves_under(&mut self, id: &DocId, rev: &RevId, extras: Extras) -> Result<Vec<Document>, StorageError> {
        let Some(revisions) = self.revisions(id)? else { return Ok(Vec::new()) };
        let mut leaves = Vec::new();
        let under = |leaf, _: &[&RevId]| {
            leaves.push(leaf);
            Ok(())
        };
        revisions.leaves_under(slice::from_ref(rev), under)?;
        revisions.read_each(leaves, extras.of_named())
    }

    /// A document's revisions; `None` when it never was.
    fn revisions(&mut self, id: &DocId) -> Result<Option<Revisions<'_>>, StorageError> {
        let last = match self.last.take() {
            Some(last) if last.0 == *id => last,
            _ => (id.clone(), self.snapshot.tree(id)?),
        };
        let (id, doc) = self.last.insert(last);
        Ok(doc.as_ref().map(|doc| Revisions { snapshot: self.snapshot, id, doc }))
    }
}

/// Reads a revision of one document.
///
/// # Errors
/// [`StorageError`]; inside, [`NotFound`].
pub fn read_document(
    snapshot: &Snapshot<'_>,
    id: &DocId,
    which: &Which,
    extras: Extras,
) -> Result<Result<Document, NotFound>, StorageError> {
    Reader::new(snapshot).document(id, which, extras)
}
