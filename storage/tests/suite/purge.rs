//! A purge forgets leaves and what only they came from, at once and without a trace in the feed; the rest of the
//! database stays exact.

use seqtide_storage::model::body_place::BodyPlace;
use seqtide_storage::{Counters, Outcome, Write};

use crate::db::{Db, body, create, id, leaves, places, push, rev, seq, shown, update};

fn purge(doc: &str, revs: &[&str]) -> Write {
    Write::Purge { id: id(doc), revs: revs.iter().map(|text| rev(text)).collect() }
}

fn purged(revs: &[&str], at: Option<u64>) -> Outcome {
    Outcome::Purged { revs: revs.iter().map(|text| rev(text)).collect(), seq: at.map(seq) }
}

fn assert_clean(db: &Db) {
    assert_eq!(db.store.check().unwrap().problems, Vec::<String>::new());
}

/// Where the bodies of a document lie, those of its ancestors too.
fn places_of(db: &Db, doc: &str) -> Vec<BodyPlace> {
    let tree = db.whole_tree(doc);
    let line = |leaf: &seqtide_storage::model::rev_tree::Leaf| {
        leaf.ancestors.recent.iter().map(|ancestor| ancestor.body).chain([leaf.body]).collect::<Vec<_>>()
    };
    tree.leaves().iter().flat_map(line).collect()
}

