//! Why a document's text is refused.

use crate::model::rev::RevError;

/// Why a document's text is refused. The text is the `reason` that a client reads; the doc lines give CouchDB's word
/// for its `error`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, not UTF-8, half a surrogate pair, or a float beyond a double: `bad_request`.
    #[error("invalid UTF-8 JSON")]
    NotJson,
    /// JSON, but no object: `bad_request`.
    #[error("Document must be a JSON object")]
    NotAnObject,
    /// Objects and arrays nest beyond the limit: `bad_request`.
    #[error("JSON is nested deeper than {max} levels")]
    NestedTooDeep {
        /// The limit.
        max: usize,
    },
    /// More members or revisions than the limit: `document_too_large`.
    #[error("the document has too many {what}: at most {max} are accepted")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// A member that starts with an underscore and is unknown or of the wrong type: `doc_validation`.
    #[error("Bad special document member: {name}")]
    BadSpecialMember {
        /// The member's name.
        name: String,
    },
    /// `_id` is no string: `illegal_docid`.
    #[error("Document id must be a string")]
    IdNotString,
    /// `_rev` is no revision id: `bad_request`.
    #[error(transparent)]
    Rev(#[from] RevError),
    /// `_revisions.start` is missing or no integer: `doc_validation`.
    #[error("_revisions.start isn't an integer.")]
    RevisionsStartNotInteger,
    /// `_revisions.start` leaves no generation for the oldest id, or passes 64 bits: `doc_validation`.
    #[error("_revisions.start must be at least the number of ids, and below 2^64")]
    RevisionsStartOutOfRange,
    /// `_revisions.ids` is missing or no array: `doc_validation`.
    #[error("_revisions.ids isn't a array.")]
    RevisionsIdsNotArray,
    /// `_revisions.ids` names no revision: `doc_validation`.
    #[error("_revisions.ids is empty")]
    RevisionsIdsEmpty,
    /// An element of `_revisions.ids` is no string: `doc_validation`.
    #[error("RevId isn't a string")]
    RevisionsIdNotString,
    /// An element of `_revisions.ids` has 32 characters that are not hex: `doc_validation`.
    #[error("RevId isn't a valid hexadecimal")]
    RevisionsIdNotHex,
    /// An element of `_revisions.ids` is longer than a revision hash may be: `doc_validation`.
    #[error("RevId is longer than 128 bytes")]
    RevisionsIdTooLong,
}
