//! Which fields are shown.

use super::*;

fn shown(fields: &str, body: &str) -> String {
    let fields = Fields::from_json(fields).unwrap_or_else(|error| panic!("{fields}: {error}"));
    String::from_utf8(fields.project(&Document::new("d", body).view())).unwrap()
}

fn refused(fields: &str) -> String {
    Fields::from_json(fields).expect_err(fields).to_string()
}

#[test]
fn only_listed_fields_are_shown() {
    assert_eq!(shown(r#"["t"]"#, r#"{"t":1,"u":2}"#), r#"{"t":1}"#);
    assert_eq!(
        shown(r#"["u","_rev","t"]"#, r#"{"t":1.0,"u":{"x":[1, 2]}}"#),
        r#"{"u":{"x":[1,2]},"_rev":"1-a","t":1.0}"#
    );
    assert_eq!(shown(r#"["_id","_deleted"]"#, r#"{"t":1}"#), r#"{"_id":"d"}"#);
    assert_eq!(shown(r#"["z"]"#, r#"{"t":1}"#), "{}");
}

#[test]
fn nested_paths_give_nested_objects() {
    let body = r#"{"a":{"b":1,"c":{"d":2,"e":3}},"x.y":4,"l":[{"p":5},6]}"#;
    assert_eq!(shown(r#"["a.c.d","a.b"]"#, body), r#"{"a":{"c":{"d":2},"b":1}}"#);
    assert_eq!(shown(r#"["a.z","a.b.c","l.7"]"#, body), "{}");
    assert_eq!(shown(r#"["x\\.y"]"#, body), r#"{"x.y":4}"#);
    assert_eq!(shown(r#"["l.0.p"]"#, body), r#"{"l":{"0":{"p":5}}}"#);
    assert_eq!(shown(r#"["a.b","a"]"#, body), r#"{"a":{"b":1,"c":{"d":2,"e":3}}}"#);
    assert_eq!(shown(r#"["a","a.b"]"#, body), r#"{"a":{"b":1,"c":{"d":2,"e":3}}}"#);
}

#[test]
fn an_empty_list_shows_the_whole_document() {
    assert_eq!(shown("[]", r#"{"t":1}"#), r#"{"_id":"d","_rev":"1-a","t":1}"#);
    let gone = Document::tombstone("gone");
    let fields = Fields::from_json("[]").unwrap();
    assert_eq!(fields.project(&gone.view()), br#"{"_id":"gone","_rev":"2-b","_deleted":true}"#);
}

#[test]
fn a_list_that_is_none_is_refused_with_couchdbs_reason() {
    assert_eq!(refused(r#""a""#), "Selector error: fields must be JSON array");
    assert_eq!(refused(r#"["a",5]"#), "Invalid JSON for field spec: 5");
    assert_eq!(refused(r#"["a..b"]"#), "Invalid field name: a..b");
    assert_eq!(refused(r#"[""]"#), "Invalid field name: ");
    assert_eq!(refused(r#"[a]"#), "invalid UTF-8 JSON");
    let many = |count: usize| format!("[{}]", vec!["\"a\""; count].join(","));
    assert!(Fields::from_json(&many(limits::FIELDS_MAX)).is_ok());
    assert_eq!(refused(&many(limits::FIELDS_MAX + 1)), "Selector error: a selector may have at most 1000 fields");
}
