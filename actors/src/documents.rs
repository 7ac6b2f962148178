//! Reading documents: which revision is meant, and how it looks as JSON.
//!
//! Source of what is answered when: CouchDB `chttpd_db:db_doc_req` and `couch_doc:to_json_obj`.

pub(crate) mod json;
mod open_revs;
mod revs_diff;

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::rev_tree::{Leaf, Presence, RevTree};
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{DocTree, Snapshot, StorageError};

use self::json::{write_document, write_revisions, write_revs};
pub use self::open_revs::{OpenRev, open_revs};
pub use self::revs_diff::{RevsDiff, revs_diff};

/// Which revision of a document is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Which {
    /// The winner, unless it is a tombstone.
    #[default]
    Winner,
    /// This revision, leaf or not, tombstone or not.
    Rev(RevId),
}

/// What is shown of a document besides its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extras {
    /// Its ancestry, `_revisions`.
    pub revs: bool,
    /// Its ancestry with what is left of each revision, `_revs_info`.
    pub revs_info: bool,
    /// The live leaves that lost, `_conflicts`.
    pub conflicts: bool,
    /// The tombstones that lost, `_deleted_conflicts`.
    pub deleted_conflicts: bool,
    /// The document's place in the feed, `_local_seq`.
    pub local_seq: bool,
}

impl Extras {
    /// What is shown of a revision that was named: all but its ancestry is about the document, and stands beside the
    /// winner.
    ///
    /// Source: CouchDB `couch_db:open_doc_revs_int`, which gives no meta.
    fn of_named(self) -> Extras {
        Extras { revs: self.revs, ..Extras::default() }
    }
}

/// What is left of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevStatus {
    /// It can be read.
    Available,
    /// Its body was never received, or has been reclaimed.
    Missing,
    /// It can be read, and is a tombstone.
    Deleted,
}

impl RevStatus {
    /// CouchDB's word for it.
    pub fn name(self) -> &'static str {
        match self {
            RevStatus::Available => "available",
            RevStatus::Missing => "missing",
            RevStatus::Deleted => "deleted",
        }
    }
}

/// A revision of a document, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The document.
    pub id: DocId,
    /// The revision.
    pub rev: RevId,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// Its body.
    pub body: Body,
    /// The document's latest sequence.
    pub seq: Sequence,
    /// Its ancestry, itself first, if it was asked for.
    pub revisions: Option<Vec<RevId>>,
    /// Its ancestry with what is left of each revision, itself first, if it was asked for.
    pub revs_info: Option<Vec<(RevId, RevStatus)>>,
    /// The live leaves that lost, best first, if they were asked for.
    pub conflicts: Option<Vec<RevId>>,
    /// The tombstones that lost, best first, if they were asked for.
    pub deleted_conflicts: Option<Vec<RevId>>,
    /// Whether its place in the feed is shown.
    pub shows_seq: bool,
}

impl Document {
    /// The document as CouchDB writes it.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.as_bytes().len() + 128);
        self.write_json(&mut out);
        out
    }

    /// Appends the document as CouchDB writes it.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        write_document(out, self.id.as_str(), Some(&self.rev), self.deleted, &self.body, |out| {
            if let Some(revisions) = &self.revisions {
                let start = revisions.first().map_or(0, |rev| rev.generation);
                write_revisions(out, start, revisions.iter().map(|rev| &rev.hash));
            }
            if let Some(revs_info) = &self.revs_info {
                write_revs_info(out, revs_info);
            }
            write_revs(out, "_conflicts", self.conflicts.iter().flatten());
            write_revs(out, "_deleted_conflicts", self.deleted_conflicts.iter().flatten());
            if self.shows_seq {
                out.extend_from_slice(format!(",\"_local_seq\":{}", self.seq.to_integer()).as_bytes());
            }
        });
    }
}

/// Why a document is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// It never was, or the revision is unknown or its body gone.
    #[error("missing")]
    Missing,
    /// Its winner is a tombstone.
    #[error("deleted")]
    Deleted,
}

/// Reads a revision of a document.
///
/// # Errors
/// [`StorageError`]; inside, [`NotFound`].
pub fn read_document(
    snapshot: &Snapshot<'_>,
    id: &DocId,
    which: &Which,
    extras: Extras,
) -> Result<Result<Document, NotFound>, StorageError> {
    let Some(doc) = snapshot.tree(id)? else { return Ok(Err(NotFound::Missing)) };
    let Some(winner) = doc.tree.winner() else { return Ok(Err(NotFound::Missing)) };
    let (rev, extras) = match which {
        Which::Winner if winner.deleted => return Ok(Err(NotFound::Deleted)),
        Which::Winner => (&winner.rev, extras),
        Which::Rev(rev) => (rev, extras.of_named()),
    };
    let found = read_revision(snapshot, id, &doc, rev, extras)?;
    Ok(found.ok_or(NotFound::Missing))
}

