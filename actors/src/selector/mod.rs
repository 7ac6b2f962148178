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
mod cost;
mod document;
mod error;
mod fields;
mod index_keys;
mod json;
mod members;
pub(crate) mod memory;
mod number;
mod operator;
mod order;
mod path;
mod pattern;
mod terms;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use self::document::DocView;
pub use self::error::SelectorError;
pub use self::fields::Fields;
pub use self::index_keys::SelectorKeys;
pub use self::path::FieldPath;
pub use self::terms::{EqualityTerm, ScalarKey};

use self::condition::Condition;
use self::cost::Cost;
use self::memory::InMemory;
use crate::fingerprint::Fingerprint;

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
    /// The characters in all `$regex` of a selector, each as often as it is repeated at most: a byte of a text may take
    /// a step for each of them.
    pub const PATTERN_PLACES_MAX: usize = 1_000;
    /// What all selectors and lists of fields take in memory when one more feed is refused for its own, in bytes.
    pub const BYTES_OF_ALL_MAX: usize = 256 << 20;
    /// The size of one compiled `$regex`, in bytes.
    pub const PATTERN_COMPILED_BYTES_MAX: usize = 512 * 1024;
    /// What is remembered of the searches for one, in bytes, forwards and backwards, for each thread that searches.
    pub const PATTERN_CACHE_BYTES_MAX: usize = 256 * 1024;
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
    fingerprint: Fingerprint,
    /// What it was compiled from, its end left out where it is long.
    text: String,
    /// See [`Cost::steps_a_byte`].
    steps_a_byte: usize,
    _memory: InMemory,
}

impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.fingerprint == other.0.fingerprint && self.0.condition == other.0.condition
    }
}

impl Eq for Selector {}

impl Hash for Selector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.fingerprint.hash(state);
    }
}

impl Selector {
    /// Compiles a selector's JSON text. The order of members counts where a whole object is compared.
    ///
    /// # Errors
    /// [`SelectorError`]; its text is the `reason` that CouchDB gives.
    pub fn from_json(text: &str) -> Result<Selector, SelectorError> {
        let condition = compile::selector(text)?;
        let Cost { steps_a_byte, memory_bytes } = cost::of_condition(&condition);
        let fingerprint = Fingerprint::of(&condition);
        // Names are in it as often as the text has them.
        let _memory = InMemory::of(text.len() + memory_bytes);
        let text = crate::filter::shortened(text.to_owned());
        Ok(Selector(Arc::new(Compiled { condition, fingerprint, text, steps_a_byte, _memory })))
    }

    /// How many steps it takes for each byte of a document, roughly and at most; one of them to find its members.
    pub(crate) fn steps_a_byte(&self) -> usize {
        self.0.steps_a_byte.saturating_add(1)
    }

    /// The same for a document with so long a body.
    pub(crate) fn steps(&self, body_bytes: usize) -> usize {
        /// What showing a document counts for beside its body.
        const BYTES_EACH: usize = 256;
        (BYTES_EACH + body_bytes).saturating_mul(self.steps_a_byte())
    }

    /// Stands for it and all that are equal to it.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
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
