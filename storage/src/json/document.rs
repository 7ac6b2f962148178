//! A document as a client hands it in: its special members apart from its body.

use std::borrow::Cow;

use bytes::Bytes;

use super::body::exact;
use super::compact::Compact;
use super::{Body, DocumentError, ScanLimits, revisions, string};
use crate::model::rev::{RevError, RevId};
use crate::model::rev_path::RevPath;

/// A document as a client hands it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// `_id`, any string: whether it may be a document's id is not checked here.
    pub id: Option<String>,
    /// The newest of `_revisions`, or `_rev` where there are none: what an edit goes on from.
    pub rev: Option<RevId>,
    /// `_deleted`.
    pub deleted: bool,
    /// `_revisions`.
    pub revisions: Option<RevPath>,
    /// `_attachments`, unless that names none.
    pub attachments: Option<Attachments>,
    /// All other members.
    pub body: Body,
}

/// The object given as `_attachments`: compacted JSON text with at least one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachments(Bytes);

impl Attachments {
    /// The object's text, braces included.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

/// Checks and compacts a document's text, and takes its special members out.
///
/// Source: CouchDB's `couch_doc:transfer_fields`. `_removed`, which Sync Gateway sends, stays in the body as well.
///
/// # Errors
/// [`DocumentError`]: the text is no JSON object within the limits, or a special member is unknown or malformed.
pub fn scan_document(text: &[u8], limits: &ScanLimits) -> Result<Document, DocumentError> {
    let compact = Compact::scan(text, limits)?;
    if !compact.is_object() {
        return Err(DocumentError::NotAnObject);
    }
    let mut document = Document::new(None, false, Body::empty());
    let mut taken = Vec::new();
    for (place, member) in compact.members().filter(|(_, member)| member.name.starts_with('_')) {
        if stays_in_body(&member.name) {
            continue;
        }
        document.take_special(&member.name, compact.value(place), limits)?;
        taken.push(place);
    }
    if let Some(path) = &document.revisions {
        document.rev = Some(path.rev());
    }
    document.body = Body::from_scan(compact.into_text_without(&taken));
    Ok(document)
}

/// Special members that are stored as if they were ordinary ones.
fn stays_in_body(name: &str) -> bool {
    matches!(
        name,
        "_access"
            | "_removed"
            | "_replication_id"
            | "_replication_state"
            | "_replication_state_time"
            | "_replication_state_reason"
            | "_replication_stats"
    )
}

impl Document {
    /// A document that names neither itself nor its ancestry.
    pub fn new(rev: Option<RevId>, deleted: bool, body: Body) -> Document {
        Document { id: None, rev, deleted, revisions: None, attachments: None, body }
    }

    fn take_special(&mut self, name: &str, value: Cow<'_, str>, limits: &ScanLimits) -> Result<(), DocumentError> {
        let bad = || DocumentError::BadSpecialMember { name: name.into() };
        let is_object = value.starts_with('{');
        match name {
            "_id" => self.id = Some(string::value_as_string(&value).ok_or(DocumentError::IdNotString)?.into_owned()),
            "_rev" => self.rev = Some(RevId::parse(&string::value_as_string(&value).ok_or(RevError::Format)?)?),
            "_deleted" => self.deleted = value.parse().map_err(|_| bad())?,
            "_revisions" if is_object => self.revisions = Some(revisions::parse(&value, limits.revisions_max)?),
            "_attachments" if value == "{}" => {}
            "_attachments" if is_object => self.attachments = Some(Attachments(exact(value.into_owned()))),
            // What a read adds to a document: clients send it back.
            "_revs_info" | "_local_seq" | "_conflicts" | "_deleted_conflicts" => {}
            _ => return Err(bad()),
        }
        Ok(())
    }
}
