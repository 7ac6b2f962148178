//! The revisions of one document: finding them, and reading them.

use std::collections::HashSet;
use std::slice;

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::rev_tree::{Ancestor, Found, Leaf, Line, RevTree};
use seqtide_storage::{DocTree, Snapshot, StorageError};

use super::{Document, Extras, RevStatus};

/// The revisions of a document in one state. Older history is loaded for the branches that need it, one at a time.
#[derive(Clone, Copy)]
pub(super) struct Revisions<'r> {
    pub snapshot: &'r Snapshot<'r>,
    pub id: &'r DocId,
    pub doc: &'r DocTree,
}

impl<'r> Revisions<'r> {
    pub fn tree(&self) -> &'r RevTree {
        &self.doc.tree
    }

    /// Looks revisions up, leaves or not; tells each that is there, and gives those that are not.
    pub fn look_up<'a>(
        &self,
        revs: &'a [RevId],
        found: impl FnMut(&'a RevId, Found<'r>),
    ) -> Result<HashSet<&'a RevId>, StorageError> {
        self.tree().look_up(revs, |leaf| self.ancestors(leaf), found)
    }

    /// Tells the leaves that revisions are or became, and which of them each stands for.
    pub fn leaves_under<'a>(
        &self,
        revs: &'a [RevId],
        under: impl FnMut(&'r Leaf, &[&'a RevId]) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.tree().leaves_under(revs, |leaf| self.ancestors(leaf), under)
    }

    /// All ancestors of a leaf, newest first.
    fn ancestors(&self, leaf: &Leaf) -> Result<Line, StorageError> {
        self.snapshot.ancestors(self.id, leaf)
    }

    /// Reads leaves, in the order of generation and hash; those whose body was never received or is gone are left out.
    pub fn read_each(&self, mut leaves: Vec<&Leaf>, extras: Extras) -> Result<Vec<Document>, StorageError> {
        leaves.sort_by(|leaf, other| leaf.rev.cmp(&other.rev));
        let mut found = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            found.extend(self.read(&leaf.rev, extras)?);
        }
        Ok(found)
    }

    /// Reads one revision; `None` when it is unknown, or its body was never received or is gone.
    pub fn read(&self, rev: &RevId, extras: Extras) -> Result<Option<Document>, StorageError> {
        let mut found = None;
        self.look_up(slice::from_ref(rev), |_, it| found = Some(it))?;
        let Some(Found { leaf, deleted, body }) = found else { return Ok(None) };
        let Some(body) = self.snapshot.body(body)? else { return Ok(None) };
        let lineage = if extras.revs || extras.revs_info { self.lineage(leaf, rev)? } else { Vec::new() };
        let revs_info = if extras.revs_info { Some(self.statuses(&lineage)?) } else { None };
        Ok(Some(Document {
            id: self.id.clone(),
            rev: rev.clone(),
            deleted,
            body,
            seq: self.doc.seq,
            revisions: extras.revs.then(|| lineage.into_iter().map(|(rev, _)| rev).collect()),
            revs_info,
            conflicts: extras.conflicts.then(|| self.losers(false)),
            deleted_conflicts: extras.deleted_conflicts.then(|| self.losers(true)),
            shows_seq: extras.local_seq,
        }))
    }

    /// A revision and its ancestors, newest first, on the branch of a leaf that has it.
    fn lineage(&self, leaf: &Leaf, rev: &RevId) -> Result<Vec<(RevId, Ancestor)>, StorageError> {
        let older = self.ancestors(leaf)?;
        let tip = Ancestor { hash: leaf.rev.hash.clone(), deleted: leaf.deleted, body: leaf.body };
        let branch = (0..=leaf.rev.generation).rev().zip(std::iter::once(tip).chain(older.iter()));
        let down_from_it = branch.skip_while(|(generation, _)| *generation > rev.generation);
        Ok(down_from_it.map(|(generation, it)| (RevId::new(generation, it.hash.clone()), it)).collect())
    }

    /// What is left of each revision.
    fn statuses(&self, lineage: &[(RevId, Ancestor)]) -> Result<Vec<(RevId, RevStatus)>, StorageError> {
        let status = |(rev, Ancestor { deleted, body, .. }): &(RevId, Ancestor)| {
            let status = match self.snapshot.has_body(*body)? {
                true if *deleted => RevStatus::Deleted,
                true => RevStatus::Available,
                false => RevStatus::Missing,
            };
            Ok((rev.clone(), status))
        };
        lineage.iter().map(status).collect()
    }

    /// The leaves that lost, those that are tombstones or those that are not.
    fn losers(&self, deleted: bool) -> Vec<RevId> {
        let asked = |leaf: &&Leaf| leaf.deleted == deleted;
        self.tree().leaves().iter().skip(1).filter(asked).map(|leaf| leaf.rev.clone()).collect()
    }
}
