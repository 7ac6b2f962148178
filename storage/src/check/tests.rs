use std::path::Path;

use super::*;
use crate::codec::feed_index::IndexKey;
use crate::codec::{meta as meta_codec, times as times_codec, transaction};
use crate::feed_index::tests::FirstByte;
use crate::json::{Body, ScanLimits, revision_hash, scan_document};
use crate::model::idempotency::{Fingerprint, IdempotencyKey};
use crate::model::rev::RevId;
use crate::plan::Edit;
use crate::store::tests::damage;
use crate::store::{Birth, Store, StoreOptions};
use crate::tables::{META_COUNTERS, META_TRANSACTIONS};
use crate::{Identity, LocalEdit, PageLimits, Request, RequestKey, Write};

fn body(json: &str) -> Body {
    scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body
}

/// A store with updated, deleted and forked documents, long histories and garbage.
fn filled(folder: &Path) -> Store {
    let options = StoreOptions { map_bytes: 64 << 20, feed_keys: &FirstByte, ..StoreOptions::default() };
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    let store = Store::open(folder, &options, &Birth { identity, start: Sequence::ZERO }).unwrap();
    let requests: Vec<Request> = (0..40).flat_map(edits_of).map(|edit| vec![Write::Edit(edit)].into()).collect();
    store.write(&requests).unwrap();
    store.write(&[vec![Write::FeedIndex(vec!["n".to_owned()])].into()]).unwrap();
    assert!(store.tend_feed_index(PageLimits::default()).unwrap().done);
    let id = crate::model::doc_id::LocalId::parse("_local/x").unwrap().unwrap();
    let edit = LocalEdit { id, base: None, checked: true, body: Some(Body::empty()) };
    store.write(&[keyed("k1", Write::Local(edit)), keyed("k2", Write::RevsLimit(1000))]).unwrap();
    store
}

fn keyed(key: &str, write: Write) -> Request {
    let writes = vec![write];
    let (key, fingerprint) = (IdempotencyKey::new(key).unwrap(), Fingerprint::of_writes(&writes));
    Request { writes, key: Some(RequestKey { key, fingerprint, made_ids: Vec::new(), at_secs: 100 }) }
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
    let reading = store.base().read().unwrap();
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
    assert_eq!((report.transactions, report.index_rows), (2, 40));
    store.close().unwrap();
    assert_eq!(Store::check_folder(folder.path(), &FirstByte).unwrap(), report);
}

#[test]
fn every_table_s_missing_row_is_noticed() {
    // Local documents come and go by themselves, and rows of times are thinned out.
    for table in Table::ALL.into_iter().filter(|table| ![Table::Local, Table::Times].contains(table)) {
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
    let reading = store.base().read().unwrap();
    let range = (Bound::Unbounded, Bound::Unbounded);
    reading.view().range(table, range, Direction::Backward).unwrap().next().unwrap().unwrap().0.to_vec()
}

#[test]
fn every_table_s_garbled_row_is_named() {
    for table in Table::ALL.into_iter().filter(|table| *table != Table::Meta) {
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
fn times_that_fall_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    let update_seq = store.snapshot().unwrap().counters().unwrap().update_seq;
    for (secs, behind) in [(u64::MAX - 1, update_seq.before()), (u64::MAX, update_seq)] {
        damage(&store, Table::Times, &keys::number(secs), Some(&times_codec::encode(behind)));
    }
    assert_eq!(store.check().unwrap().problems_total, 1, "only the last one is not below the update sequence");
    let end_with = |behind| {
        damage(&store, Table::Times, &keys::number(u64::MAX), Some(&times_codec::encode(behind)));
        store.check().unwrap().problems
    };
    assert_eq!(end_with(update_seq.before()), Vec::<String>::new(), "two seconds may have one sequence");
    let problems = end_with(update_seq.before().before());
    assert!(problems.len() == 1 && problems[0].contains("is below that of"), "{problems:?}");
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

#[test]
fn records_and_their_age_order_that_disagree_are_noticed() {
    let record = |store: &Store| first_row(store, Table::Transactions);
    let totals =
        |next_order, count, bytes| Some(transaction::encode_totals(&transaction::Totals { next_order, count, bytes }));
    let age = |at_secs, bytes, key| Some(transaction::encode_age(&transaction::Age { at_secs, bytes, key }));
    let place = |order| keys::number(order).to_vec();
    for (table, key, value, expected) in [
        (Table::Meta, META_TRANSACTIONS.to_vec(), totals(2, 3, 0), "3 records, there are 2"),
        (Table::Meta, META_TRANSACTIONS.to_vec(), totals(2, 2, 9), "9 bytes of records"),
        (Table::Meta, META_TRANSACTIONS.to_vec(), totals(1, 2, 0), "transaction_ages 1: not below the next place, 1"),
        (Table::Meta, META_TRANSACTIONS.to_vec(), None, "0 records, there are 2"),
        (Table::TransactionAges, place(0), age(100, 7, "k1"), r#"transactions "k1": its place in the age order, 0"#),
        (Table::TransactionAges, place(0), age(99, 64, "k1"), r#"transactions "k1": its place in the age order, 0"#),
        (Table::TransactionAges, place(1), age(100, 64, "gone"), r#"transaction_ages 1: no record "gone""#),
        (Table::TransactionAges, b"short".to_vec(), age(100, 64, "k1"), "key is not 8 bytes"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = filled(folder.path());
        assert_eq!(record(&store).0, b"k1");
        damage(&store, table, &key, value.as_deref());
        let report = store.check().unwrap();
        let named = report.problems.iter().any(|problem| problem.contains(expected));
        assert!(named, "{expected}: {:?}", report.problems);
    }
}

#[test]
fn an_index_that_differs_from_its_documents_is_noticed() {
    let row = |store: &Store| first_row(store, Table::FeedIndex).0;
    let with = |store: &Store, change: fn(&mut IndexKey)| {
        let mut key = IndexKey::from_bytes(&row(store)).unwrap();
        change(&mut key);
        key.to_bytes().to_vec()
    };
    type Change = fn(&mut IndexKey);
    let cases: [(Change, &str); 3] = [
        (|key| key.seq = Sequence::new(0, 2), "no row of by_seq at its sequence"),
        (|key| key.key += 1, "its document has no such key"),
        (|key| key.field = 7, "a row of field 7, which there is not"),
    ];
    for (change, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let store = filled(folder.path());
        damage(&store, Table::FeedIndex, &with(&store, change), Some(&[1]));
        let report = store.check().unwrap();
        assert_eq!(report.problems_total, 1, "{:?}", report.problems);
        assert!(report.problems[0].contains(expected), "{:?}", report.problems);
    }
}
