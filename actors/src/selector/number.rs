//! Numbers as CouchDB has them: integers of any size, and doubles. They are compared by value, exactly.

use std::cmp::Ordering;
use std::hash::Hasher;

/// The first double beyond `i64`.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// A number of a JSON text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number<'a> {
    Integer(i64),
    /// The digits of an integer beyond `i64`, with its sign.
    Big(&'a str),
    /// A number with a point or an exponent; finite.
    Float(f64),
}

impl<'a> Number<'a> {
    pub fn parse(text: &'a str) -> Number<'a> {
        if let Ok(integer) = text.parse() {
            return Number::Integer(integer);
        }
        match text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            true => Number::Float(text.parse().unwrap_or_default()),
            false => Number::Big(text),
        }
    }

    /// The order of values: `1` is `1.0`.
    pub fn compare(self, other: Number<'_>) -> Ordering {
        use Number::{Big, Float, Integer};
        match (self, other) {
            (Integer(one), Integer(other)) => one.cmp(&other),
            (Float(one), Float(other)) => one.partial_cmp(&other).unwrap_or(Ordering::Equal),
            (Integer(one), Float(other)) => integer_and_float(one, other),
            (Big(one), Big(other)) => compare_digits(one, other),
            (Big(one), Float(other)) if other.abs() >= TWO_TO_63 => compare_digits(one, &digits(other)),
            (Big(one), _) if one.starts_with('-') => Ordering::Less,
            (Big(_), _) => Ordering::Greater,
            (one, other) => other.compare(one).reverse(),
        }
    }

    /// The order of values, and an integer before the double of the same value: only equal numbers of one kind are
    /// equal.
    pub fn compare_exactly(self, other: Number<'_>) -> Ordering {
        let is_float = |number| matches!(number, Number::Float(_));
        self.compare(other).then_with(|| is_float(self).cmp(&is_float(other)))
    }

    /// What is left of an integer divided by `divisor`, which is not 0: with the integer's sign, as CouchDB's `rem`.
    pub fn remainder(self, divisor: i64) -> Option<i64> {
        match self {
            Number::Integer(integer) => Some(integer.wrapping_rem(divisor)),
            Number::Big(text) => Some(remainder_of_digits(text, divisor)),
            Number::Float(_) => None,
        }
    }

    /// Feeds a hasher the same bytes for numbers of equal value, on every machine.
    pub fn hash_value(self, hasher: &mut impl Hasher) {
        let mut write = |tag: u8, bytes: &[u8]| {
            hasher.write(&[tag]);
            hasher.write(bytes);
        };
        match self {
            Number::Float(float) if float.fract() != 0.0 => write(5, &float.to_bits().to_be_bytes()),
            Number::Float(float) if float.abs() >= TWO_TO_63 => Number::parse(&digits(float)).hash_value(hasher),
            Number::Float(float) => Number::Integer(float as i64).hash_value(hasher),
            Number::Integer(integer) => write(3, &integer.to_be_bytes()),
            Number::Big(text) => write(4, text.as_bytes()),
        }
    }
}

/// The decimal digits of a double beyond `i64`, which is a whole number; Rust prints them all.
fn digits(whole: f64) -> String {
    format!("{whole:.0}")
}

fn integer_and_float(integer: i64, float: f64) -> Ordering {
    if float >= TWO_TO_63 {
        return Ordering::Less;
    }
    if float < -TWO_TO_63 {
        return Ordering::Greater;
    }
    let zero_and_fraction = || 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal);
    integer.cmp(&(float as i64)).then_with(zero_and_fraction)
}

fn compare_digits(one: &str, other: &str) -> Ordering {
    let magnitudes = |one: &str, other: &str| one.len().cmp(&other.len()).then_with(|| one.cmp(other));
    match (one.strip_prefix('-'), other.strip_prefix('-')) {
        (None, None) => magnitudes(one, other),
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(one), Some(other)) => magnitudes(other, one),
    }
}

fn remainder_of_digits(text: &str, divisor: i64) -> i64 {
    /// So many digits at once, with a remainder below 2^63 in front of them, are below 2^127.
    const CHUNK: usize = 18;
    let modulus = i128::from(divisor).abs();
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let rest = digits.chunks(CHUNK).fold(0, |rest, chunk| {
        let shifted = chunk.iter().fold(rest, |value: i128, digit| value * 10 + i128::from(digit & 15));
        shifted % modulus
    });
    // Below the modulus, which is at most 2^63.
    (if text.starts_with('-') { -rest } else { rest }) as i64
}
