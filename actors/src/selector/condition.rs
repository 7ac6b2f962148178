//! Conditions in their normal form: no negation above a single test.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::document::Subject;
use super::members::NotThere;
use super::operator::Operator;
use super::path::FieldPath;

/// What must be so.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Condition {
    /// A value is there and passes the test; or, negated, is there and does not pass it.
    Field { path: FieldPath, operator: Operator, negated: bool },
    /// There is no such member.
    Missing { path: FieldPath },
    /// All of them hold. Made by [`Condition::all`].
    All(Vec<Condition>),
    /// One of them holds. Not empty. Made by [`Condition::any`].
    Any(Vec<Condition>),
}

impl Condition {
    /// What always holds.
    pub fn always() -> Condition {
        Condition::All(Vec::new())
    }

    /// Whether all of a list hold.
    pub fn all(list: Vec<Condition>) -> Condition {
        let mut flat = Vec::with_capacity(list.len());
        for condition in list {
            match condition {
                Condition::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        one_or(flat, Condition::All)
    }

    /// Whether one of a list holds. An empty list holds, as CouchDB has it.
    pub fn any(list: Vec<Condition>) -> Condition {
        let mut flat = Vec::with_capacity(list.len());
        for condition in list {
            match condition {
                Condition::Any(inner) => flat.extend(inner),
                always if always == Condition::always() => return always,
                other => flat.push(other),
            }
        }
        if flat.is_empty() { Condition::always() } else { one_or(flat, Condition::Any) }
    }

    /// Whether the condition holds.
    pub fn holds<S: Subject + ?Sized>(&self, subject: &S) -> bool {
        match self {
            Condition::Field { path, operator, negated } => {
                subject.find(path).is_ok_and(|value| operator.passes(value, path.order()) != *negated)
            }
            Condition::Missing { path } => matches!(subject.find(path), Err(NotThere::Absent)),
            Condition::All(list) => list.iter().all(|condition| condition.holds(subject)),
            Condition::Any(list) => list.iter().any(|condition| condition.holds(subject)),
        }
    }

    fn cost(&self) -> u8 {
        match self {
            Condition::Missing { .. } => 0,
            Condition::Field { operator, .. } => operator.cost(),
            Condition::All(_) | Condition::Any(_) => u8::MAX,
        }
    }
}

/// The list in its canonical order: the cheap ones first, and among these any order that is always the same.
fn one_or(mut list: Vec<Condition>, several: fn(Vec<Condition>) -> Condition) -> Condition {
    list.sort_by_cached_key(|condition| {
        let mut hasher = DefaultHasher::new();
        condition.hash(&mut hasher);
        (condition.cost(), hasher.finish())
    });
    list.dedup();
    match list.pop() {
        Some(only) if list.is_empty() => only,
        last => several(list.into_iter().chain(last).collect()),
    }
}
