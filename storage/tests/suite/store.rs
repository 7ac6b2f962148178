//! Outcomes of writes, and what they leave behind. Source of the cases: CouchDB 3.5's answers, observed.

use seqtide_storage::json::{Body, revision_hash};
use seqtide_storage::model::doc_id::LocalId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::{Edit, LocalEdit, Outcome, Write};

use crate::db::{Db, body, create, delete, id, leaves, places, push, push_deleted, rev, seq, shown, update};

#[test]
fn an_edit_goes_on_a_leaf_or_nowhere() {
    let db = Db::new();
    let first = db.rev(create("a", r#"{"n":1}"#));
    assert_eq!(db.write(create("a", r#"{"n":1}"#)), Outcome::Conflict, "the same body does not help");
    let second = db.rev(update("a", &first, r#"{"n":2}"#));
    assert_eq!(db.write(update("a", &first, r#"{"n":3}"#)), Outcome::Conflict, "no leaf any more");
    assert_eq!(db.write(update("a", &rev("2-x"), "{}")), Outcome::Conflict, "never was");
    assert_eq!(db.write(update("new", &first, "{}")), Outcome::Conflict, "a parent of no document");
    assert_eq!(leaves(&db.tree("a")), [second.to_string()]);
    assert_eq!(db.counters().update_seq, seq(2), "what was refused takes no sequence");
}

#[test]
fn a_revision_is_couchdbs_hash_of_the_edit() {
    let db = Db::new();
    let first = db.rev(create("a", r#"{"n":1}"#));
    assert_eq!(first, RevId::new(1, revision_hash(&body(r#"{"n":1}"#), None, false)));
    let second = db.rev(delete("a", &first));
    assert_eq!(second, RevId::new(2, revision_hash(&Body::empty(), Some(&first), true)));
}

#[test]
fn a_deleted_document_is_made_again_on_its_winning_tombstone() {
    let db = Db::new();
    let first = db.rev(create("a", "{}"));
    let gone = db.rev(delete("a", &first));
    assert_eq!(db.write(update("a", &gone, "{}")), Outcome::Conflict, "by naming the tombstone");
    assert_eq!(db.write(delete("a", &gone)), Outcome::Conflict, "deleted twice");
    let deletion = Write::Edit(Edit::interactive(id("a"), None, true, Body::empty()));
    assert_eq!(db.write(deletion), Outcome::Conflict);
    let again = db.rev(create("a", r#"{"n":1}"#));
    assert_eq!(again, RevId::new(3, revision_hash(&body(r#"{"n":1}"#), Some(&gone), false)));
    assert_eq!(leaves(&db.tree("a")), [again.to_string()]);
    assert_eq!((db.counters().docs, db.counters().deleted_docs), (1, 0));
}

#[test]
fn a_deletion_of_nothing_makes_a_tombstone_of_generation_one() {
    let db = Db::new();
    let deletion = Write::Edit(Edit::interactive(id("n"), None, true, Body::empty()));
    assert_eq!(db.rev(deletion).generation, 1);
    assert_eq!((db.counters().docs, db.counters().deleted_docs), (0, 1));
}

#[test]
fn a_tombstone_can_be_gone_on_from_while_another_leaf_lives() {
    let db = Db::new();
    db.request(vec![push("a", 2, &["b", "a"], "{}"), push_deleted("a", 2, &["c", "a"])]);
    let longer = db.rev(delete("a", &rev("2-c")));
    assert_eq!(leaves(&db.tree("a")), ["2-b".to_owned(), longer.to_string()]);
    let alive = db.rev(update("a", &longer, r#"{"n":4}"#));
    assert_eq!(leaves(&db.tree("a")), [alive.to_string(), "2-b".to_owned()]);
}

#[test]
fn what_is_known_takes_no_sequence_and_keeps_its_first_body() {
    let db = Db::new();
    db.write(push("a", 3, &["c", "b", "a"], r#"{"n":1}"#));
    let before = db.counters();
    for known in [push("a", 3, &["c", "b"], r#"{"n":2}"#), push("a", 2, &["b", "a"], r#"{"n":3}"#)] {
        let outcome = db.request(vec![known]);
        assert!(matches!(outcome.outcomes[..], [Outcome::Known { .. }]), "{outcome:?}");
        assert_eq!(outcome.seq, seq(1), "the current sequence");
    }
    assert_eq!(db.counters(), before);
    assert_eq!(db.feed()[0].body, Some(body(r#"{"n":1}"#)));
}

#[test]
fn an_edit_that_makes_a_revision_that_is_there_already_is_a_conflict() {
    let db = Db::new();
    let first = db.rev(create("a", r#"{"n":1}"#));
    let same = RevId::new(2, revision_hash(&body(r#"{"n":2}"#), Some(&first), false));
    db.write(push("a", 2, &[&same.hash.to_string()], r#"{"n":2}"#));
    let tree = db.tree("a");
    assert_eq!(db.write(update("a", &first, r#"{"n":2}"#)), Outcome::Conflict);
    assert_eq!(db.tree("a"), tree, "no revision stands in a tree twice");
}

#[test]
fn the_last_generation_has_no_child() {
    let db = Db::new();
    let last = RevId::new(u64::MAX, rev("1-a").hash);
    db.write(push("a", u64::MAX, &["a"], "{}"));
    for nothing_on in [update("a", &last, "{}"), update("b", &last, "{}")] {
        assert_eq!(db.write(nothing_on), Outcome::Conflict);
    }
}

#[test]
fn a_branch_cut_off_by_stemming_comes_back_as_a_root() {
    let db = Db::with_revs_limit(3);
    for (generation, hashes) in [(1, &["a"][..]), (3, &["c", "b", "a"]), (5, &["e", "d", "c"])] {
        db.write(push("x", generation, hashes, "{}"));
    }
    db.write(push("x", 2, &["b", "a"], "{}"));
    assert_eq!(leaves(&db.tree("x")), ["5-e", "2-b"]);
}

#[test]
fn a_document_takes_one_sequence_a_request() {
    let db = Db::new();
    let pushed = db.request(vec![
        push("a", 2, &["b", "a"], r#"{"n":1}"#),
        push("z", 1, &["z"], "{}"),
        push("a", 2, &["c", "a"], r#"{"n":2}"#),
    ]);
    let seqs: Vec<_> = pushed.outcomes.iter().map(seq_of).collect();
    assert_eq!((seqs, pushed.seq), (vec![Some(1), Some(2), Some(1)], seq(2)));
    let feed = db.feed();
    assert_eq!(places(&feed), [(1, "a"), (2, "z")]);
    assert_eq!(feed[0].body, Some(body(r#"{"n":2}"#)), "the winner's, of two bodies written at one sequence");
    let loser = db.tree("a").leaves()[1].body;
    assert_eq!(db.body_at(loser), Some(body(r#"{"n":1}"#)));
}

#[test]
fn of_one_id_twice_in_a_request_the_first_wins() {
    let db = Db::new();
    let outcomes = db.request(vec![create("a", r#"{"n":1}"#), create("a", r#"{"n":2}"#)]).outcomes;
    assert!(matches!(outcomes[..], [Outcome::Written { .. }, Outcome::Conflict]), "{outcomes:?}");
}

#[test]
fn sequences_follow_the_order_in_which_a_request_lists_its_documents() {
    let db = Db::new();
    db.request(["m", "z", "a", "k"].map(|doc| create(doc, "{}")).into());
    assert_eq!(places(&db.feed()), [(1, "m"), (2, "z"), (3, "a"), (4, "k")]);
}

#[test]
fn requests_of_one_commit_are_planned_one_after_the_other() {
    let db = Db::new();
    let first = db.rev(create("a", r#"{"n":1}"#));
    let commit = db.commit(&[
        vec![update("a", &first, r#"{"n":2}"#)],
        vec![create("b", "{}"), update("a", &first, r#"{"n":3}"#)],
        vec![update("a", &first, r#"{"n":4}"#)],
        vec![push("a", 2, &["0", &first.hash.to_string()], r#"{"n":5}"#)],
    ]);
    let seqs: Vec<_> = commit.requests.iter().map(|request| request.seq.version).collect();
    assert_eq!(seqs, [2, 3, 3, 4], "a request that changed nothing tells the current sequence");
    assert_eq!(commit.requests[1].outcomes[1], Outcome::Conflict);
    assert_eq!(places(&shown(&commit.changes)), [(3, "b"), (4, "a")], "a row superseded in the commit is not told");
    assert_eq!(shown(&commit.changes), db.feed());
    assert_eq!(commit.counters, db.counters());
}

#[test]
fn a_losing_leaf_moves_the_document_and_its_row_still_shows_the_winner() {
    let db = Db::new();
    db.write(push("a", 3, &["c", "b", "a"], r#"{"winner":true}"#));
    db.write(create("b", "{}"));
    let commit = db.commit(&[vec![push("a", 2, &["x", "a"], r#"{"loser":true}"#)]]);
    let [change] = &shown(&commit.changes)[..] else { panic!("{commit:?}") };
    assert_eq!((change.seq, change.winner().rev.to_string()), (seq(3), "3-c".to_owned()));
    assert_eq!(change.leaves.len(), 2);
    assert_eq!(change.body, Some(body(r#"{"winner":true}"#)));
    assert_eq!(db.feed()[1], *change);
    let summary = db.snapshot().summary(&id("a")).unwrap().unwrap();
    assert_eq!((summary.seq, summary.branches, summary.deleted), (seq(3), 2, false));
}

#[test]
fn deleting_the_winner_uncovers_the_next_leaf_with_its_body() {
    let db = Db::new();
    db.request(vec![push("a", 2, &["c", "a"], r#"{"n":"c"}"#), push("a", 2, &["b", "a"], r#"{"n":"b"}"#)]);
    let commit = db.commit(&[vec![delete("a", &rev("2-c"))]]);
    assert_eq!(commit.changes[0].body, Some(body(r#"{"n":"b"}"#)));
    assert_eq!(db.feed(), shown(&commit.changes));
    assert!(db.tree("a").is_live());
}

#[test]
fn an_empty_commit_changes_nothing() {
    let db = Db::new();
    db.write(create("a", "{}"));
    let before = db.counters();
    let commit = db.commit(&[vec![], vec![create("a", "{}")]]);
    assert_eq!((commit.changes, commit.counters), (vec![], before));
    assert_eq!(commit.requests[0].seq, seq(1));
}

#[test]
fn everything_is_there_after_reopening() {
    let db = Db::new();
    db.rev(create("a", r#"{"n":1}"#));
    db.write(local("x", None, Some("{}")));
    db.write(Write::RevsLimit(17));
    let (feed, counters) = (db.feed(), db.counters());
    let db = db.reopen();
    assert_eq!((db.feed(), db.counters()), (feed, counters));
    assert_eq!(db.snapshot().revs_limit().unwrap(), 17);
    db.rev(create("b", "{}"));
    assert_eq!(places(&db.feed()), [(1, "a"), (2, "b")]);
}

fn seq_of(outcome: &Outcome) -> Option<u64> {
    match outcome {
        Outcome::Written { seq, .. } => Some(seq.version),
        _ => None,
    }
}

fn local_id(name: &str) -> LocalId {
    LocalId::parse(&format!("_local/{name}")).unwrap().unwrap()
}

fn local(name: &str, base: Option<u64>, json: Option<&str>) -> Write {
    Write::Local(LocalEdit { id: local_id(name), base, checked: true, body: json.map(body) })
}

#[test]
fn local_documents_count_their_revisions_and_refuse_stale_ones() {
    let db = Db::new();
    let stored = |db: &Db| db.snapshot().local(&local_id("x")).unwrap();
    assert_eq!(db.write(local("x", None, None)), Outcome::Missing);
    assert_eq!(db.write(local("x", None, Some(r#"{"n":1}"#))), Outcome::Local { revision: 1 });
    assert_eq!(db.write(local("x", Some(1), Some(r#"{"n":2}"#))), Outcome::Local { revision: 2 });
    for stale in [local("x", None, Some("{}")), local("x", Some(1), Some("{}")), local("x", Some(1), None)] {
        assert_eq!(db.write(stale), Outcome::Conflict);
    }
    assert_eq!(stored(&db), Some((2, body(r#"{"n":2}"#))));
    let overwrite = LocalEdit { id: local_id("x"), base: Some(8), checked: false, body: Some(body("{}")) };
    assert_eq!(db.write(Write::Local(overwrite)), Outcome::Local { revision: 9 });
    assert_eq!(db.write(local("x", Some(9), None)), Outcome::Local { revision: 0 });
    assert_eq!(stored(&db), None);
    assert_eq!(db.write(local("x", Some(9), Some("{}"))), Outcome::Local { revision: 10 });
    assert_eq!((db.counters().update_seq, db.feed()), (seq(0), vec![]), "never in the feed");
}

#[test]
fn local_edits_of_one_commit_see_each_other() {
    let db = Db::new();
    let outcomes = db.request(vec![
        local("x", None, Some("{}")),
        local("x", None, Some("{}")),
        local("x", Some(1), None),
        local("x", Some(1), None),
        local("x", None, Some(r#"{"n":3}"#)),
    ]);
    let revision = |revision| Outcome::Local { revision };
    assert_eq!(outcomes.outcomes, [revision(1), Outcome::Conflict, revision(0), Outcome::Missing, revision(1)]);
    assert_eq!(db.snapshot().local(&local_id("x")).unwrap(), Some((1, body(r#"{"n":3}"#))));
}
