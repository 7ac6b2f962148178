//! Mango selectors: CouchDB's language of conditions on documents, `{"type":"order","total":{"$gt":100}}`.
//!
//! A selector is compiled once ([`Selector::from_json`]): names become paths, negations move down to the single tests,
//! and what is left is in a canonical form, so that equal filters are equal values. A document is opened once
//! ([`DocView`]) and may be shown to any number of selectors and [`Fields`]; nothing of it is parsed before it is asked
//! for, and no tree of values is built.
//!
//! Values are compared in CouchDB's order: `null < false < true < numbers < strings < arrays < objects`, strings by
//! the root collation of Unicode. `docs/filters.md` is the reference for users.
//!
//! Source: CouchDB's `mango_selector`, `mango_doc` and `couch_ejson_compare`.

mod compile;
mod condition;
mod document;
mod error;
mod fields;
mod index_keys;
mod json;
mod members;
mod number;
mod operator;
mod order;
mod path;
mod pattern;
mod terms;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

pub use self::document::DocView;
pub use self::error::SelectorError;
pub use self::fields::Fields;
pub use self::index_keys::SelectorKeys;
pub use self::path::FieldPath;
pub use self::terms::{EqualityTerm, ScalarKey};

use self::condition::Condition;

/// What a selector may cost.
pub(crate) mod limits {
    /// The longest text of a selector or of a list of fields, in bytes.
    pub const TEXT_BYTES_MAX: usize = 1_000_000;
    /// How deep a selector's objects and arrays may nest, and how many steps a path may have.
    pub const NESTING_MAX: usize = 100;
    /// The tests of fields in one selector.
    pub const CONDITIONS_MAX: usize = 1_000;
    /// The paths in one list of fields.
    pub const FIELDS_MAX: usize = 1_000;
    /// The `$regex` in one selector.
    pub const PATTERNS_MAX: usize = 16;
    /// The longest `$regex`, in bytes.
    pub const PATTERN_BYTES_MAX: usize = 1_000;
    /// The size of one compiled `$regex`, and of its cache while it runs, in bytes each.
    pub const PATTERN_COMPILED_BYTES_MAX: usize = 512 * 1024;
}

/// A compiled selector. Cloning shares it. Two selectors are equal when they ask the same in the same words, whatever
/// the order of their conditions and however their negations and paths are written; comparing and hashing them is
/// cheap.
#[derive(Debug, Clone)]
pub struct Selector(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    condition: Condition,
    /// Of the condition: selectors are compared far more often than compiled.
    hash: u64,
    /// What it was compiled from, its end left out where it is long.
    text: String,
}

impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.hash == other.0.hash && self.0.condition == other.0.condition
    }
}

impl Eq for Selector {}

impl Hash for Selector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl Selector {
    /// Compiles a selector's JSON text. The order of members counts where a whole object is compared.
    ///
    /// # Errors
    /// [`SelectorError`]; its text is the `reason` that CouchDB gives.
    pub fn from_json(text: &str) -> Result<Selector, SelectorError> {
        let condition = compile::selector(text)?;
        let mut hasher = DefaultHasher::new();
        condition.hash(&mut hasher);
        let text = crate::filter::shortened(text.to_owned());
        Ok(Selector(Arc::new(Compiled { condition, hash: hasher.finish(), text })))
    }

    /// What it was compiled from, its end left out where it is long.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether the document is one that is asked for.
    pub fn matches(&self, document: &DocView<'_>) -> bool {
        self.0.condition.holds(document)
    }

    /// What must be so in every document that matches, as far as it can be looked up in an index: for each term, one
    /// of its keys is among the document's [`DocView::scalar_keys`] at its path. No terms: any document may match.
    pub fn equality_terms(&self) -> Vec<EqualityTerm> {
        terms::of(&self.0.condition)
    }
}

#[cfg(test)]
pub(crate) mod tests;
