//! The index of the feed: what is read by it is what a scan reads, whatever happens to the documents and to the index.

use proptest::sample::Index;
use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{
    Change, ChangesPage, Direction, FeedKeys, FieldKeys, LeafRev, Lookup, Outcome, PageLimits, ReadChanges, ReadKeys,
    Snapshot, Store, StoreOptions, Write,
};

use crate::db::{Db, NO_LIMITS, create, delete, everything, push, rev, small, update};

/// Keys of members: the checksum of the value's text, of each element in an array; of more than three, any.
#[derive(Debug)]
pub struct TestKeys;

impl FeedKeys for TestKeys {
    fn version(&self) -> u64 {
        1
    }

    fn reader(&self, fields: &[&str]) -> ReadKeys {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        Box::new(move |_: &DocId, _: &LeafRev, body: &Body| fields.iter().map(|field| keys_of(body, field)).collect())
    }
}

fn keys_of(body: &Body, field: &str) -> FieldKeys {
    let values = values_of(body, field);
    if values.len() > 3 {
        return FieldKeys::Any;
    }
    FieldKeys::These(values.iter().map(|value| key_of(value)).collect())
}

fn values_of(body: &Body, field: &str) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_slice(body.as_bytes()).unwrap();
    match json.get(field) {
        None => Vec::new(),
        Some(serde_json::Value::Array(elements)) => elements.iter().map(ToString::to_string).collect(),
        Some(value) => vec![value.to_string()],
    }
}

/// The key of a value's text.
pub fn key_of(value: &str) -> u64 {
    u64::from(crc32c::crc32c(value.as_bytes()))
}

/// Another way to make the same keys.
#[derive(Debug)]
struct OtherKeys;

impl FeedKeys for OtherKeys {
    fn version(&self) -> u64 {
        2
    }

    fn reader(&self, fields: &[&str]) -> ReadKeys {
        TestKeys.reader(fields)
    }
}

pub fn index(fields: &[&str]) -> Write {
    Write::FeedIndex(fields.iter().map(|field| (*field).to_owned()).collect())
}

/// Goes on with the index until nothing is left to do, in slices of so many rows; gives how many there were.
pub fn tend(store: &Store, rows_max: usize) -> usize {
    let limits = PageLimits { rows_max, ..NO_LIMITS };
    let mut slices = 1;
    while !store.tend_feed_index(limits).unwrap().done {
        slices += 1;
    }
    slices
}

/// A selector: documents of which the winner, or any leaf, has the value under the field.
struct Asked<'a> {
    field: &'a str,
    value: &'a str,
    all_leaves: bool,
}

impl Asked<'_> {
    fn lookup(&self) -> Lookup {
        Lookup { path: self.field.to_owned(), keys: vec![key_of(self.value)], all_leaves: self.all_leaves }
    }

    fn show(&self, snapshot: &Snapshot<'_>, change: Change) -> Option<Change> {
        let has = |body: Option<Body>| {
            body.is_some_and(|body| values_of(&body, self.field).iter().any(|value| value == self.value))
        };
        let loser_has = || {
            let tree = snapshot.tree(&change.id).unwrap().unwrap().tree;
            tree.leaves().iter().any(|leaf| has(snapshot.body(leaf.body).unwrap()))
        };
        (has(change.body.clone()) || self.all_leaves && loser_has()).then_some(change)
    }

    fn scan(&self, snapshot: &Snapshot<'_>, read: &ReadChanges) -> ChangesPage {
        snapshot.changes_shown(read, &|_| true, |change| Ok(self.show(snapshot, change))).unwrap()
    }

    fn look_up(&self, snapshot: &Snapshot<'_>, read: &ReadChanges) -> Option<ChangesPage> {
        let show = |change| Ok(self.show(snapshot, change));
        snapshot.changes_looked_up(&[self.lookup()], read, &|_| true, show).unwrap()
    }
}

