//! The order of values: `null < false < true < numbers < strings < arrays < objects`.
//!
//! Source: CouchDB's `couch_ejson_compare`. Strings are in the order of the Unicode collation algorithm, root
//! collation, three levels, by ICU4X; that is, `a < A < b`, and letters come after digits and punctuation.

use std::cmp::Ordering;
use std::sync::LazyLock;

use icu_collator::CollatorBorrowed;
use icu_collator::options::{CollatorOptions, Strength};

use super::json::Datum;

/// Which values are equal, and which comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Strings in the order of their collation, numbers by value: of everything but the cases below.
    Collated,
    /// Strings in the order of their bytes, numbers by value: of `_id`.
    Bytes,
    /// Strings in the order of their bytes, `1` apart from `1.0`: of `$all`.
    Exact,
}

impl Order {
    /// Compares two values. Descends no deeper than the shallower of the two.
    pub fn compare(self, one: Datum<'_>, other: Datum<'_>) -> Ordering {
        match (one, other) {
            (Datum::Bool(one), Datum::Bool(other)) => one.cmp(&other),
            (Datum::Number(one), Datum::Number(other)) if self == Order::Exact => one.compare_exactly(other),
            (Datum::Number(one), Datum::Number(other)) => one.compare(other),
            (Datum::String(one), Datum::String(other)) => self.compare_strings(&one, &other),
            (Datum::Array(one), Datum::Array(other)) => {
                in_turn(one, other, |one, other| self.compare(one.datum(), other.datum()))
            }
            (Datum::Object(one), Datum::Object(other)) => in_turn(one, other, |(name, value), (other_name, other)| {
                self.compare_strings(&name, &other_name).then_with(|| self.compare(value.datum(), other.datum()))
            }),
            (one, other) => rank(&one).cmp(&rank(&other)),
        }
    }

    fn compare_strings(self, one: &str, other: &str) -> Ordering {
        match self {
            Order::Collated => collate(one, other),
            Order::Bytes | Order::Exact => one.cmp(other),
        }
    }
}

fn rank(datum: &Datum<'_>) -> u8 {
    match datum {
        Datum::Null => 0,
        Datum::Bool(_) => 1,
        Datum::Number(_) => 2,
        Datum::String(_) => 3,
        Datum::Array(_) => 4,
        Datum::Object(_) => 5,
    }
}

/// Compares element by element; of two that are the same so far, the shorter comes first.
fn in_turn<T>(
    mut one: impl Iterator<Item = T>,
    mut other: impl Iterator<Item = T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        let ordering = match (one.next(), other.next()) {
            (Some(one), Some(other)) => compare(one, other),
            (None, None) => return Ordering::Equal,
            (one, other) => return one.is_some().cmp(&other.is_some()),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
}

const fn root_collator(strength: Strength) -> CollatorBorrowed<'static> {
    let mut options = CollatorOptions::default();
    options.strength = Some(strength);
    CollatorBorrowed::new_root(options)
}

static COLLATOR: CollatorBorrowed<'static> = root_collator(Strength::Tertiary);
static PRIMARY_COLLATOR: CollatorBorrowed<'static> = root_collator(Strength::Primary);

/// The place of each ASCII character among the others, one for both cases of a letter; 0 for those that collation
/// ignores.
static ASCII_RANKS: LazyLock<[u8; 128]> = LazyLock::new(|| {
    let mut characters: Vec<String> = (0..128u8).map(|byte| char::from(byte).to_string()).collect();
    characters.sort_by(|one, other| PRIMARY_COLLATOR.compare(one, other));
    let mut ranks = [0; 128];
    let (mut rank, mut previous) = (0, "");
    for character in &characters {
        rank += u8::from(PRIMARY_COLLATOR.compare(previous, character).is_ne());
        ranks[usize::from(character.as_bytes()[0])] = rank;
        previous = character;
    }
    ranks
});

/// Compares strings by collation.
pub(super) fn collate(one: &str, other: &str) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    collate_ascii(one.as_bytes(), other.as_bytes()).unwrap_or_else(|| COLLATOR.compare(one, other))
}

/// Decides what can be decided by ASCII alone, several times faster than the general algorithm. An ASCII character
/// has one weight on the first level unless something that is not ASCII follows it, and two of them differ on no
/// other level than by case.
pub(super) fn collate_ascii(one: &[u8], other: &[u8]) -> Option<Ordering> {
    let ranks = &*ASCII_RANKS;
    let rank = |byte: u8| ranks.get(usize::from(byte)).copied().filter(|rank| *rank > 0);
    let stands_alone = |text: &[u8], at: usize| text.get(at + 1).is_none_or(|next| rank(*next).is_some());
    let mut case = Ordering::Equal;
    let mut at = 0;
    loop {
        match (one.get(at).copied(), other.get(at).copied()) {
            (Some(mine), Some(theirs)) => {
                let ordering = rank(mine)?.cmp(&rank(theirs)?);
                if ordering.is_ne() {
                    return (stands_alone(one, at) && stands_alone(other, at)).then_some(ordering);
                }
                // Lower case comes first, and has the higher code.
                case = case.then(theirs.cmp(&mine));
            }
            (Some(mine), None) => return rank(mine).map(|_| Ordering::Greater),
            (None, Some(theirs)) => return rank(theirs).map(|_| Ordering::Less),
            (None, None) => return Some(case),
        }
        at += 1;
    }
}

/// Bytes that are the same for all strings that collation holds for equal, and for some that it does not: what tells
/// `a` from `A` and `á` is left out, which makes it cheaper.
pub(super) fn collation_key(text: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() + 8);
    let Ok(()) = PRIMARY_COLLATOR.write_sort_key_to(text, &mut key);
    key
}
