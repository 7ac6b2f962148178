//! Errors beyond those in the observed table, and bounds, at the bound and one above.

use super::limits::*;
use super::*;

#[test]
fn reasons_name_what_is_wrong() {
    for (text, expected) in [
        ("5", "Selector error: expected a JSON object"),
        ("[]", "Selector error: expected a JSON object"),
        ("{", "invalid UTF-8 JSON"),
        (r#"{"$not":{"$gt":5}}"#, "One or more conditions is missing a field name."),
        (r#"{"$elemMatch":{"$eq":5}}"#, "One or more conditions is missing a field name."),
        (r#"{"a":1,"":2}"#, "One or more conditions is missing a field name."),
        (r#"{"a..b":1}"#, "Invalid field name: a..b"),
        (r#"{"a":{".b":1}}"#, "Invalid field name: .b"),
        (r#"{"a\\":{"\\":1}}"#, r"Invalid field name: \"),
        (r#"{"a":{"$text":"x"}}"#, r#"Invalid field normalization on selector: {"$text":"x"}"#),
        (
            r#"{"a":{"$default":{"$text":"x"}}}"#,
            r#"Invalid field normalization on selector: {"$default":{"$text":"x"}}"#,
        ),
        (r#"{"$text":null}"#, "Bad argument for operator $text: null"),
        (r#"{"$nor":[{"$text":"x"}]}"#, r#"Bad argument for operator $not: {"$text":"x"}"#),
        (r#"{"a":{"$mod":[0,1]}}"#, "Bad argument for operator $mod: [0,1]"),
        (r#"{"a":{"$mod":[2.0,1]}}"#, "Bad argument for operator $mod: [2.0,1]"),
        (r#"{"a":{"$mod":[9223372036854775808,1]}}"#, "Bad argument for operator $mod: [9223372036854775808,1]"),
        (r#"{"a":{"$size":1.0}}"#, "Bad argument for operator $size: 1.0"),
        (r#"{"a":{"$type":1}}"#, "Bad argument for operator $type: 1"),
        (r#"{"a":{"$not":1}}"#, "Bad argument for operator $not: 1"),
        (r#"{"$and":{"a":1}}"#, r#"Bad argument for operator $and: {"a":1}"#),
        (r#"{"a":{"$elemMatch":[]}}"#, "Bad argument for operator $elemMatch: []"),
        (r#"{"a":{"$near":1}}"#, "Unsupported operator: $near"),
        (r#"{"a":{"$regex":"("}}"#, r#"Bad argument for operator $regex: "(": unclosed group"#),
    ] {
        assert_eq!(reason(text), expected, "{text}");
    }
}

#[test]
fn an_expression_beyond_regular_ones_is_told_so() {
    let look = reason(r#"{"a":{"$regex":"(?!x)y"}}"#);
    assert_eq!(
        look,
        r#"Bad argument for operator $regex: "(?!x)y": look-around, including look-ahead and look-behind, is not supported"#
    );
    let back = reason(r#"{"a":{"$regex":"(x)\\1"}}"#);
    assert_eq!(back, r#"Bad argument for operator $regex: "(x)\\1": backreferences are not supported"#);
}

#[test]
fn what_regular_expressions_cannot_say_is_refused() {
    for pattern in [
        "(?=x)",
        "(?!x)",
        "(?<=x)",
        "(?<!x)",
        "(x)\\1",
        "(?P<n>x)\\k<n>",
        "(?>x)",
        "(?(1)x)",
        "\\K",
        "\\Qx\\E",
        "\\R",
        "\\h",
        "\\Z",
        "x{,3}",
    ] {
        let selector = serde_json::json!({"a": {"$regex": pattern}}).to_string();
        assert!(reason(&selector).starts_with("Bad argument for operator $regex: "), "{pattern}");
    }
}

#[test]
fn expressions_mean_what_the_reference_says() {
    let matches = |pattern: &str, text: &str| {
        let body = serde_json::json!({"a": text}).to_string();
        matches(&serde_json::json!({"a": {"$regex": pattern}}).to_string(), &body)
    };
    assert!(matches("^.$", "é"));
    assert!(matches(r"^\w$", "é"));
    assert!(!matches(r"^(?-u:\w)$", "é"));
    assert!(matches("(?i)É", "é"));
    assert!(!matches("x$", "x\n"));
    assert!(matches("^xx++y", "xxxy"));
    assert!(!matches("[a&&b]", "a"));
    assert!(matches(r"\<x\>", "a x b"));
    assert!(matches(r"(?R)^x$", "x"));
}

#[test]
fn text_at_top_level_matches_all() {
    assert!(matches(r#"{"$text":"x"}"#, "{}"));
    assert!(matches(r#"{"$and":[{"$text":"x"},{"a":1}]}"#, r#"{"a":1}"#));
}

#[test]
fn long_arguments_are_cut_short() {
    let reason = reason(&format!(r#"{{"a":{{"$in":"{}"}}}}"#, "é".repeat(1_000)));
    assert_eq!(reason, format!("Bad argument for operator $in: \"{}…", "é".repeat(199)));
}

#[test]
fn nesting_has_a_bound() {
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert!(Selector::from_json(&nested(NESTING_MAX)).is_ok());
    assert_eq!(reason(&nested(NESTING_MAX + 1)), "JSON is nested deeper than 100 levels");
    let dotted = |steps: usize| format!(r#"{{"{}":1}}"#, vec!["a"; steps].join("."));
    assert!(Selector::from_json(&dotted(NESTING_MAX)).is_ok());
    assert!(reason(&dotted(NESTING_MAX + 1)).starts_with("Invalid field name: a.a."));
}

#[test]
fn conditions_expressions_and_bytes_have_bounds() {
    let either = |condition: &str, count: usize| format!(r#"{{"$or":[{}]}}"#, vec![condition; count].join(","));
    let expression = r#"{"a":{"$regex":"x"}}"#;
    assert!(Selector::from_json(&either(r#"{"a":1}"#, CONDITIONS_MAX)).is_ok());
    assert_eq!(
        reason(&either(r#"{"a":1}"#, CONDITIONS_MAX + 1)),
        "Selector error: a selector may have at most 1000 conditions"
    );
    assert!(Selector::from_json(&either(expression, PATTERNS_MAX)).is_ok());
    assert_eq!(reason(&either(expression, PATTERNS_MAX + 1)), "Selector error: a selector may have at most 16 $regex");
    let long = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    assert!(Selector::from_json(&long(TEXT_BYTES_MAX)).is_ok());
    assert_eq!(reason(&long(TEXT_BYTES_MAX + 1)), "Selector error: a selector may have at most 1000000 bytes");
}

#[test]
fn expressions_have_bounds() {
    let expression = |pattern: &str| format!(r#"{{"a":{{"$regex":"{pattern}"}}}}"#);
    assert!(Selector::from_json(&expression(&"x".repeat(PATTERN_BYTES_MAX))).is_ok());
    assert!(reason(&expression(&"x".repeat(PATTERN_BYTES_MAX + 1))).ends_with(": longer than 1000 bytes"));
    assert!(reason(&expression(r"\\w{100}")).ends_with(": compiled, it is larger than 524288 bytes"));
    let places = "Selector error: a selector may have at most 1000 characters in its $regex, counted as often as they are \
                  repeated";
    assert!(Selector::from_json(&expression("(?-u)[01]{1000}")).is_ok());
    assert_eq!(reason(&expression("(?-u)1[01]{1000}")), places);
    let both = r#"{"a":{"$regex":"(?-u)[01]{600}"},"b":{"$regex":"(?-u)[01]{401}"}}"#;
    assert_eq!(reason(both), places);
}

/// Nothing that a document nests or repeats may cost the stack, or more than a pass over it.
#[test]
fn documents_may_be_deep_wide_and_long() {
    let levels = 50_000;
    let deep = format!(r#"{{"a":{}1{},"b":1}}"#, "[".repeat(levels), "]".repeat(levels));
    assert!(matches(r#"{"a":{"$gt":[[[1]]]},"b":1}"#, &deep));
    assert!(matches(r#"{"a.0.0":{"$type":"array"}}"#, &deep));
    let wide = format!("{{{}}}", (0..50_000).map(|n| format!(r#""m{n}":{n}"#)).collect::<Vec<_>>().join(","));
    assert!(matches(r#"{"m0":0,"m49999":49999,"m5":{"$lt":6},"n":{"$exists":false}}"#, &wide));
    let digits = "7".repeat(1_000_000);
    let long = format!(r#"{{"a":{digits},"b":[{}1]}}"#, "0,".repeat(100_000));
    assert!(matches(r#"{"a":{"$mod":[9,7]},"b":{"$all":[1,0]},"b.100000":1}"#, &long));
}

/// Bodies come from storage, where a scan put them. What is no JSON must do no harm.
#[test]
fn a_body_that_is_no_json_harms_nobody() {
    let all = selector(
        r#"{"$and":[{"a":{"$gt":1}},{"a.b.0":{"$in":["x"]}},{"a":{"$elemMatch":{"$eq":1}}},{"é":{"$size":1}}]}"#,
    );
    let good = r#"{"a":{"b":["x\n",[1,{"é":null}]]},"é":-1.5e3}"#;
    let intact = Document::new("d", good);
    for cut in 0..good.len() {
        for replacement in [&b""[..], b"\"", b"\\", b"[", b"}", b":", b"\xff"] {
            let text = [&good.as_bytes()[..cut], replacement, &good.as_bytes()[cut + 1..]].concat();
            for end in [cut, text.len()] {
                let body = Body::from_stored(text[..end].to_vec().into());
                let view = DocView::new(&intact.id, &intact.leaf, &body);
                for path in ["a", "a.b", "a.b.1.1", "é"] {
                    let _ = view.scalar_keys(&FieldPath::parse(path).unwrap()).count();
                }
                let _ = all.matches(&view);
            }
        }
    }
    assert!(selector(r#"{"a.b.1.1":{"é":null}}"#).matches(&intact.view()));
}
