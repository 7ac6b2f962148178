//! Tests of the module as a whole.

mod bounds;
mod couchdb;
mod equality_terms;
mod fields;
mod laws;
mod naive;
mod ordering;
pub(crate) mod tree;

use seqtide_storage::LeafRev;
use seqtide_storage::json::{Body, ScanLimits, scan_document};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;

use super::*;

/// What a view looks at.
struct Document {
    id: DocId,
    leaf: LeafRev,
    body: Body,
}

impl Document {
    fn new(id: &str, body: &str) -> Document {
        let leaf = LeafRev { rev: RevId::parse("1-a").unwrap(), deleted: false };
        let limits = ScanLimits { nesting_max: 100_000, ..ScanLimits::default() };
        Document { id: DocId::parse(id).unwrap(), leaf, body: scan_document(body.as_bytes(), &limits).unwrap().body }
    }

    fn tombstone(id: &str) -> Document {
        let leaf = LeafRev { rev: RevId::parse("2-b").unwrap(), deleted: true };
        Document { leaf, ..Document::new(id, "{}") }
    }

    fn view(&self) -> DocView<'_> {
        DocView::new(&self.id, &self.leaf, &self.body)
    }
}

fn selector(text: &str) -> Selector {
    Selector::from_json(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether a selector matches a document with this body.
fn matches(text: &str, body: &str) -> bool {
    selector(text).matches(&Document::new("d", body).view())
}

/// The reason why a selector is refused.
fn reason(text: &str) -> String {
    match Selector::from_json(text) {
        Ok(_) => panic!("{text} is accepted"),
        Err(error) => error.to_string(),
    }
}
