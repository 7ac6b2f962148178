//! Document ids, and the ids of `_local` documents.

use std::fmt;
use std::sync::Arc;

/// The longest document id, in bytes: LMDB's keys end at 511.
pub const DOC_ID_MAX_BYTES: usize = 500;
const LOCAL_PREFIX: &str = "_local/";
const DESIGN_PREFIX: &str = "_design/";

/// The id of a document: 1 to [`DOC_ID_MAX_BYTES`] bytes of UTF-8, cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(Arc<str>);

impl DocId {
    /// Checks an id.
    ///
    /// # Errors
    /// [`DocIdError`], CouchDB's `illegal_docid`. Source: CouchDB `couch_doc:validate_docid`.
    pub fn parse(text: &str) -> Result<DocId, DocIdError> {
        let illegal_underscore = text.starts_with('_') && !text.starts_with(DESIGN_PREFIX);
        match text {
            "" => Err(DocIdError::Empty),
            "_design/" | "_local/" => Err(DocIdError::Prefix { prefix: text.to_owned() }),
            _ if illegal_underscore => Err(DocIdError::Reserved),
            _ if text.len() > DOC_ID_MAX_BYTES => Err(DocIdError::too_long(text)),
            _ => Ok(DocId(text.into())),
        }
    }

    /// An id that was checked when it was stored.
    pub(crate) fn stored(text: &str) -> DocId {
        DocId(text.into())
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a design document's id.
    pub fn is_design(&self) -> bool {
        self.0.starts_with(DESIGN_PREFIX)
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

impl std::borrow::Borrow<str> for DocId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The id of a `_local` document, kept without its prefix: a document that is never replicated and never in a feed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId(Arc<str>);

impl LocalId {
    /// Reads `_local/name`; `None` when the text is not of that form, so that it may be read as a [`DocId`].
    ///
    /// # Errors
    /// [`DocIdError`] when the name is empty or the whole id is longer than [`DOC_ID_MAX_BYTES`].
    pub fn parse(text: &str) -> Option<Result<LocalId, DocIdError>> {
        let name = text.strip_prefix(LOCAL_PREFIX)?;
        Some(match name {
            "" => Err(DocIdError::Prefix { prefix: LOCAL_PREFIX.to_owned() }),
            _ if text.len() > DOC_ID_MAX_BYTES => Err(DocIdError::too_long(text)),
            _ => Ok(LocalId(name.into())),
        })
    }

    /// The name after `_local/`.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LocalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LOCAL_PREFIX}{}", self.0)
    }
}

/// Why a document id is refused: CouchDB's `illegal_docid`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocIdError {
    /// The empty id.
    #[error("Document id must not be empty")]
    Empty,
    /// `_design/` or `_local/` with nothing behind it.
    #[error("Illegal document id `{prefix}`")]
    Prefix {
        /// The id as it was given.
        prefix: String,
    },
    /// An underscore at the start of anything but a design or local document.
    #[error("Only reserved document ids may start with underscore.")]
    Reserved,
    /// Longer than [`DOC_ID_MAX_BYTES`].
    #[error("Document id `{start}…` is too long: {bytes} bytes, at most {DOC_ID_MAX_BYTES} are stored")]
    TooLong {
        /// How it begins.
        start: String,
        /// The length that was given.
        bytes: usize,
    },
}

impl DocIdError {
    fn too_long(text: &str) -> DocIdError {
        DocIdError::TooLong { start: text.chars().take(40).collect(), bytes: text.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_couchdbs_rules_and_end_at_the_limit() {
        for id in ["a", "_design/x", "a/b c\u{0}", "é"] {
            assert_eq!(DocId::parse(id).unwrap().as_str(), id);
        }
        assert_eq!(DocId::parse(""), Err(DocIdError::Empty));
        assert_eq!(DocId::parse("_x"), Err(DocIdError::Reserved));
        assert_eq!(DocId::parse("_local/x"), Err(DocIdError::Reserved));
        assert_eq!(DocId::parse(&"_".repeat(600)), Err(DocIdError::Reserved), "however long it is");
        assert_eq!(DocId::parse("_design/").unwrap_err().to_string(), "Illegal document id `_design/`");
        assert!(DocId::parse(&"a".repeat(500)).is_ok());
        let too_long = DocId::parse(&"é".repeat(251)).unwrap_err().to_string();
        let start = "é".repeat(40);
        assert_eq!(too_long, format!("Document id `{start}…` is too long: 502 bytes, at most 500 are stored"));
    }

    #[test]
    fn local_ids_are_told_from_documents() {
        assert_eq!(LocalId::parse("a"), None);
        assert_eq!(LocalId::parse("_local/x/y==").unwrap().unwrap().to_string(), "_local/x/y==");
        assert!(LocalId::parse("_local/").unwrap().is_err());
    }
}