/// Compares every page there can be of a stretch. Both say how far they came as far as that counts: where rows are
/// given up to a limit, and at the end.
fn compare(db: &Db, asked: &Asked<'_>, stretch: ReadChanges) {
    let snapshot = db.snapshot();
    for rows_max in [1, 2, 3, usize::MAX] {
        let read = ReadChanges { limits: PageLimits { rows_max, ..NO_LIMITS }, ..stretch };
        let (scanned, found) = (asked.scan(&snapshot, &read), asked.look_up(&snapshot, &read).expect("an index"));
        assert_eq!(found.changes, scanned.changes);
        assert_eq!((found.examined, found.complete), (scanned.examined, scanned.complete));
    }
}

/// Compares what an index finds with what a scan finds, if the fields are ready, from several places in both
/// directions.
pub fn agrees_with_a_scan(db: &Db, values: &[&str], cut: Index) {
    let status = db.snapshot().feed_index().unwrap();
    let ends: Vec<Sequence> = [Sequence::ZERO].into_iter().chain(db.feed().iter().map(|row| row.seq)).collect();
    let cut = *cut.get(&ends);
    for (field, value) in status.fields.iter().flat_map(|field| values.iter().map(move |value| (field, value))) {
        for all_leaves in [false, true] {
            let asked = Asked { field, value, all_leaves };
            if asked.look_up(&db.snapshot(), &everything()).is_none() {
                assert!(!status.ready);
                continue;
            }
            for direction in [Direction::Forward, Direction::Backward] {
                compare(db, &asked, ReadChanges { direction, ..everything() });
                compare(db, &asked, ReadChanges { direction, after: cut, ..everything() });
                compare(db, &asked, ReadChanges { direction, up_to: cut, after: Sequence::ZERO, ..everything() });
            }
        }
    }
}

fn assert_sound(db: &Db) -> u64 {
    let report = db.store.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    report.index_rows
}

fn found(db: &Db, field: &str, value: &str) -> Vec<String> {
    let asked = Asked { field, value, all_leaves: false };
    let page = asked.look_up(&db.snapshot(), &everything()).expect("a ready index");
    page.changes.iter().map(|change| change.id.to_string()).collect()
}

