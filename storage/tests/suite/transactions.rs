//! Keyed requests: carried out once, and answered the same however often they are sent.

use seqtide_storage::model::doc_id::{DocId, LocalId};
use seqtide_storage::model::idempotency::{Fingerprint, IdempotencyKey};
use seqtide_storage::{
    Attempt, LocalEdit, Outcome, Request, RequestKey, RequestOutcome, StoreOptions, TransactionLimits, Write,
};

use crate::db::{Db, body, create, places, push, rev, seq, small, update};

/// A request with a key, sent at a time; its fingerprint is that of its writes.
pub fn keyed(key: &str, at_secs: u64, writes: Vec<Write>) -> Request {
    let fingerprint = Fingerprint::of_writes(&writes);
    let key = IdempotencyKey::new(key).unwrap();
    Request { writes, key: Some(RequestKey { key, fingerprint, made_ids: Vec::new(), at_secs }) }
}

fn with_limits(transactions: TransactionLimits) -> Db {
    Db::with(StoreOptions { transactions, ..small() })
}

fn send(db: &Db, request: &Request) -> RequestOutcome {
    db.send(std::slice::from_ref(request)).requests.remove(0)
}

/// What the same request is answered again: the same, marked as a replay.
fn replay(first: &RequestOutcome) -> RequestOutcome {
    RequestOutcome { attempt: Attempt::Replayed, ..first.clone() }
}

fn is_kept(db: &Db, request: &Request) -> bool {
    db.snapshot().answer(request.key.as_ref().unwrap()).unwrap().is_some()
}

fn records(db: &Db) -> u64 {
    let report = db.store.check().unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    report.transactions
}

/// What the record of a [`put`] counts with a key of three letters: 53 bytes of value, twice the key, and 24.
const PUT_BYTES: u64 = 53 + 2 * 3 + 24;

/// Makes a document `key` under the key of that name.
fn put(key: &str, at_secs: u64) -> Request {
    keyed(key, at_secs, vec![create(key, "{}")])
}

