//! What an index needs to know of selectors and documents, so that a document is shown only to selectors it may match.

use std::cmp::Ordering;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::condition::Condition;
use super::document::{DocView, Subject};
use super::json::{Datum, Json};
use super::operator::{Constant, Operator};
use super::order::{Order, collation_key};
use super::path::FieldPath;

/// A hash of a scalar. Values that a selector holds for equal (`1` and `1.0`, the two spellings of `é`) have the same
/// key; others seldom have. The same in every process on every machine, for as long as [`ScalarKey::VERSION`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScalarKey(u64);

impl ScalarKey {
    /// How keys are made: of these bytes, and with these sort keys of strings. It must rise when either changes.
    pub const VERSION: u64 = 1;

    /// The key of a value that is no array and no object. `docs/storage-format.md` says what is hashed.
    fn of(value: &Datum<'_>, order: Order) -> Option<ScalarKey> {
        let mut hasher = SipHasher13::new();
        match value {
            Datum::Null => hasher.write(&[0]),
            Datum::Bool(value) => hasher.write(&[1 + u8::from(*value)]),
            Datum::Number(number) => number.hash_value(&mut hasher),
            Datum::String(text) => {
                hasher.write(&[6]);
                match order {
                    Order::Collated => hasher.write(&collation_key(text)),
                    Order::Bytes | Order::Exact => hasher.write(text.as_bytes()),
                }
            }
            Datum::Array(_) | Datum::Object(_) => return None,
        }
        Some(ScalarKey(hasher.finish()))
    }

    /// The key as a number.
    pub fn to_u64(self) -> u64 {
        self.0
    }
}

/// A necessary condition of a selector: a document that matches has one of the keys at the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EqualityTerm {
    /// The field.
    pub path: FieldPath,
    /// The keys, sorted, each once. None: no document matches.
    pub keys: Vec<ScalarKey>,
}

impl EqualityTerm {
    fn new<'a>(path: &FieldPath, constants: impl IntoIterator<Item = &'a Constant>) -> Option<EqualityTerm> {
        let key = |constant: &Constant| ScalarKey::of(&constant.datum(), path.order());
        let mut keys: Vec<ScalarKey> = constants.into_iter().map(key).collect::<Option<_>>()?;
        keys.sort_unstable();
        keys.dedup();
        Some(EqualityTerm { path: path.clone(), keys })
    }

    /// The term that two make of which one must be so.
    fn or(mut self, other: EqualityTerm) -> Option<EqualityTerm> {
        self.keys.extend(other.keys);
        self.keys.sort_unstable();
        self.keys.dedup();
        (self.path == other.path).then_some(self)
    }
}

/// The terms of a condition.
pub(super) fn of(condition: &Condition) -> Vec<EqualityTerm> {
    match condition {
        Condition::All(list) => list.iter().flat_map(of).collect(),
        // Each must have a term, and all of them the same field.
        Condition::Any(list) => {
            let terms = list.iter().map(|condition| of(condition).into_iter().next());
            let either = terms.reduce(|one, other| one?.or(other?)).flatten();
            either.into_iter().collect()
        }
        Condition::Field { path, operator, negated: false } => match operator {
            Operator::Compare(Ordering::Equal, constant) => EqualityTerm::new(path, [constant]).into_iter().collect(),
            Operator::In(set) => EqualityTerm::new(path, set.iter()).into_iter().collect(),
            Operator::All { set, .. } => set.iter().filter_map(|each| EqualityTerm::new(path, [each])).collect(),
            _ => Vec::new(),
        },
        Condition::Field { .. } | Condition::Missing { .. } => Vec::new(),
    }
}

impl DocView<'_> {
    /// The keys of the value at a path: its own if it is a scalar, those of its elements if it is an array.
    pub fn scalar_keys(&self, path: &FieldPath) -> impl Iterator<Item = ScalarKey> {
        let order = path.order();
        let (single, elements) = match self.find(path) {
            Ok(Datum::Array(elements)) => (None, Some(elements)),
            Ok(value) => (ScalarKey::of(&value, order), None),
            Err(_) => (None, None),
        };
        let of_element = move |element: Json<'_>| ScalarKey::of(&element.datum(), order);
        single.into_iter().chain(elements.into_iter().flatten().filter_map(of_element))
    }
}
