//! `docs/storage-format.md` tells the truth: the rows of its worked example lie in the file, byte for byte.

use seqtide_storage::json::{Body, ScanLimits, revision_hash, scan_document};
use seqtide_storage::model::doc_id::{DocId, LocalId};
use seqtide_storage::model::idempotency::{Fingerprint, IdempotencyKey};
use seqtide_storage::model::rev::{RevHash, RevId};
use seqtide_storage::model::rev_path::RevPath;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{
    Birth, Edit, FeedKeys, FieldKeys, Identity, LocalEdit, Outcome, ReadKeys, Request, RequestKey, Store, StoreOptions,
    Write,
};

const PAGE: &str = include_str!("../../docs/storage-format.md");
const TABLES: [&str; 11] = [
    "docs",
    "history",
    "by_seq",
    "bodies",
    "local",
    "meta",
    "blocks",
    "transactions",
    "transaction_ages",
    "feed_index",
    "times",
];

/// The keys that the page gives to documents.
#[derive(Debug)]
struct ExampleKeys;

impl FeedKeys for ExampleKeys {
    fn version(&self) -> u64 {
        1
    }

    fn reader(&self, _: &[&str]) -> ReadKeys {
        Box::new(|_, _, body| {
            let key = body.as_str().contains("\"n\"").then_some(0x0123_4567_89ab_cdef);
            vec![FieldKeys::These(key.into_iter().collect())]
        })
    }
}

/// A row as the page draws it.
struct Row {
    table: String,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Reads the page's example: a row starts with its table and key, its value follows on indented lines, and what is
/// behind a `;` is for people.
fn example() -> Vec<Row> {
    let (_, block) = PAGE.split_once("```text example\n").expect("the page has an example");
    let (block, _) = block.split_once("```").expect("the example ends");
    let mut rows: Vec<Row> = Vec::new();
    for line in block.lines() {
        let line = line.split(';').next().unwrap_or_default();
        if let Some(bytes) = line.strip_prefix(' ') {
            rows.last_mut().expect("a row before its value").value.extend(hex(bytes));
        } else if let Some((table, key)) = line.split_once(' ') {
            rows.push(Row { table: table.to_owned(), key: hex(key), value: Vec::new() });
        }
    }
    rows
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).expect("two hexadecimal digits");
    digits.chunks(2).map(byte).collect()
}

/// The writes that the page says made its example.
fn history_of_the_example() -> Vec<Request> {
    let id = |text| DocId::parse(text).unwrap();
    let body = |text: &str| scan_document(text.as_bytes(), &ScanLimits::default()).unwrap().body;
    let edit = |parent, text| Write::Edit(Edit::interactive(id("a"), parent, false, body(text)));
    let first = RevId::new(1, revision_hash(&body(r#"{"n": 1}"#), None, false));
    let tombstone = RevPath::lone(RevId::parse("1-x").unwrap());
    let long = RevPath::new(34, vec![RevHash::parse("y").unwrap(); 34]).unwrap();
    let checkpoint = LocalEdit {
        id: LocalId::parse("_local/c").unwrap().unwrap(),
        base: None,
        checked: true,
        body: Some(body("{}")),
    };
    let key = RequestKey {
        key: IdempotencyKey::new("key-1").unwrap(),
        fingerprint: Fingerprint(std::array::from_fn(|at| 0xf0 + at as u8)),
        made_ids: Vec::new(),
        at_secs: 1_700_000_000,
    };
    vec![
        vec![edit(None, r#"{"n": 1}"#)].into(),
        Request { writes: vec![edit(Some(first), r#"{"n": 2}"#)], key: Some(key) },
        vec![Write::Edit(Edit::replicated(id("b"), tombstone, true, Body::empty()))].into(),
        vec![Write::Edit(Edit::replicated(id("h"), long, false, Body::empty()))].into(),
        vec![Write::Local(checkpoint)].into(),
        vec![Write::FeedIndex(vec!["n".to_owned()])].into(),
    ]
}

#[test]
fn the_rows_of_the_worked_example_lie_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let uuid = std::array::from_fn(|at| at as u8);
    let identity = Identity { uuid, created_secs: 1_700_000_000, seq_format: SeqFormat::Integer };
    let birth = Birth { identity, start: Sequence::ZERO };
    let store = Store::open(
        folder.path(),
        &StoreOptions { feed_keys: &ExampleKeys, clock: || 1_700_000_000, ..StoreOptions::default() },
        &birth,
    )
    .unwrap();
    let commit = store.write(&history_of_the_example()).unwrap();
    let outcomes: Vec<_> = commit.requests.iter().flat_map(|request| &request.outcomes).collect();
    assert!(!outcomes.iter().any(|outcome| matches!(outcome, Outcome::Conflict)), "{outcomes:?}");
    store.close().unwrap();

    let file = std::fs::read(folder.path().join("data.mdb")).unwrap();
    let rows = example();
    for table in TABLES {
        assert!(rows.iter().any(|row| row.table == table), "{table} has no row in the example");
    }
    for Row { table, key, value } in rows {
        assert!(TABLES.contains(&table.as_str()), "{table} is no table");
        // LMDB puts a row's value right behind its key.
        let stored = [key.clone(), value].concat();
        assert!(
            file.windows(stored.len()).any(|bytes| bytes == stored),
            "{table}, key {key:02x?}, is not so in the file"
        );
    }
}