/// Reads the leaves of a document, tombstones too, in the order of generation and hash.
///
/// # Errors
/// [`StorageError`].
pub fn read_leaves(snapshot: &Snapshot<'_>, id: &DocId, extras: Extras) -> Result<Vec<Document>, StorageError> {
    let Some(doc) = snapshot.tree(id)? else { return Ok(Vec::new()) };
    let revs = doc.tree.leaves().iter().map(|leaf| leaf.rev.clone());
    read_revisions(snapshot, id, &doc, revs.collect(), extras)
}

/// Reads the leaves that a revision is or became, in the order of generation and hash.
///
/// # Errors
/// [`StorageError`].
pub fn read_leaves_under(
    snapshot: &Snapshot<'_>,
    id: &DocId,
    rev: &RevId,
    extras: Extras,
) -> Result<Vec<Document>, StorageError> {
    let Some(mut doc) = snapshot.tree(id)? else { return Ok(Vec::new()) };
    doc.tree = snapshot.with_history(id, &doc.tree)?;
    let revs = doc.tree.leaves_under(rev).into_iter().map(|leaf| leaf.rev.clone()).collect();
    read_revisions(snapshot, id, &doc, revs, extras)
}

fn read_revisions(
    snapshot: &Snapshot<'_>,
    id: &DocId,
    doc: &DocTree,
    mut revs: Vec<RevId>,
    extras: Extras,
) -> Result<Vec<Document>, StorageError> {
    revs.sort();
    let mut found = Vec::with_capacity(revs.len());
    for rev in revs {
        found.extend(read_revision(snapshot, id, doc, &rev, extras.of_named())?);
    }
    Ok(found)
}

/// Reads one revision; `None` when it is unknown, or its body was never received or is gone.
fn read_revision(
    snapshot: &Snapshot<'_>,
    id: &DocId,
    doc: &DocTree,
    rev: &RevId,
    extras: Extras,
) -> Result<Option<Document>, StorageError> {
    let mut tree = std::borrow::Cow::Borrowed(&doc.tree);
    let mut presence = tree.find(rev);
    if extras.revs || extras.revs_info || presence == Presence::HistoryNeeded {
        tree = std::borrow::Cow::Owned(snapshot.with_history(id, &doc.tree)?);
        presence = tree.find(rev);
    }
    let Presence::Present { deleted, body } = presence else { return Ok(None) };
    let Some(body) = snapshot.body(body)? else { return Ok(None) };
    let revs_info = if extras.revs_info { Some(revs_info(snapshot, &tree, rev)?) } else { None };
    Ok(Some(Document {
        id: id.clone(),
        rev: rev.clone(),
        deleted,
        body,
        seq: doc.seq,
        revisions: extras.revs.then(|| ancestry(&tree, rev)),
        revs_info,
        conflicts: extras.conflicts.then(|| losers(&tree, false)),
        deleted_conflicts: extras.deleted_conflicts.then(|| losers(&tree, true)),
        shows_seq: extras.local_seq,
    }))
}

/// A revision and its ancestors, newest first. Needs all history at hand.
fn ancestry(tree: &RevTree, rev: &RevId) -> Vec<RevId> {
    let Some(leaf) = tree.leaves_under(rev).into_iter().next() else { return vec![rev.clone()] };
    let line = leaf.ancestors.recent.iter().map(|ancestor| ancestor.hash);
    let line = std::iter::once(leaf.rev.hash.clone()).chain(line);
    let generations = (0..=leaf.rev.generation).rev();
    let line = generations.zip(line).map(|(generation, hash)| RevId::new(generation, hash));
    line.skip_while(|known| known != rev).collect()
}

/// The leaves that lost, those that are tombstones or those that are not.
fn losers(tree: &RevTree, deleted: bool) -> Vec<RevId> {
    let asked = |leaf: &&Leaf| leaf.deleted == deleted;
    tree.leaves().iter().skip(1).filter(asked).map(|leaf| leaf.rev.clone()).collect()
}

/// A revision and its ancestors, newest first, with what is left of each. Needs all history at hand.
fn revs_info(snapshot: &Snapshot<'_>, tree: &RevTree, rev: &RevId) -> Result<Vec<(RevId, RevStatus)>, StorageError> {
    let status = |rev: RevId| {
        let status = match tree.find(&rev) {
            Presence::Present { deleted, body } if snapshot.has_body(body)? => match deleted {
                true => RevStatus::Deleted,
                false => RevStatus::Available,
            },
            _ => RevStatus::Missing,
        };
        Ok((rev, status))
    };
    ancestry(tree, rev).into_iter().map(status).collect()
}

fn write_revs_info(out: &mut Vec<u8>, revs_info: &[(RevId, RevStatus)]) {
    out.extend_from_slice(b",\"_revs_info\":[");
    for (at, (rev, status)) in revs_info.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b",{\"rev\":" } else { b"{\"rev\":" });
        rev.write_json(out);
        out.extend_from_slice(format!(",\"status\":\"{}\"}}", status.name()).as_bytes());
    }
    out.push(b']');
}
