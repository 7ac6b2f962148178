//! Documents as they are read: which revision is meant, and how it looks as JSON.
//!
//! Source of what is answered when: CouchDB `chttpd_db:db_doc_req` and `couch_doc:to_json_obj`.

pub(crate) mod json;
mod open_revs;
mod reader;
mod revisions;
mod revs_diff;

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::sequence::Sequence;

use self::json::{write_document, write_revisions, write_revs};
pub use self::open_revs::{OpenRev, open_revs};
pub use self::reader::{Reader, read_document};
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

fn write_revs_info(out: &mut Vec<u8>, revs_info: &[(RevId, RevStatus)]) {
    out.extend_from_slice(b",\"_revs_info\":[");
    for (at, (rev, status)) in revs_info.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b",{\"rev\":" } else { b"{\"rev\":" });
        rev.write_json(out);
        out.extend_from_slice(format!(",\"status\":\"{}\"}}", status.name()).as_bytes());
    }
    out.push(b']');
}
