//! The index of a database's feed, as a program asks for it: a feed whose selector has an equality or `$in` term on one
//! of its fields reads its matches from the past, and no other documents.

use seqtide_storage::{FeedIndexStatus, Write};

use crate::selector::{FieldPath, SelectorError};

/// The fields that an index is of, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexFields(Vec<FieldPath>);

/// Why an index cannot be of some fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexFieldsError {
    /// One is no path.
    #[error(transparent)]
    Path(#[from] SelectorError),
    /// One is too long.
    #[error("the path {path:?} is too long: it may have at most {} bytes", IndexFields::PATH_BYTES_MAX)]
    TooLong {
        /// Its beginning.
        path: String,
    },
    /// There are too many.
    #[error("there are too many fields: an index has at most {}", IndexFields::FIELDS_MAX)]
    TooMany,
}

impl IndexFields {
    /// Most fields.
    pub const FIELDS_MAX: usize = 16;
    /// The longest path, in bytes.
    pub const PATH_BYTES_MAX: usize = 500;

    /// Reads paths as selectors spell them; one given twice counts once.
    ///
    /// # Errors
    /// [`IndexFieldsError`].
    pub fn parse<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Result<IndexFields, IndexFieldsError> {
        let mut fields = Vec::new();
        for path in paths {
            let path = path.as_ref();
            if path.len() > IndexFields::PATH_BYTES_MAX {
                return Err(IndexFieldsError::TooLong { path: path.chars().take(40).collect() });
            }
            let path = FieldPath::parse(path)?;
            if fields.contains(&path) {
                continue;
            }
            if fields.len() == IndexFields::FIELDS_MAX {
                return Err(IndexFieldsError::TooMany);
            }
            fields.push(path);
        }
        Ok(IndexFields(fields))
    }

    /// No fields: no index.
    pub fn none() -> IndexFields {
        IndexFields::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The write that makes the index one of these fields.
    pub fn write(&self) -> Write {
        Write::FeedIndex(self.0.iter().map(FieldPath::to_string).collect())
    }
}

/// What there is of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedIndex {
    /// The fields' paths, in the order in which they were given.
    pub fields: Vec<String>,
    /// How far it is.
    pub state: FeedIndexState,
    /// Documents it has gone through.
    pub rows_done: u64,
    /// Documents there are.
    pub rows_total: u64,
}

/// How far an index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedIndexState {
    /// There is none.
    None,
    /// It is being made of the documents that were there before. Of its fields those that it had before are in use.
    Building,
    /// All of its fields are in use.
    Ready,
    /// A row of it is damaged: feeds read without it until it is removed and made anew.
    Damaged,
}

impl FeedIndexState {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            FeedIndexState::None => "none",
            FeedIndexState::Building => "building",
            FeedIndexState::Ready => "ready",
            FeedIndexState::Damaged => "damaged",
        }
    }
}

impl FeedIndex {
    pub(crate) fn of(status: FeedIndexStatus, damaged: bool) -> FeedIndex {
        let FeedIndexStatus { fields, ready, rows_done, rows_total, .. } = status;
        let state = match (fields.is_empty(), ready) {
            (true, _) => FeedIndexState::None,
            _ if damaged => FeedIndexState::Damaged,
            (false, true) => FeedIndexState::Ready,
            (false, false) => FeedIndexState::Building,
        };
        FeedIndex { fields, state, rows_done, rows_total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Result<Vec<String>, IndexFieldsError> {
        IndexFields::parse(paths).map(|fields| match fields.write() {
            Write::FeedIndex(paths) => paths,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn paths_are_those_of_selectors_each_once() {
        assert_eq!(paths(&["a.b", r"a\.b", r"\a.b", "_id"]).unwrap(), ["a.b", r"a\.b", "_id"]);
        assert!(IndexFields::parse::<&str>([]).unwrap().is_empty());
    }

    #[test]
    fn what_no_index_can_be_of_is_named() {
        assert!(matches!(paths(&["a..b"]), Err(IndexFieldsError::Path(_))));
        let names: Vec<String> = (0..17).map(|n| format!("f{n}")).collect();
        assert!(IndexFields::parse(&names[..16]).is_ok());
        assert_eq!(IndexFields::parse(&names), Err(IndexFieldsError::TooMany));
        assert!(paths(&[&"x".repeat(500)]).is_ok());
        let error = paths(&[&"x".repeat(501)]).unwrap_err().to_string();
        assert!(error.contains("500 bytes") && error.len() < 150, "{error}");
    }
}
