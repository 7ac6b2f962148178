use std::time::{Duration, Instant};

use md5::{Digest, Md5};
use proptest::prelude::*;
use serde::Deserialize;

use super::tree::{Choices, Tree, any_object};
use super::*;
use crate::model::rev::{RevHash, RevId};

/// One edit and the revision that a CouchDB 3.5.0 gave it.
#[derive(Deserialize)]
struct Observed {
    body: String,
    parent: Option<String>,
    deleted: bool,
    rev: String,
}

fn hash_of(text: &str, parent: Option<&RevId>, deleted: bool) -> RevHash {
    revision_hash(&scan(text).unwrap().body, parent, deleted)
}

#[test]
fn revisions_are_those_of_a_couchdb() {
    let table = include_str!("../../../tests/data/couchdb-revisions.jsonl");
    assert_eq!(table.lines().count(), 58);
    for line in table.lines() {
        let edit: Observed = serde_json::from_str(line).unwrap();
        let parent = edit.parent.map(|parent| RevId::parse(&parent).unwrap());
        let hash = hash_of(&edit.body, parent.as_ref(), edit.deleted);
        let generation = parent.map_or(0, |parent| parent.generation) + 1;
        assert_eq!(RevId::new(generation, hash).to_string(), edit.rev, "{line}");
    }
}

#[test]
fn the_hash_depends_on_parent_deletion_and_order() {
    let parent = RevId::parse("1-a").unwrap();
    let hashes = [
        hash_of(r#"{"a":1,"b":2}"#, None, false),
        hash_of(r#"{"b":2,"a":1}"#, None, false),
        hash_of(r#"{"a":1.0,"b":2}"#, None, false),
        hash_of(r#"{"a":"1","b":2}"#, None, false),
        hash_of(r#"{"a":1,"b":2}"#, None, true),
        hash_of(r#"{"a":1,"b":2}"#, Some(&parent), false),
        hash_of(r#"{"a":1,"b":2}"#, Some(&RevId::parse("2-a").unwrap()), false),
    ];
    for (place, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..place].contains(hash), "{place}");
    }
    assert_eq!(hash_of(r#"{"_id":"x","a":1,"b":2}"#, None, false), hashes[0]);
}

#[test]
fn long_numbers_and_deep_nesting_are_hashed_in_bounded_time() {
    let started = Instant::now();
    let body = |text: String| Body::from_stored(text.into());
    revision_hash(&body(format!("{{\"a\":{}}}", "7".repeat(8_000_000))), None, false);
    revision_hash(&body(format!("{{\"a\":[{}0]}}", ("7".repeat(4096) + ",").repeat(500))), None, false);
    revision_hash(&body(format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000))), None, false);
    assert!(started.elapsed() < Duration::from_secs(30));
}

/// The term of a value, written the plain way.
fn term(tree: &Tree) -> Vec<u8> {
    match tree {
        Tree::Token(token) if ["null", "true", "false"].contains(&token.as_str()) => {
            [&[100, 0, token.len() as u8], token.as_bytes()].concat()
        }
        Tree::Token(token) if token.contains(['.', 'e', 'E']) => {
            [&[70][..], &token.parse::<f64>().unwrap().to_be_bytes()].concat()
        }
        Tree::Token(token) => integer(token.parse().unwrap()),
        Tree::Text(text) => binary(text),
        Tree::Array(elements) => array(elements),
        Tree::Object(members) => {
            let pairs = members.iter().map(|(name, value)| [&[104, 2][..], &binary(name), &term(value)].concat());
            [&[104, 1][..], &list(&pairs.collect::<Vec<_>>())].concat()
        }
    }
}

fn integer(value: i128) -> Vec<u8> {
    match (u8::try_from(value), i32::try_from(value)) {
        (Ok(byte), _) => vec![97, byte],
        (_, Ok(value)) => [&[98][..], &value.to_be_bytes()].concat(),
        _ => {
            let mut magnitude = value.unsigned_abs().to_le_bytes().to_vec();
            while magnitude.last() == Some(&0) {
                magnitude.pop();
            }
            [&[110, magnitude.len() as u8, u8::from(value < 0)][..], &magnitude].concat()
        }
    }
}

fn binary(text: &str) -> Vec<u8> {
    [&[109][..], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn array(elements: &[Tree]) -> Vec<u8> {
    let terms: Vec<_> = elements.iter().map(term).collect();
    if !terms.is_empty() && terms.iter().all(|term| term[0] == 97) {
        let bytes: Vec<u8> = terms.iter().map(|term| term[1]).collect();
        return [&[107][..], &(bytes.len() as u16).to_be_bytes(), &bytes].concat();
    }
    list(&terms)
}

fn list(terms: &[Vec<u8>]) -> Vec<u8> {
    if terms.is_empty() {
        return vec![106];
    }
    [&[108][..], &(terms.len() as u32).to_be_bytes(), &terms.concat(), &[106]].concat()
}

fn any_parent() -> impl Strategy<Value = Option<RevId>> {
    let parent = (0u64..1 << 40, "[a-z]{0,8}")
        .prop_map(|(generation, hash)| RevId::new(generation, RevHash::stored_text(&hash)));
    proptest::option::of(parent)
}

proptest! {
    #[test]
    fn the_hash_is_the_md5_of_the_edits_term(tree in any_object(), parent in any_parent(), deleted: bool) {
        let edit = [
            term(&Tree::Token(deleted.to_string())),
            integer(parent.as_ref().map_or(0, |parent| i128::from(parent.generation))),
            parent.as_ref().map_or(integer(0), |parent| binary(&parent.hash.to_string())),
            term(&tree.deduplicated()),
            list(&[]),
        ];
        let expected = Md5::digest([&[131][..], &list(&edit)].concat());
        prop_assert_eq!(hash_of(&tree.compact(), parent.as_ref(), deleted), RevHash::Md5(expected.into()));
    }

    #[test]
    fn the_hash_does_not_see_white_space_or_escapes(tree in any_object(), seed: u64) {
        let sprawling = tree.sprawling(&mut Choices::new(seed));
        prop_assert_eq!(hash_of(&sprawling, None, false), hash_of(&tree.compact(), None, false));
    }
}

#[test]
fn byte_lists_end_at_65535_elements() {
    for len in [65_535, 65_536] {
        let tree = Tree::Object(vec![("a".into(), Tree::Array(vec![Tree::Token("7".into()); len]))]);
        let edit = [term(&Tree::Token("false".into())), integer(0), integer(0), term(&tree), list(&[])];
        let fits = len < 65_536;
        let edit = if fits { list(&edit) } else { list(&with_plain_list(edit, len)) };
        let expected = Md5::digest([&[131][..], &edit].concat());
        assert_eq!(hash_of(&tree.compact(), None, false).as_bytes(), &expected[..], "{len}");
    }
}

/// The same edit with its array as an ordinary list.
fn with_plain_list(mut edit: [Vec<u8>; 5], len: usize) -> [Vec<u8>; 5] {
    let pair = [&[104, 2][..], &binary("a"), &list(&vec![integer(7); len])].concat();
    edit[3] = [&[104, 1][..], &list(&[pair])].concat();
    edit
}
