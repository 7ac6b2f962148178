//! Documents as JSON text: checked and compacted in one pass when a client hands them in, hashed as CouchDB does.
//!
//! No tree of values is built and nothing recurses, so that cost and stack depth do not follow what a client nests.
//! [`scan_document`] splits a document into its special members and its [`Body`]; [`revision_hash`] reads a body.

mod body;
mod compact;
mod document;
mod each_member;
mod error;
mod hash;
mod members;
mod number;
mod revisions;
mod string;
mod term;

pub use body::Body;
pub use compact::compact_value;
pub use document::{Attachments, Document, scan_document};
pub use each_member::each_member;
pub use error::DocumentError;
pub use hash::revision_hash;
pub use string::write_json_string;

/// What a scan allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimits {
    /// How deep objects and arrays may nest, the outermost counting as 1.
    pub nesting_max: usize,
    /// How many members may be known at once, which are those of all objects that are open, repeated ones included.
    pub members_max: usize,
    /// How many revisions `_revisions` may name. No client sends more than a source's `_revs_limit`, which is 1,000
    /// where nobody changed it.
    pub revisions_max: usize,
}

impl Default for ScanLimits {
    fn default() -> ScanLimits {
        ScanLimits { nesting_max: 512, members_max: usize::MAX, revisions_max: 100_000 }
    }
}

#[cfg(test)]
mod tests;
