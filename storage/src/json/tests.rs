//! Tests of the module as a whole.

mod compacting;
mod hashing;
mod special;
mod tree;

use super::*;

fn scan(text: &str) -> Result<Document, DocumentError> {
    scan_document(text.as_bytes(), &ScanLimits::default())
}

fn compacted(text: &str) -> Result<String, DocumentError> {
    compact_value(text.as_bytes(), &ScanLimits::default()).map(|bytes| String::from_utf8(bytes).unwrap())
}
