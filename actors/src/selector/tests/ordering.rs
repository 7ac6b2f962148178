//! The order of numbers and strings.

use std::cmp::Ordering;

use icu_collator::{Collator, CollatorBorrowed};
use proptest::prelude::*;

use super::super::number::Number;
use super::super::order::{collate, collate_ascii, collation_key};
use super::naive::compare_numbers;
use super::*;

fn icu() -> CollatorBorrowed<'static> {
    Collator::try_new(Default::default(), Default::default()).unwrap()
}

fn any_number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,30})",
        "-?(0|[1-9][0-9]{0,20})\\.[0-9]{1,20}(e-?[0-9]{1,2})?",
        any::<i64>().prop_map(|integer| integer.to_string()),
        any::<i64>().prop_map(|integer| format!("{:.1}", integer as f64)),
        (any::<i64>(), -2..3i128).prop_map(|(integer, near)| ((integer as f64) as i128 + near).to_string()),
        (-1e300..1e300f64).prop_map(|float| format!("{float:e}")),
        (-1e300..1e300f64).prop_map(|float| format!("{float:.0}")),
    ]
}

const SPECIAL: [&str; 16] = [
    "\u{0}", "\u{7f}", "\u{ad}", "\u{301}", "\u{327}", "\u{b7}", "\u{387}", "é", "\u{660}", "\u{ff21}", "ﬁ", "가",
    "\u{1100}", "\u{fffe}", "\u{34f}", "😀",
];

/// Strings of what collation treats in ways of its own: ignored, contracted, reordered, equal to ASCII.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-cA-ClL]",
        3 => any::<u8>().prop_map(|byte| char::from(byte & 127).to_string()),
        2 => prop::sample::select(&SPECIAL[..]).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn numbers_are_compared_by_value(one in any_number(), other in any_number()) {
        let (left, right) = (Number::parse(&one), Number::parse(&other));
        let expected = compare_numbers(&one, &other);
        prop_assert_eq!(left.compare(right), expected);
        prop_assert_eq!(right.compare(left), expected.reverse());
    }

    #[test]
    fn strings_are_compared_as_icu_compares_them(one in any_text(), other in any_text()) {
        let expected = icu().compare(&one, &other);
        prop_assert_eq!(collate(&one, &other), expected);
        if expected.is_eq() {
            prop_assert_eq!(collation_key(&one), collation_key(&other));
        }
    }

    #[test]
    fn remainders_have_the_sign_of_the_value(value: i128, divisor: i64) {
        let text = value.to_string();
        prop_assume!(divisor != 0);
        prop_assert_eq!(Number::parse(&text).remainder(divisor).map(i128::from), Some(value % i128::from(divisor)));
    }
}

#[test]
fn numbers_around_the_edges_of_the_machine() {
    let sorted = [
        "-1e308",
        "-9223372036854775809",
        "-9223372036854775808",
        "-1.5",
        "-1",
        "-0.5",
        "0",
        "0.5",
        "9007199254740992.0",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775809",
        "18446744073709551616",
        "1e300",
    ];
    for (place, one) in sorted.iter().enumerate() {
        for (other_place, other) in sorted.iter().enumerate() {
            assert_eq!(Number::parse(one).compare(Number::parse(other)), place.cmp(&other_place), "{one} {other}");
        }
    }
    assert!(Number::parse("-9223372036854775808").compare(Number::parse("-9223372036854775808.0")).is_eq());
    assert!(Number::parse("18446744073709551616").compare(Number::parse("18446744073709551616.0")).is_eq());
}

/// What the fast way decides, it decides as ICU; whatever follows the ASCII characters.
#[test]
fn ascii_is_compared_as_icu_compares_it() {
    let icu = icu();
    let ascii = || (0..128u8).map(|byte| char::from(byte).to_string());
    let mut undecided = 0;
    for one in ascii() {
        for other in ascii() {
            let expected = icu.compare(&one, &other);
            let decided = collate_ascii(one.as_bytes(), other.as_bytes());
            assert_eq!(decided.unwrap_or(expected), expected, "{one:?} {other:?}");
            undecided += usize::from(decided.is_none());
        }
    }
    // The 28 characters that collation ignores, against all others.
    assert_eq!(undecided, 128 * 128 - 100 * 100);
    for follower in (0x80..=0x2ffff).filter_map(char::from_u32) {
        for (one, other) in [("l", "m"), ("L", "l"), ("a", "b"), ("-", "a")] {
            let (one, plain) = (format!("{one}{follower}"), format!("{other}z"));
            let other = format!("{other}{follower}");
            for (left, right) in [(&one, &other), (&one, &plain), (&plain, &other)] {
                let decided = collate_ascii(left.as_bytes(), right.as_bytes());
                assert!(decided.is_none_or(|ordering| ordering == icu.compare(left, right)), "{left:?} {right:?}");
            }
        }
    }
}

#[test]
fn strings_are_in_the_order_of_the_root_collation() {
    let sorted = ["", "_", "-", "0", "9", "a", "A", "á", "b", "e", "é", "f", "x", "X", "xyz", "z", "я"];
    for pair in sorted.windows(2) {
        assert_eq!(collate(pair[0], pair[1]), Ordering::Less, "{pair:?}");
    }
}

#[test]
fn ids_are_compared_by_their_bytes() {
    let matches = |text: &str, id: &str| selector(text).matches(&Document::new(id, r#"{"a":"S"}"#).view());
    assert!(!matches(r#"{"_id":{"$gt":"a"}}"#, "S"));
    assert!(matches(r#"{"a":{"$gt":"a"}}"#, "S"));
    assert!(!matches(r#"{"_id":"é"}"#, "e\u{301}"));
    assert!(matches(r#"{"_id":{"$in":["z","é","a"]}}"#, "é"));
}

#[test]
fn a_prefix_ends_where_a_character_ends() {
    assert!(matches(r#"{"a":{"$beginsWith":"xé"}}"#, r#"{"a":"xéy"}"#));
    assert!(!matches(r#"{"a":{"$beginsWith":"xe"}}"#, r#"{"a":"xe\u0301y"}"#));
    assert!(!matches(r#"{"a":{"$beginsWith":"X"}}"#, r#"{"a":"xy"}"#));
    assert!(matches(r#"{"a":{"$beginsWith":""}}"#, r#"{"a":""}"#));
}
