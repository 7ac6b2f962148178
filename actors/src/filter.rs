//! What a feed shows of a database's changes.

use std::collections::HashSet;
use std::sync::Arc;

use seqtide_storage::model::doc_id::DocId;

/// Which changes a feed shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Filter {
    /// All.
    #[default]
    All,
    /// Those of the listed documents.
    Ids(Arc<HashSet<DocId>>),
    /// Those of documents whose ids start so.
    Prefix(Arc<str>),
}

impl Filter {
    /// Those of the listed documents.
    pub fn ids(ids: impl IntoIterator<Item = DocId>) -> Filter {
        Filter::Ids(Arc::new(ids.into_iter().collect()))
    }

    /// Those of documents whose ids start with `prefix`.
    pub fn prefix(prefix: &str) -> Filter {
        Filter::Prefix(prefix.into())
    }

    /// CouchDB's `_design`: ids that start so; it looks for no slash.
    pub fn design() -> Filter {
        Filter::prefix("_design")
    }

    /// Whether changes of this document are shown.
    pub fn keeps(&self, id: &str) -> bool {
        match self {
            Filter::All => true,
            Filter::Ids(ids) => ids.contains(id),
            Filter::Prefix(prefix) => id.starts_with(&**prefix),
        }
    }
}
