use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::tree::{Choices, any_tree};
use super::*;

/// Loose: what takes quadratic time takes minutes here.
const DEADLINE: Duration = Duration::from_secs(20);

fn check(text: &str, expected: &str) {
    assert_eq!(compacted(text).as_deref(), Ok(expected), "{text}");
}

#[test]
fn white_space_goes_and_spelling_stays() {
    check(" [ 1.0 ,\t1e2 , 12345678901234567890 , -0 ]\r\n", "[1.0,1e2,12345678901234567890,-0]");
    check(
        r#"{ "a b" : "\u00e9 \/ é  \ud83d\ude00" , "c" : [ ] , "d" : { } }"#,
        r#"{"a b":"\u00e9 \/ é  \ud83d\ude00","c":[],"d":{}}"#,
    );
    for text in ["null", "true", "\"\"", "0", "[]", "{}"] {
        check(&format!(" {text} "), text);
    }
}

#[test]
fn the_last_of_repeated_members_stays_in_last_place() {
    check(r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":3}"#);
    check(r#"{"a":1,"a":2,"a":3}"#, r#"{"a":3}"#);
    check(r#"{"a":1,"b":1,"a":2,"b":2,"c":3}"#, r#"{"a":2,"b":2,"c":3}"#);
    check(r#"{"":1,"":2}"#, r#"{"":2}"#);
}

#[test]
fn names_are_compared_by_their_characters() {
    check(r#"{"\u0061":1,"a":2}"#, r#"{"a":2}"#);
    check(r#"{"a":1,"\u0061":2}"#, r#"{"\u0061":2}"#);
    check(r#"{"😀":1,"\uD83D\ude00":2}"#, r#"{"\uD83D\ude00":2}"#);
    check(r#"{"a":1,"A":2,"a ":3}"#, r#"{"a":1,"A":2,"a ":3}"#);
}

#[test]
fn repeated_members_go_at_every_level() {
    check(r#"[{"a":{"x":1,"x":2},"a":{"y":1,"z":{"q":1,"q":[2]},"y":2}}]"#, r#"[{"a":{"z":{"q":[2]},"y":2}}]"#);
    check(r#"{"a":[{"b":1,"b":2}],"c":{"b":3},"c":{"b":4}}"#, r#"{"a":[{"b":2}],"c":{"b":4}}"#);
}

#[test]
fn what_is_no_json_is_refused() {
    let bad = [
        "",
        " ",
        "{",
        "}",
        "[1",
        "[1,]",
        "[,]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "[]]",
        "nul",
        "True",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800a\"",
        "\"a\nb\"",
        "\"\u{1}\"",
        "1e400",
        "-1e309",
        "[1e999]",
        "\u{feff}1",
        "\u{a0}1",
        "1\u{c}",
        "// c\n1",
        "é",
    ];
    for text in bad {
        assert_eq!(compacted(text), Err(DocumentError::NotJson), "{text}");
    }
    let not_utf8 = [&b"\"\xff\""[..], b"\"\xed\xa0\x80\"", b"\"\xc0\x80\"", b"\xff\xfe"];
    for text in not_utf8 {
        assert_eq!(compact_value(text, &ScanLimits::default()), Err(DocumentError::NotJson), "{text:?}");
    }
}

#[test]
fn numbers_within_a_double_and_integers_of_any_size_are_accepted() {
    let long = format!("{}.5", "9".repeat(308));
    for text in ["1e308", "1e-400", "0e999", "-0.0", "1.7976931348623157e308", "5e-324", &long, &"9".repeat(5000)] {
        check(text, text);
    }
    assert!(compacted(&format!("{}.5", "9".repeat(310))).is_err());
}

#[test]
fn nesting_is_accepted_up_to_the_limit() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let limits = ScanLimits { nesting_max: 3, ..ScanLimits::default() };
    assert!(compact_value(nested(3).as_bytes(), &limits).is_ok());
    assert!(compact_value(b"{\"a\":{\"b\":{}}}", &limits).is_ok());
    for text in [&nested(4), "{\"a\":{\"b\":[{}]}}"] {
        let refused = compact_value(text.as_bytes(), &limits).unwrap_err();
        assert_eq!(refused.to_string(), "JSON is nested deeper than 3 levels");
    }
}

#[test]
fn members_of_open_objects_are_accepted_up_to_the_limit() {
    let limits = ScanLimits { members_max: 3, ..ScanLimits::default() };
    for text in
        ["{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":{\"b\":1},\"b\":{\"c\":2}}", "[{\"a\":1,\"b\":2},{\"a\":1,\"b\":2}]"]
    {
        assert!(compact_value(text.as_bytes(), &limits).is_ok(), "{text}");
    }
    for text in
        ["{\"a\":1,\"a\":2,\"a\":3,\"a\":4}", "{\"a\":{\"b\":1,\"c\":2,\"d\":3}}", "[{\"a\":1,\"b\":2,\"c\":3,\"d\""]
    {
        let refused = compact_value(text.as_bytes(), &limits).unwrap_err();
        assert_eq!(refused.to_string(), "the document has too many members: at most 3 are accepted", "{text}");
    }
}

#[test]
fn deep_nesting_costs_no_stack() {
    let text = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(compacted(&text), Err(DocumentError::NestedTooDeep { max: 512 }));
    let no_limit = ScanLimits { nesting_max: usize::MAX, ..ScanLimits::default() };
    assert_eq!(compact_value(text.as_bytes(), &no_limit).unwrap(), text.as_bytes());
    assert_eq!(compact_value(&text.as_bytes()[..100_000], &no_limit), Err(DocumentError::NotJson));
    let objects = "{\"a\":1,\"a\":".repeat(100_000) + "0" + &"}".repeat(100_000);
    let expected = "{\"a\":".repeat(100_000) + "0" + &"}".repeat(100_000);
    assert_eq!(compact_value(objects.as_bytes(), &no_limit).unwrap(), expected.as_bytes());
}

#[test]
fn objects_with_many_members_take_linear_time() {
    let started = Instant::now();
    let members = |names: &dyn Fn(usize) -> String| {
        let members: Vec<_> = (0..300_000).map(|n| format!("\"{}\":{n}", names(n))).collect();
        format!("{{{}}}", members.join(","))
    };
    let distinct = members(&|n| format!("m{n}"));
    check(&distinct, &distinct);
    check(&members(&|_| "same".into()), r#"{"same":299999}"#);
    let two_in_turn = members(&|n| (n % 2).to_string());
    check(&two_in_turn, r#"{"0":299998,"1":299999}"#);
    let escaped = members(&|n| format!("\\u0061{}", n % 1000));
    assert_eq!(compacted(&escaped).unwrap().matches(':').count(), 1000);
    assert!(started.elapsed() < DEADLINE);
}

#[test]
fn arrays_of_many_objects_and_long_numbers_take_linear_time() {
    let started = Instant::now();
    let objects = format!("[{}]", vec![r#"{"a":1,"a":2}"#; 200_000].join(", "));
    check(&objects, &format!("[{}]", vec![r#"{"a":2}"#; 200_000].join(",")));
    let digits = "7".repeat(4_000_000);
    check(&digits, &digits);
    check(&format!("0.{digits}"), &format!("0.{digits}"));
    assert!(started.elapsed() < DEADLINE);
}

#[test]
fn strings_are_written_with_couchdbs_escapes() {
    let mut out = Vec::new();
    write_json_string(&mut out, "a\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}é😀 and some more text\n");
    let expected = "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001F\u{7f}é😀 and some more text\\n\"";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

/// Text that is almost JSON: a valid text with a few bytes changed.
fn near_json() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![prop::sample::select(br#"{}[]",:\/ue0.-+E9 ntf"#.to_vec()), any::<u8>()];
    let change = (any::<Index>(), byte, 0..3);
    (any_tree(), any::<u64>(), prop::collection::vec(change, 0..4)).prop_map(|(tree, seed, changes)| {
        let mut text = tree.sprawling(&mut Choices::new(seed)).into_bytes();
        for (place, byte, kind) in changes {
            let place = place.index(text.len() + 1);
            match kind {
                0 => text.insert(place, byte),
                1 if place < text.len() => text[place] = byte,
                _ => text.truncate(place),
            }
        }
        text
    })
}

proptest! {
    #[test]
    fn compacting_keeps_the_value(tree in any_tree(), seed: u64) {
        let sprawling = tree.sprawling(&mut Choices::new(seed));
        let compact = compacted(&sprawling).unwrap();
        let value: Value = serde_json::from_str(&compact).unwrap();
        prop_assert_eq!(&value, &serde_json::from_str::<Value>(&sprawling).unwrap());
        prop_assert_eq!(compacted(&compact).unwrap(), compact);
    }

    #[test]
    fn compacting_gives_the_shortest_text_in_order(tree in any_tree()) {
        prop_assert_eq!(compacted(&tree.compact()).unwrap(), tree.deduplicated().compact());
    }

    #[test]
    fn garbage_never_panics(text: Vec<u8>) {
        let _ = scan_document(&text, &ScanLimits::default());
        let _ = revision_hash(&Body::from_stored(text.into()), None, false);
    }

    #[test]
    fn serde_json_agrees_on_what_is_json(text in near_json()) {
        let ours = compact_value(&text, &ScanLimits::default());
        prop_assert_eq!(ours.is_ok(), serde_json::from_slice::<Value>(&text).is_ok());
        let _ = scan_document(&text, &ScanLimits::default());
        let _ = revision_hash(&Body::from_stored(text.into()), None, false);
    }

    #[test]
    fn serde_json_agrees_on_short_texts(text in r#"[\[\]{}",:0-9eE.+\- tfnulrase\\]{0,12}"#) {
        prop_assert_eq!(compacted(&text).is_ok(), serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn written_strings_read_back(text: String) {
        let mut out = Vec::new();
        write_json_string(&mut out, &text);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
