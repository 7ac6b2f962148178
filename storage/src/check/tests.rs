use std::path::Path;

use super::*;
use crate::codec::meta as meta_codec;
use crate::json::{Body, ScanLimits, revision_hash, scan_document};
use crate::model::rev::RevId;
use crate::plan::Edit;
use crate::store::tests::damage;
use crate::store::{Birth, Store, StoreOptions};
use crate::view::META_COUNTERS;
use crate::{Identity, LocalEdit, Write};

fn body(json: &str) -> Body {
    scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body
}

/// A store with updated, deleted and forked documents, long histories and garbage.
fn filled(folder: &Path) -> Store {
    let options = StoreOptions { map_bytes: 64 << 20, ..StoreOptions::default() };
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    let store = Store::open(folder, &options, &Birth { identity, start: Sequence::ZERO }).unwrap();
    let requests: Vec<Vec<Write>> = (0..40).flat_map(edits_of).map(|edit| vec![Write::Edit(edit)]).collect();
    store.write(&requests).unwrap();
    let id = crate::model::doc_id::LocalId::parse("_local/x").unwrap().unwrap();
    store.write(&[vec![Write::Local(LocalEdit { id, base: None, checked: true, body: Some(Body::empty()) })]]).unwrap();
    store
}

/// The edits of a document: the higher its number, the longer its history; every fifth ends deleted.
fn edits_of(number: u64) -> Vec<Edit> {
    let id = DocId::parse(&format!("d{number}")).unwrap();
    let mut parent: Option<RevId> = None;
    let edit = |edit: u64| {
        let (json, deleted) = (body(&format!("{{\"n\":{edit}}}")), number % 5 == 4 && edit == number * 2);
        let rev = RevId::new(edit + 1, revision_hash(&json, parent.as_ref(), deleted));
        Edit::interactive(id.clone(), parent.replace(rev), deleted, json)
    };
    (0..=number * 2).map(edit).collect()
}

fn first_row(store: &Store, table: Table) -> (Vec<u8>, Vec<u8>) {
    let reading = store.env().read().unwrap();
    let (key, value) = all(reading.view(), table).unwrap().next().unwrap().unwrap();
    (key.to_vec(), value.to_vec())
}

#[test]
fn a_sound_database_is_clean_from_inside_and_outside() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    let report = store.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.docs, report.deleted_docs, report.rows, report.locals), (32, 8, 40, 1));
    store.close();
    assert_eq!(Store::check_folder(folder.path()).unwrap(), report);
}

#[test]
fn every_table_s_missing_row_is_noticed() {
    for table in [Table::Docs, Table::History, Table::BySeq, Table::Bodies, Table::Meta, Table::Blocks] {
        let folder = tempfile::tempdir().unwrap();
        let store = filled(folder.path());
        let key = if table == Table::Meta { META_COUNTERS.to_vec() } else { first_row(&store, table).0 };
        // The oldest body is garbage: take the newest, which a leaf has.
        let key = if table == Table::Bodies { last_key(&store, table) } else { key };
        damage(&store, table, &key, None);
        let report = store.check().unwrap();
        assert!(!report.is_clean(), "{}", table.name());
    }
}

fn last_key(store: &Store, table: Table) -> Vec<u8> {
    let reading = store.env().read().unwrap();
    let range = (Bound::Unbounded, Bound::Unbounded);
    reading.view().range(table, range, Direction::Backward).unwrap().next().unwrap().unwrap().0.to_vec()
}

#[test]
fn every_table_s_garbled_row_is_named() {
    for table in [Table::Docs, Table::History, Table::BySeq, Table::Bodies, Table::Local, Table::Blocks] {
        let folder = tempfile::tempdir().unwrap();
        let store = filled(folder.path());
        let (key, mut value) = first_row(&store, table);
        value[0] ^= 0x40;
        damage(&store, table, &key, Some(&value));
        let report = store.check().unwrap();
        let named = report.problems.iter().any(|problem| problem.contains(&format!("table {}", table.name())));
        assert!(named, "{}: {:?}", table.name(), report.problems);
    }
}

#[test]
fn wrong_counters_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    let mut counters = store.snapshot().unwrap().counters().unwrap();
    counters.docs += 1;
    counters.garbage_bytes += 10;
    damage(&store, Table::Meta, META_COUNTERS, Some(&meta_codec::encode_counters(&counters)));
    let report = store.check().unwrap();
    assert_eq!(report.problems_total, 3, "{:?}", report.problems);
}