#[test]
fn one_leaf_of_several_goes_and_the_document_moves() {
    let db = Db::new();
    db.write(push("s", 1, &["a"], "{}"));
    db.write(push("p", 2, &["b", "a"], r#"{"n":"b"}"#));
    db.write(push("p", 2, &["c", "a"], r#"{"n":"c"}"#));
    let commit = db.commit(&[vec![purge("p", &["2-c", "1-a", "7-x"])]]);
    assert_eq!(commit.requests[0].outcomes, [purged(&["2-c"], Some(4))], "an ancestor and a stranger are passed over");
    assert_eq!((commit.requests[0].seq, commit.vanished.len(), commit.sweep), (seq(4), 0, false));
    assert_eq!(shown(&commit.changes), db.feed()[1..]);
    assert_eq!(places(&db.feed()), [(1, "s"), (4, "p")]);
    assert_eq!(
        (leaves(&db.tree("p")), db.feed()[1].body.clone()),
        (vec!["2-b".to_owned()], Some(body(r#"{"n":"b"}"#)))
    );
    assert_eq!((db.counters().body_bytes, db.counters().garbage_bytes), (9, 0), "its body is gone, not garbage");
    assert_clean(&db);
}

#[test]
fn the_last_leaf_takes_the_row_along_and_uses_a_sequence_up() {
    let db = Db::new();
    db.rev(create("s", "{}"));
    let first = db.rev(create("p", r#"{"n":1}"#));
    let second = db.rev(update("p", &first, r#"{"n":2}"#));
    let bodies = places_of(&db, "p");
    let commit = db.commit(&[vec![purge("p", &[&second.to_string()])]]);
    assert_eq!((commit.changes, commit.vanished), (vec![], vec![id("p")]));
    assert_eq!(
        commit.counters,
        Counters { update_seq: seq(4), docs: 1, body_bytes: 0, garbage_bytes: 0, ..db.counters() }
    );
    assert_eq!((places(&db.feed()), db.snapshot().last_row_seq().unwrap()), (vec![(1, "s")], seq(1)));
    assert_eq!((db.snapshot().tree(&id("p")).unwrap(), db.snapshot().rows_after(seq(1)).unwrap()), (None, 0));
    assert_eq!(bodies.len(), 2);
    assert!(bodies.iter().all(|place| db.body_at(*place).is_none()), "the superseded one too");
    assert_clean(&db);
    assert_eq!(db.rev(create("p", r#"{"n":1}"#)), first, "it starts afresh");
    assert!(db.tree("p").leaves()[0].ancestors.is_empty());
    assert_eq!(places(&db.feed()), [(1, "s"), (5, "p")]);
    assert_clean(&db);
}

#[test]
fn nothing_to_purge_changes_nothing() {
    let db = Db::new();
    db.rev(create("a", "{}"));
    let before = db.counters();
    for nothing in [purge("a", &["1-x"]), purge("a", &[]), purge("unknown", &["1-a"])] {
        let commit = db.commit(&[vec![nothing]]);
        assert_eq!((&commit.requests[0].outcomes[..], commit.requests[0].seq), (&[purged(&[], None)][..], seq(1)));
        assert_eq!((commit.counters, commit.vanished), (before, vec![]));
    }
    assert_eq!(db.snapshot().purge_seq().unwrap(), 0);
}

#[test]
fn purges_are_counted_for_good() {
    let db = Db::new();
    let written = db.rev(create("a", "{}"));
    db.write(push("b", 1, &["a"], "{}"));
    db.request(vec![purge("a", &[&written.to_string()]), purge("b", &["1-a"]), purge("b", &["1-a"])]);
    assert_eq!(db.snapshot().purge_seq().unwrap(), 2);
    let db = db.reopen();
    assert_eq!(db.snapshot().purge_seq().unwrap(), 2);
    assert_eq!((db.counters().update_seq, db.feed()), (seq(4), vec![]));
    assert_clean(&db);
}

#[test]
fn writes_of_one_commit_see_each_other_s_purges() {
    let db = Db::new();
    let commit = db.commit(&[
        vec![push("a", 1, &["x"], r#"{"n":1}"#), purge("a", &["1-x"])],
        vec![push("b", 1, &["x"], r#"{"n":1}"#)],
        vec![purge("b", &["1-x"]), push("b", 1, &["y"], r#"{"n":2}"#), push("b", 2, &["z", "y"], r#"{"n":3}"#)],
        vec![purge("b", &["1-x", "2-z"]), push("b", 1, &["x"], r#"{"n":4}"#)],
    ]);
    let seqs: Vec<_> = commit.requests.iter().map(|request| request.seq.version).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert_eq!((places(&shown(&commit.changes)), &commit.vanished), (vec![(4, "b")], &vec![id("a")]));
    assert_eq!(commit.changes[0].body, Some(body(r#"{"n":4}"#)));
    assert_eq!((db.counters().body_bytes, db.counters().garbage_bytes), (7, 0));
    assert_eq!(db.store.check().unwrap().bodies, 1, "what was purged in its own commit is never written");
    assert_clean(&db);
}

#[test]
fn bodies_of_one_request_stay_apart_when_one_between_is_purged() {
    let db = Db::new();
    db.request(vec![
        push("a", 1, &["x"], r#"{"n":1}"#),
        push("a", 1, &["y"], r#"{"n":2}"#),
        purge("a", &["1-x"]),
        push("a", 1, &["z"], r#"{"n":3}"#),
    ]);
    let found: Vec<_> = db.tree("a").leaves().iter().map(|leaf| db.body_at(leaf.body)).collect();
    assert_eq!(found, [Some(body(r#"{"n":3}"#)), Some(body(r#"{"n":2}"#))]);
    assert_clean(&db);
}

#[test]
fn a_leaf_that_is_pushed_again_has_the_line_it_is_pushed_with() {
    let db = Db::new();
    db.write(push("a", 2, &["b", "old"], r#"{"n":1}"#));
    db.request(vec![purge("a", &["2-b"]), push("a", 2, &["b", "new"], r#"{"n":2}"#)]);
    assert_eq!(crate::db::line(&db.whole_tree("a").leaves()[0]), ["new"]);
    assert_clean(&db);
}

/// What lay in chunks before was taken for what it was pushed with.
#[test]
fn a_leaf_that_is_pushed_again_has_that_line_in_history_too() {
    let db = Db::new();
    db.write(push_line(&line_of(&[("r", 41), ("a", 1)])));
    let second = line_of(&[("r", 41), ("b", 1)]);
    db.request(vec![purge("a", &["60-r60"]), push_line(&second)]);
    assert_eq!(crate::db::line(&db.whole_tree("a").leaves()[0]), second[1..]);
    assert_clean(&db);
}

/// Its own revision is not among those that are purged.
#[test]
fn a_leaf_that_went_with_one_above_it_and_is_pushed_again_has_its_new_line() {
    let db = Db::new();
    db.write(push_line(&line_of(&[("r", 41), ("a", 1)])));
    let second = line_of(&[("r", 41), ("b", 1)]);
    db.request(vec![push("a", 61, &["x", "r60"], "{}"), purge("a", &["61-x"]), push_line(&second)]);
    assert_eq!(crate::db::line(&db.whole_tree("a").leaves()[0]), second[1..]);
    assert_clean(&db);
}

/// The hashes of 60 generations, newest first: names, and down to which generation each goes.
fn line_of(names: &[(&str, u32)]) -> Vec<String> {
    let name_of = |generation: u32| names.iter().find(|(_, down_to)| generation >= *down_to).unwrap().0;
    (1..=60).rev().map(|generation| format!("{}{generation}", name_of(generation))).collect()
}

fn push_line(line: &[String]) -> Write {
    push("a", 60, &line.iter().map(String::as_str).collect::<Vec<_>>(), "{}")
}

#[test]
fn long_histories_go_without_leaving_a_chunk_or_a_body() {
    let db = Db::new();
    let mut last = db.rev(create("a", r#"{"n":0}"#));
    let mut fork = Vec::new();
    for n in 1..120 {
        last = db.rev(update("a", &last, &format!(r#"{{"n":{n}}}"#)));
        if n == 60 {
            fork = std::iter::once(last.hash.to_string())
                .chain(crate::db::line(&db.whole_tree("a").leaves()[0]))
                .collect();
        }
    }
    let fork: Vec<&str> = std::iter::once("other").chain(fork.iter().map(String::as_str)).collect();
    db.write(push("a", 62, &fork, r#"{"n":"other"}"#));
    let before = db.counters();
    db.write(purge("a", &[&last.to_string()]));
    assert_eq!((leaves(&db.tree("a")), db.whole_tree("a").leaves()[0].branch_len()), (vec!["62-other".to_owned()], 62));
    assert_clean(&db);
    assert_eq!(db.store.check().unwrap().bodies, 62, "those of the generations up to the fork, and its own");
    assert!(db.counters().garbage_bytes < before.garbage_bytes);
    db.write(purge("a", &["62-other"]));
    assert_eq!((db.store.check().unwrap().bodies, db.counters().garbage_bytes), (0, 0));
    assert_clean(&db);
}

#[test]
fn bodies_that_a_sweep_has_freed_are_not_counted_twice() {
    let db = Db::new();
    let first = db.rev(create("a", r#"{"n":1}"#));
    let second = db.rev(update("a", &first, r#"{"n":2}"#));
    while !db.reclaim(100).swept {}
    db.write(purge("a", &[&second.to_string()]));
    assert_eq!((db.counters().body_bytes, db.counters().garbage_bytes), (0, 0));
    assert_clean(&db);
}

#[test]
fn bodies_that_stemming_had_cut_off_are_left_to_a_sweep_that_the_commit_asks_for() {
    let db = Db::with_revs_limit(2);
    let mut last = db.rev(create("a", r#"{"n":0}"#));
    for n in 1..5 {
        last = db.rev(update("a", &last, &format!(r#"{{"n":{n}}}"#)));
    }
    let commit = db.commit(&[vec![purge("a", &[&last.to_string()])]]);
    assert!(commit.sweep);
    assert_eq!((commit.counters.body_bytes, commit.counters.garbage_bytes), (0, 3 * 7));
    assert_clean(&db);
    while !db.reclaim(100).swept {}
    assert_eq!((db.store.check().unwrap().bodies, db.counters().garbage_bytes), (0, 0));
}
