//! An item of a `_bulk_get`: what it asks for, and how its answer is written.

use percent_encoding::{CONTROLS, utf8_percent_encode};
use seqtide::documents::{Document, Extras, Reader, Which};
use seqtide::storage::StorageError;
use seqtide::storage::model::doc_id::{DocId, LocalId};
use seqtide::storage::model::rev::{RevError, RevId};

use crate::error::ApiError;
use crate::json::look_at_each;
use crate::multipart::{JSON_PART, JSON_PART_ERROR};

const NULL: &str = "null";

/// How items are read.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    pub extras: Extras,
    /// Whether a revision stands for the leaves that it became.
    pub latest: bool,
}

/// What was found, or why there is nothing.
pub type Found = Result<Vec<Document>, ApiError>;

/// What an item asks for, and what its answer repeats of it, as JSON.
pub struct Item {
    id: Box<str>,
    rev: Box<str>,
    asked: Result<Asked, ApiError>,
}

/// Revisions of a document.
enum Asked {
    /// Every leaf.
    Leaves(DocId),
    /// One revision, or with `latest` the leaves under it.
    Rev(DocId, RevId),
}

impl Item {
    /// Reads an item of `docs`. Whatever its members are, they stay text: values would take ten times as much.
    pub fn parse(text: &str) -> Item {
        let (mut id, mut rev) = (NULL, NULL);
        let no_object = || ApiError::bad_request("document must be a JSON object");
        let read = look_at_each(text, no_object, |name, value| {
            match &*name {
                "id" => id = value.get(),
                "rev" => rev = value.get(),
                _ => {}
            }
            Ok(())
        });
        match read {
            Err(refused) => Item::refused(refused),
            // Without a document, CouchDB repeats no revision either.
            Ok(()) if id == NULL => Item::refused(ApiError::bad_request("document id missed")),
            Ok(()) => Item { asked: Asked::parse(id, rev), id: id.into(), rev: rev.into() },
        }
    }

    fn refused(why: ApiError) -> Item {
        Item { id: NULL.into(), rev: NULL.into(), asked: Err(why) }
    }

    /// Reads what is asked for; inside, why there is nothing.
    pub fn read(&self, reader: &mut Reader<'_>, read: Read) -> Result<Found, StorageError> {
        let Read { extras, latest } = read;
        let found: Vec<Document> = match &self.asked {
            Err(refused) => return Ok(Err(refused.clone())),
            Ok(Asked::Leaves(id)) => reader.leaves(id, extras)?,
            Ok(Asked::Rev(id, rev)) if latest => reader.leaves_under(id, rev, extras)?,
            Ok(Asked::Rev(id, rev)) => reader.document(id, &Which::Rev(rev.clone()), extras)?.into_iter().collect(),
        };
        Ok(if found.is_empty() { Err(ApiError::not_found("missing")) } else { Ok(found) })
    }

    pub fn write_json(&self, out: &mut Vec<u8>, found: &Found) {
        out.extend_from_slice(b"{\"id\":");
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(b",\"docs\":[");
        match found {
            Ok(documents) => {
                for (at, document) in documents.iter().enumerate() {
                    out.extend_from_slice(if at > 0 { b",{\"ok\":" } else { b"{\"ok\":" });
                    document.write_json(out);
                    out.push(b'}');
                }
            }
            Err(refused) => {
                out.extend_from_slice(b"{\"error\":");
                self.write_refusal(out, refused, true);
                out.push(b'}');
            }
        }
        out.extend_from_slice(b"]}");
    }

    /// Appends a part a document, or one that says why there is none.
    pub fn write_parts(&self, out: &mut Vec<u8>, found: &Found, delimiter: &str) {
        match found {
            Ok(documents) => {
                for document in documents {
                    out.extend_from_slice(delimiter.as_bytes());
                    out.extend_from_slice(format!("\r\nX-Doc-Id: {}", header_text(document.id.as_str())).as_bytes());
                    out.extend_from_slice(
                        format!("\r\nX-Rev-Id: {}", header_text(&document.rev.to_string())).as_bytes(),
                    );
                    out.extend_from_slice(JSON_PART);
                    document.write_json(out);
                }
            }
            Err(refused) => {
                out.extend_from_slice(delimiter.as_bytes());
                out.extend_from_slice(JSON_PART_ERROR);
                // In CouchDB a missing revision does not say of which document.
                let named = !matches!(self.asked, Ok(Asked::Rev(..)));
                self.write_refusal(out, refused, named);
            }
        }
    }

    fn write_refusal(&self, out: &mut Vec<u8>, refused: &ApiError, named: bool) {
        out.push(b'{');
        if named {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(self.id.as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(b"\"rev\":");
        out.extend_from_slice(self.rev().as_bytes());
        out.push(b',');
        refused.write_members(out);
        out.push(b'}');
    }

    /// The revision as an error repeats it: of a document that is not there and was asked for without one, CouchDB
    /// says `"undefined"`.
    fn rev(&self) -> &str {
        if matches!(self.asked, Ok(Asked::Leaves(_))) { "\"undefined\"" } else { &self.rev }
    }
}

impl Asked {
    fn parse(id: &str, rev: &str) -> Result<Asked, ApiError> {
        let string = |json| serde_json::from_str::<String>(json).ok();
        let id = string(id).ok_or_else(ApiError::id_not_string)?;
        if LocalId::parse(&id).is_some() {
            return Err(ApiError::not_found("missing"));
        }
        let id = DocId::parse(&id)?;
        if rev == NULL {
            return Ok(Asked::Leaves(id));
        }
        let rev = string(rev).ok_or(RevError::Format)?;
        Ok(Asked::Rev(id, RevId::parse(&rev)?))
    }
}

/// A text as it may stand in a header: controls, and letters beyond ASCII, are escaped.
fn header_text(text: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(text, CONTROLS)
}
