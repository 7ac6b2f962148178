//! What selectors tell an index.

use proptest::prelude::*;

use super::tree::{any_body, any_selector};
use super::*;

fn keys(body: &str, path: &str) -> Vec<ScalarKey> {
    Document::new("d", body).view().scalar_keys(&FieldPath::parse(path).unwrap()).collect()
}

/// The paths of a selector's terms, each with how many keys it has.
fn terms(text: &str) -> Vec<(String, usize)> {
    let mut terms: Vec<(String, usize)> =
        selector(text).equality_terms().iter().map(|term| (term.path.to_string(), term.keys.len())).collect();
    terms.sort();
    terms
}

fn term(path: &str, keys: usize) -> (String, usize) {
    (path.to_owned(), keys)
}

proptest! {
    #[test]
    fn a_document_that_matches_has_a_key_of_every_term(
        selectors in prop::collection::vec(any_selector(), 1..12),
        body in any_body(),
    ) {
        let document = Document::new("d", &body.json(0));
        let view = document.view();
        for tree in selectors {
            let Ok(selector) = Selector::from_json(&tree.json(0)) else { continue };
            if selector.matches(&view) {
                for term in selector.equality_terms() {
                    let found = view.scalar_keys(&term.path).any(|key| term.keys.binary_search(&key).is_ok());
                    prop_assert!(found, "{} matches {}, but not by {:?}", tree.json(0), body.json(0), term);
                }
            }
        }
    }
}

/// Every way to ask for equality, of every value, on every document with a value that may be equal.
#[test]
fn whatever_spelling_a_value_has_it_is_found_by_its_key() {
    let scalars = [
        "null",
        "true",
        "1",
        "1.0",
        "1e0",
        "0",
        "-0.0",
        "100000000000000000000",
        "1e20",
        "1.5",
        r#""é""#,
        r#""e\u0301""#,
        r#""a""#,
        r#""a\u0000""#,
        r#""A""#,
        r#""0""#,
        r#""\u0660""#,
        r#""""#,
    ];
    let bodies: Vec<Document> = scalars
        .iter()
        .flat_map(|it| [it.to_string(), format!("[{it}]"), format!(r#"["z",{{}},{it}]"#)])
        .map(|value| Document::new("d", &format!(r#"{{"a":{value}}}"#)))
        .collect();
    let mut matched = 0;
    for scalar in scalars {
        for text in [
            format!(r#"{{"a":{scalar}}}"#),
            format!(r#"{{"a.2":{scalar}}}"#),
            format!(r#"{{"a":{{"$in":["y",{scalar}]}}}}"#),
            format!(r#"{{"a":{{"$all":[{scalar}]}}}}"#),
            format!(r#"{{"$or":[{{"a":{scalar}}},{{"a":{{"$in":[{scalar},2]}}}}]}}"#),
            format!(r#"{{"$not":{{"a":{{"$nin":[{scalar}]}}}}}}"#),
        ] {
            let selector = selector(&text);
            let terms = selector.equality_terms();
            assert_eq!(terms.len(), 1, "{text}");
            for document in &bodies {
                let view = document.view();
                let has_key = view.scalar_keys(&terms[0].path).any(|key| terms[0].keys.contains(&key));
                assert!(has_key || !selector.matches(&view), "{text} on {}", document.body.as_str());
                matched += usize::from(selector.matches(&view));
            }
        }
    }
    assert!(matched > 300, "{matched}");
}

#[test]
fn conjunctions_of_equalities_are_terms() {
    assert_eq!(
        terms(r#"{"type":"order","$and":[{"a":{"b":null}},{"n":{"$gt":1}}]}"#),
        [term("a.b", 1), term("type", 1)]
    );
    assert_eq!(terms(r#"{"a":{"$in":[1,1.0,"x",true]}}"#), [term("a", 3)]);
    assert_eq!(terms(r#"{"a":{"$in":[]}}"#), [term("a", 0)]);
    assert_eq!(terms(r#"{"a":{"$all":[1,"x"]}}"#), [term("a", 1), term("a", 1)]);
    assert_eq!(terms(r#"{"$or":[{"a":1},{"a":{"$in":[2,3]}}]}"#), [term("a", 3)]);
    assert_eq!(terms(r#"{"$not":{"a":{"$ne":1}}}"#), [term("a", 1)]);
}

#[test]
fn what_other_values_may_match_is_no_term() {
    for text in [
        r#"{}"#,
        r#"{"a":{"$gt":1}}"#,
        r#"{"a":{"$ne":1}}"#,
        r#"{"a":[1]}"#,
        r#"{"a":{"$in":[1,[2]]}}"#,
        r#"{"$or":[{"a":1},{"b":1}]}"#,
        r#"{"$or":[{"a":1},{"a":{"$gt":5}}]}"#,
        r#"{"a":{"$elemMatch":{"$eq":1}}}"#,
        r#"{"a":{"$exists":false}}"#,
    ] {
        assert_eq!(terms(text), [], "{text}");
    }
}

#[test]
fn values_that_are_equal_have_one_key() {
    for (one, other) in [
        ("1", "1.0"),
        ("0", "-0.0"),
        ("1e20", "100000000000000000000"),
        (r#""é""#, r#""e\u0301""#),
        (r#""0""#, r#""\u0660""#),
    ] {
        assert_eq!(keys(&format!(r#"{{"a":{one}}}"#), "a"), keys(&format!(r#"{{"a":{other}}}"#), "a"), "{one} {other}");
    }
}

#[test]
fn values_that_differ_have_different_keys() {
    let values =
        ["null", "false", "true", "0", "1", "0.5", "-1", "1e300", "123456789012345678901", r#""0""#, r#""a""#, r#""""#];
    let body = format!(r#"{{"a":[{}]}}"#, values.join(","));
    let mut keys = keys(&body, "a");
    assert_eq!(keys.len(), values.len());
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), values.len());
}

#[test]
fn a_document_has_the_keys_of_scalars_and_of_elements() {
    let body = r#"{"a":{"b":[1,{"c":2},"x"]}}"#;
    assert_eq!(keys(body, "a.b").len(), 2);
    assert_eq!(keys(body, "a.b.0"), keys(r#"{"a":1}"#, "a"));
    assert_eq!(keys(body, "a"), []);
    assert_eq!(keys(body, "z"), []);
    assert_eq!(keys(body, "_id").len(), 1);
}