#[test]
fn a_request_sent_again_answers_the_same_and_writes_nothing() {
    let db = Db::new();
    let request = keyed("k", 100, vec![create("a", r#"{"n":1}"#), create("b", "{}")]);
    let first = send(&db, &request);
    assert_eq!((first.attempt, first.seq), (Attempt::First, seq(2)));
    let before = (db.feed(), db.counters());
    assert_eq!(send(&db, &request), replay(&first));
    assert_eq!(db.snapshot().answer(request.key.as_ref().unwrap()).unwrap(), Some(replay(&first)));
    assert_eq!((db.feed(), db.counters()), before);
    let db = db.reopen();
    assert_eq!(send(&db, &request), replay(&first), "after a restart");
    assert_eq!((db.feed(), db.counters()), before);
    assert_eq!(records(&db), 1);
}

#[test]
fn what_happens_to_the_documents_meanwhile_does_not_matter() {
    let db = Db::new();
    let request = keyed("k", 100, vec![create("a", "{}")]);
    let first = send(&db, &request);
    let Outcome::Written { rev: made, .. } = &first.outcomes[0] else { panic!("{first:?}") };
    db.write(update("a", made, r#"{"n":2}"#));
    assert_eq!(send(&db, &request), replay(&first));
    assert_eq!(places(&db.feed()), [(2, "a")]);
}

#[test]
fn the_same_key_twice_in_one_commit_is_one_request() {
    let db = Db::new();
    let request = put("k", 100);
    let other = keyed("k", 100, vec![create("b", "{}")]);
    let commit = db.send(&[request.clone(), request.clone(), other, put("l", 100)]);
    let [first, second, reused, another] = &commit.requests[..] else { panic!("{commit:?}") };
    assert_eq!(*second, replay(first));
    assert_eq!((reused.attempt, &reused.outcomes), (Attempt::KeyReused, &Vec::new()));
    assert_eq!((another.attempt, another.seq), (Attempt::First, seq(2)));
    assert_eq!(places(&db.feed()), [(1, "k"), (2, "l")]);
    assert_eq!(records(&db), 2);
}

#[test]
fn another_request_with_a_known_key_is_told_so_and_writes_nothing() {
    let db = Db::new();
    send(&db, &put("k", 100));
    let other = keyed("k", 100, vec![create("b", "{}")]);
    assert_eq!(send(&db, &other).attempt, Attempt::KeyReused);
    assert_eq!(db.snapshot().answer(other.key.as_ref().unwrap()).unwrap().unwrap().attempt, Attempt::KeyReused);
    assert_eq!(places(&db.feed()), [(1, "k")]);
}

#[test]
fn nothing_is_kept_of_a_request_that_changed_nothing() {
    let db = Db::new();
    let known = db.rev(create("a", "{}"));
    let missing = LocalEdit { id: local("x"), base: None, checked: true, body: None };
    for (key, writes) in [
        ("conflict", vec![create("a", r#"{"n":2}"#)]),
        ("conflicts", vec![create("a", r#"{"n":2}"#), update("a", &rev("7-x"), "{}")]),
        ("known", vec![push("a", 1, &[&known.hash.to_string()], "{}")]),
        ("missing", vec![Write::Local(missing)]),
        ("nothing", vec![]),
    ] {
        let request = keyed(key, 100, writes);
        assert_eq!(send(&db, &request).attempt, Attempt::First);
        assert!(!is_kept(&db, &request), "{key}");
    }
    assert_eq!(records(&db), 0);
    // So it may succeed when it is sent again.
    let request = keyed("conflict", 200, vec![update("a", &known, r#"{"n":2}"#)]);
    assert_eq!((send(&db, &request).attempt, db.counters().update_seq), (Attempt::First, seq(2)));
}

#[test]
fn conflicts_beside_changes_are_part_of_the_answer() {
    let db = Db::new();
    db.write(create("a", "{}"));
    let request = keyed("k", 100, vec![create("b", "{}"), create("a", "{}"), create("c", "{}")]);
    let first = send(&db, &request);
    assert_eq!(first.outcomes[1], Outcome::Conflict);
    db.write(Write::RevsLimit(7));
    assert_eq!(send(&db, &request), replay(&first));
}

#[test]
fn local_documents_and_settings_are_written_once_too() {
    let db = Db::new();
    let edit = |base| LocalEdit { id: local("x"), base, checked: true, body: Some(body("{}")) };
    let request = keyed("k", 100, vec![Write::Local(edit(None))]);
    let first = send(&db, &request);
    assert_eq!(first.outcomes, [Outcome::Local { revision: 1 }]);
    db.write(Write::Local(edit(Some(1))));
    assert_eq!(send(&db, &request), replay(&first));
    assert_eq!(db.snapshot().local(&local("x")).unwrap().unwrap().0, 2);

    let limit = keyed("l", 100, vec![Write::RevsLimit(5)]);
    send(&db, &limit);
    db.write(Write::RevsLimit(6));
    assert_eq!(send(&db, &limit).outcomes, [Outcome::Done]);
    assert_eq!(db.snapshot().revs_limit().unwrap(), 6);
}

#[test]
fn ids_that_were_made_come_back() {
    let db = Db::new();
    let made = |id: &str| {
        let mut request = keyed("k", 100, vec![create(id, "{}")]);
        let key = request.key.as_mut().unwrap();
        (key.made_ids, key.fingerprint) = (vec![DocId::parse(id).unwrap()], Fingerprint([1; 16]));
        request
    };
    let first = send(&db, &made("0199f0a57c6b7d1e8f2a3b4c5d6e7f80"));
    let again = send(&db.reopen(), &made("ffffffffffffffffffffffffffffffff"));
    assert_eq!(again, replay(&first));
    assert_eq!(again.made_ids[0].as_str(), "0199f0a57c6b7d1e8f2a3b4c5d6e7f80");
}

#[test]
fn records_grow_old() {
    let db = with_limits(TransactionLimits { age_secs_max: 60, ..TransactionLimits::default() });
    let old = put("old", 100);
    send(&db, &old);
    let later = |at_secs| {
        let mut same = old.clone();
        same.key.as_mut().unwrap().at_secs = at_secs;
        same
    };
    assert!(is_kept(&db, &later(160)) && !is_kept(&db, &later(161)));
    assert_eq!(send(&db, &later(160)).attempt, Attempt::Replayed);
    let again = send(&db, &later(161));
    assert_eq!((again.attempt, &again.outcomes[0]), (Attempt::First, &Outcome::Conflict), "it is new, and too late");

    // What took the place of an expired record has the row to itself, and a place of its own in the age order.
    let anew = keyed("old", 200, vec![create("b", "{}")]);
    assert_eq!(send(&db, &anew).attempt, Attempt::First);
    assert_eq!((send(&db, &anew).attempt, records(&db)), (Attempt::Replayed, 1));
    send(&db, &put("new", 300));
    assert_eq!((records(&db), is_kept(&db, &anew)), (1, false), "the expired one went with the next commit");
}

#[test]
fn a_clock_set_back_keeps_records() {
    let db = with_limits(TransactionLimits { age_secs_max: 60, ..TransactionLimits::default() });
    let (ahead, now) = (put("ahead", 1_000_000), put("now", 100));
    send(&db, &ahead);
    send(&db, &now);
    for request in [&ahead, &now] {
        assert_eq!(send(&db, request).attempt, Attempt::Replayed);
    }
    let db = db.reopen();
    send(&db, &put("later", 150));
    assert_eq!(records(&db), 3);
    // The clock's time comes in the end, and everything goes.
    send(&db, &put("last", 1_000_061));
    assert_eq!(records(&db), 1);
}

#[test]
fn the_oldest_go_beyond_the_number() {
    let db = with_limits(TransactionLimits { count_max: 10, ..TransactionLimits::default() });
    let requests: Vec<Request> = (0..40).map(|n| put(&format!("k{n:02}"), 100)).collect();
    for (sent, request) in requests.iter().enumerate() {
        send(&db, request);
        assert_eq!(records(&db), (sent as u64 + 1).min(10));
    }
    let kept: Vec<bool> = requests.iter().map(|request| is_kept(&db, request)).collect();
    assert_eq!(kept, [vec![false; 30], vec![true; 10]].concat());
}

#[test]
fn the_oldest_go_beyond_the_bytes() {
    let db = with_limits(TransactionLimits { bytes_max: 40 * PUT_BYTES, ..TransactionLimits::default() });
    for n in 0..60 {
        send(&db, &put(&format!("k{n:02}"), 100));
        assert_eq!(records(&db), (n + 1).min(40));
    }
    // One large record takes the room of many small ones, of more than a commit may remove by number.
    let large = (0..200).map(|n| create(&format!("d{n}"), "{}")).collect();
    send(&db, &keyed("large", 100, large));
    assert_eq!(records(&db), 1, "a commit's own records stay");
}

#[test]
fn a_table_beyond_lowered_bounds_shrinks_a_few_with_each_commit() {
    let folder = with_limits(TransactionLimits::default());
    folder.send(&(0..100).map(|n| put(&format!("k{n:02}"), 100)).collect::<Vec<_>>());
    let db = folder.reopen_with(StoreOptions {
        transactions: TransactionLimits { count_max: 5, ..TransactionLimits::default() },
        ..small()
    });
    let mut counts = vec![records(&db)];
    while counts.last() != Some(&5) {
        send(&db, &put(&format!("n{:02}", counts.len()), 100));
        counts.push(records(&db));
    }
    assert_eq!(counts, [100, 83, 66, 49, 32, 15, 5], "18 go where one comes");
    db.write(create("unkeyed", "{}"));
    assert_eq!(records(&db), 5);
}

fn local(name: &str) -> LocalId {
    LocalId::parse(&format!("_local/{name}")).unwrap().unwrap()
}