fn filled(documents: usize) -> Db {
    let db = Db::new();
    db.request((0..documents).map(|n| create(&format!("d{n:03}"), &format!(r#"{{"n":{}}}"#, n % 10))).collect());
    db
}

#[test]
fn the_past_is_indexed_in_slices_and_reopening_goes_on_where_it_was() {
    let mut db = filled(100);
    assert_eq!(db.write(index(&["n"])), Outcome::Done);
    let limits = PageLimits { rows_max: 7, ..NO_LIMITS };
    let mut slices = 0;
    while !db.store.tend_feed_index(limits).unwrap().done {
        slices += 1;
        let status = db.snapshot().feed_index().unwrap();
        assert_eq!((status.rows_done, status.rows_total), (slices * 7, 100));
        assert!(!status.ready && status.untended && db.snapshot().feed_index().unwrap().fields == ["n"]);
        assert_eq!(assert_sound(&db), slices * 7);
        db = db.reopen();
    }
    assert_eq!(slices, 14);
    let status = db.snapshot().feed_index().unwrap();
    assert!(status.ready && !status.untended && (status.rows_done, status.rows_total) == (100, 100));
    assert_eq!(assert_sound(&db), 100);
    assert_eq!(found(&db, "n", "7"), (0..10).map(|n| format!("d{n}7").replace('d', "d0")).collect::<Vec<_>>());
}

#[test]
fn what_is_written_while_an_index_is_made_is_in_it_once() {
    let db = filled(40);
    db.write(index(&["n"]));
    let limits = PageLimits { rows_max: 10, ..NO_LIMITS };
    for round in 0..3 {
        // One behind the place reached, one before it, a new one.
        for doc in [round, 39 - round] {
            let id = format!("d{doc:03}");
            let parent = db.tree(&id).leaves()[0].rev.clone();
            db.rev(update(&id, &parent, r#"{"n":"again"}"#));
        }
        db.rev(create(&format!("new{round}"), r#"{"n":"new"}"#));
        assert_sound(&db);
        db.store.tend_feed_index(limits).unwrap();
        assert_sound(&db);
    }
    tend(&db.store, 10);
    assert_eq!(assert_sound(&db), 43);
    assert_eq!(found(&db, "n", "\"again\""), ["d000", "d039", "d001", "d038", "d002", "d037"]);
    assert_eq!(found(&db, "n", "\"new\""), ["new0", "new1", "new2"]);
}

#[test]
fn fields_in_common_are_looked_up_while_others_are_made_and_rows_given_up_go() {
    let db = filled(30);
    db.write(index(&["n", "m"]));
    tend(&db.store, 1000);
    assert_eq!(db.write(index(&["m", "n"])), Outcome::Unchanged);
    db.write(index(&["k", "m"]));
    let status = db.snapshot().feed_index().unwrap();
    assert!(!status.ready && status.untended);
    assert_eq!(found(&db, "m", "1"), Vec::<String>::new());
    let asked = Asked { field: "n", value: "1", all_leaves: false };
    assert!(asked.look_up(&db.snapshot(), &everything()).is_none());
    assert!(tend(&db.store, 7) > 4 + 4);
    assert_eq!(assert_sound(&db), 0);
    db.write(index(&[]));
    tend(&db.store, 7);
    assert_eq!(db.snapshot().feed_index().unwrap(), Default::default());
    assert_eq!(assert_sound(&db), 0);
}

#[test]
fn what_cannot_be_told_is_found_under_every_key() {
    let db = Db::new();
    db.write(index(&["n"]));
    tend(&db.store, 10);
    db.rev(create("many", r#"{"n":[1,2,3,4]}"#));
    db.rev(create("few", r#"{"n":[1,2,2]}"#));
    db.write(push("fork", 1, &["b"], r#"{"n":1}"#));
    db.write(push("fork", 1, &["a"], r#"{"n":5}"#));
    assert_eq!(assert_sound(&db), 1 + 2 + 2);
    assert_eq!(found(&db, "n", "4"), ["many"]);
    assert_eq!(found(&db, "n", "1"), ["many", "few", "fork"]);
    let loser = |all_leaves| {
        let asked = Asked { field: "n", value: "5", all_leaves };
        asked.look_up(&db.snapshot(), &everything()).unwrap().changes.len()
    };
    assert_eq!((loser(false), loser(true)), (0, 1));
    db.rev(delete("fork", &rev("1-b")));
    assert_eq!(found(&db, "n", "5"), ["fork"]);
    db.write(Write::Purge { id: crate::db::id("fork"), revs: vec![rev("1-a")] });
    assert_eq!(found(&db, "n", "5"), Vec::<String>::new());
    assert_sound(&db);
}

#[test]
fn an_index_with_keys_of_another_kind_is_made_anew() {
    let db = filled(20);
    db.write(index(&["n"]));
    tend(&db.store, 100);
    let db = db.reopen_with(StoreOptions { feed_keys: &OtherKeys, ..small() });
    let status = db.snapshot().feed_index().unwrap();
    assert!(!status.ready && status.fields == ["n"]);
    tend(&db.store, 6);
    assert_eq!(assert_sound(&db), 20);
    assert_eq!(found(&db, "n", "3").len(), 2);
}

#[test]
fn a_lookup_takes_the_ready_field_with_the_least_keys_and_none_for_too_many() {
    let db = filled(20);
    db.write(index(&["n", "m"]));
    tend(&db.store, 100);
    let lookup = |path: &str, keys: std::ops::Range<u64>| Lookup {
        path: path.to_owned(),
        keys: keys.collect(),
        all_leaves: false,
    };
    let rows = |lookups: &[Lookup]| {
        let page = db.snapshot().changes_looked_up(lookups, &everything(), &|_| true, |change| Ok(Some(change)));
        page.unwrap().map(|page| (page.changes.len(), page.complete))
    };
    let one = Lookup { path: "n".to_owned(), keys: vec![key_of("3")], all_leaves: false };
    assert_eq!(rows(&[lookup("n", 0..50), one.clone(), lookup("unknown", 0..0)]), Some((2, true)));
    assert_eq!(rows(&[one, lookup("m", 0..0)]), Some((0, true)), "nothing can have none of no keys");
    assert_eq!(rows(&[lookup("n", 0..1001)]), None);
    assert_eq!(rows(&[lookup("unknown", 0..1)]), None);
    assert_eq!(rows(&[]), None);
}
