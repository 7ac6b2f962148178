//! Long histories: kept apart from the head, whole when asked for, cut to the limit.

use seqtide_storage::codec::head::{self, DocHead};
use seqtide_storage::json::revision_hash;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::rev_tree::{Found, Leaf, Presence};
use seqtide_storage::{Outcome, Write};

use crate::db::{Db, body, create, id, leaves, line, push, rev, update};

/// A request that updates a document, and the revision it makes.
fn next_edit(doc: &str, parent: &RevId, n: usize) -> (Vec<Write>, RevId) {
    let json = format!(r#"{{"n":{n}}}"#);
    let hash = revision_hash(&body(&json), Some(parent), false);
    (vec![update(doc, parent, &json)], RevId::new(parent.generation + 1, hash))
}

/// Edits a document until it has `revs` more revisions, so many in each commit.
fn edit_on(db: &Db, doc: &str, revs: &mut Vec<RevId>, more: usize, a_commit: usize) {
    let mut requests = Vec::new();
    for n in 1..=more {
        let (request, rev) = next_edit(doc, revs.last().unwrap(), revs.len());
        requests.push(request);
        revs.push(rev);
        if n % a_commit == 0 || n == more {
            for request in db.commit(&std::mem::take(&mut requests)).requests {
                assert!(matches!(request.outcomes[..], [Outcome::Written { .. }]), "{request:?}");
            }
        }
    }
}

/// Makes a document and edits it; gives its revisions, oldest first.
fn edited(db: &Db, doc: &str, revs: usize, a_commit: usize) -> Vec<RevId> {
    let mut made = vec![db.rev(create(doc, "{}"))];
    edit_on(db, doc, &mut made, revs - 1, a_commit);
    made
}

fn hashes_down_from(revs: &[RevId]) -> Vec<String> {
    revs.iter().rev().map(|rev| rev.hash.to_string()).collect()
}

fn head_bytes(db: &Db, doc: &str) -> usize {
    let found = db.snapshot().tree(&id(doc)).unwrap().unwrap();
    let next_chunk = found.tree.leaves().iter().flat_map(|leaf| leaf.ancestors.chunks.iter()).max();
    let next_chunk = next_chunk.map_or(0, |chunk| chunk + 1);
    head::encode(&DocHead { seq: found.seq, tree: found.tree, next_chunk }).len()
}

/// The document's one branch holds just these revisions, oldest first.
fn assert_branch(db: &Db, doc: &str, revs: &[RevId]) {
    let tree = db.whole_tree(doc);
    let [leaf] = tree.leaves() else { panic!("{:?}", leaves(&tree)) };
    let (newest, older) = revs.split_last().unwrap();
    assert_eq!((&leaf.rev, line(leaf)), (newest, hashes_down_from(older)));
}

/// It was looked for among what is at hand, and written once more.
#[test]
fn an_edit_whose_revision_lies_in_history_is_a_conflict() {
    let db = Db::new();
    db.write(push("a", 2, &["b", "a"], "{}"));
    let (edit, made) = next_edit("a", &rev("2-b"), 1);
    let line: Vec<String> = (4..=40).rev().map(|n| format!("r{n}")).chain([made.hash.to_string()]).collect();
    db.write(push("a", 40, &line.iter().map(String::as_str).collect::<Vec<_>>(), "{}"));
    assert_eq!(db.tree("a").find(&made), Presence::HistoryNeeded);
    assert_eq!(db.request(edit).outcomes, [Outcome::Conflict]);
    assert_eq!(leaves(&db.tree("a")), ["40-r40", "2-b"]);
}

#[test]
fn thousands_of_edits_keep_the_limit_and_the_head_small() {
    let db = Db::new();
    let mut revs = edited(&db, "a", 1, 1);
    for n in 1..2200 {
        edit_on(&db, "a", &mut revs, 1, 1);
        let bytes = head_bytes(&db, "a");
        assert!(bytes < 1000, "{bytes} bytes at {n}");
        if n % 97 == 0 || n > 2190 {
            assert_branch(&db, "a", &revs[revs.len().saturating_sub(1000)..]);
        }
    }
}

#[test]
fn history_is_whole_however_edits_are_gathered_into_commits() {
    for (limit, a_commit) in [(1000, 1), (1000, 33), (1000, 300), (40, 7), (33, 50), (10, 3), (2, 4), (1, 2)] {
        let db = Db::with_revs_limit(limit);
        let revs = edited(&db, "a", 420, a_commit);
        assert_branch(&db, "a", &revs[revs.len().saturating_sub(limit as usize)..]);
    }
}

#[test]
fn ancestors_in_chunks_are_found_once_history_is_at_hand() {
    let db = Db::new();
    let revs = edited(&db, "a", 100, 10);
    assert_eq!(db.tree("a").find(&revs[3]), Presence::HistoryNeeded);
    assert!(matches!(db.whole_tree("a").find(&revs[3]), Presence::Present { .. }));
    let (tree, sought) = (db.tree("a"), &revs[3..4]);
    let load = |leaf: &Leaf| db.ancestors("a", leaf);
    let mut told = Vec::new();
    let missing =
        tree.look_up(sought, load, |_, Found { leaf, deleted, body }| told.push((leaf, deleted, body))).unwrap();
    assert_eq!((missing.len(), told.len()), (0, 1));
    let (leaf, deleted, body) = told[0];
    assert_eq!(Presence::Present { deleted, body }, db.whole_tree("a").find(&revs[3]));
    assert_eq!(Some(leaf), tree.winner());
    let mut under = Vec::new();
    let is_under = |leaf, _: &[&RevId]| {
        under.push(leaf);
        Ok(())
    };
    tree.leaves_under(sought, load, is_under).unwrap();
    assert_eq!(under, [leaf]);
}

#[test]
fn a_branch_off_a_deep_ancestor_joins_the_tree() {
    let db = Db::new();
    let revs = edited(&db, "a", 200, 10);
    let parent = revs[20].hash.to_string();
    assert!(matches!(db.write(push("a", 22, &["x", &parent], "{}")), Outcome::Written { .. }));
    let tree = db.whole_tree("a");
    assert_eq!(leaves(&tree), [revs[199].to_string(), "22-x".to_owned()]);
    assert_eq!(line(&tree.leaves()[0]), hashes_down_from(&revs[..199]));
    assert_eq!(line(&tree.leaves()[1]), hashes_down_from(&revs[..21]));
    assert_eq!(db.write(push("a", 21, &[&parent], "{}")), Outcome::Known { rev: revs[20].clone() });
    let mut losing = rev("22-x");
    let mut losing_hashes = hashes_down_from(&revs[..21]);
    for n in 0..60 {
        losing_hashes.insert(0, losing.hash.to_string());
        losing = db.rev(update("a", &losing, &format!(r#"{{"n":{n}}}"#)));
    }
    let tree = db.whole_tree("a");
    assert_eq!(tree.leaves()[1].rev, losing);
    assert_eq!(line(&tree.leaves()[1]), losing_hashes);
    assert_eq!(line(&tree.leaves()[0]), hashes_down_from(&revs[..199]), "the other branch is as it was");
}

#[test]
fn a_long_path_that_extends_a_leaf_is_kept_whole() {
    let db = Db::new();
    let revs = edited(&db, "a", 100, 50);
    let names: Vec<String> = (0..150).map(|n| format!("r{n}")).collect();
    let mut hashes: Vec<&str> = names.iter().map(String::as_str).collect();
    let leaf = revs[99].hash.to_string();
    hashes.push(&leaf);
    db.write(push("a", 250, &hashes, "{}"));
    let tree = db.whole_tree("a");
    let expected: Vec<String> =
        hashes[1..].iter().map(|hash| (*hash).to_owned()).chain(hashes_down_from(&revs[..99])).collect();
    assert_eq!((leaves(&tree), line(&tree.leaves()[0])), (vec!["250-r0".to_owned()], expected));
    assert!(head_bytes(&db, "a") < 1000);
}

#[test]
fn without_any_ancestors_a_branch_has_its_leaf() {
    let db = Db::new();
    db.write(Write::RevsLimit(0));
    assert_eq!(db.snapshot().revs_limit().unwrap(), 1);
    let revs = edited(&db, "a", 3, 10);
    assert_branch(&db, "a", &revs[2..]);
}

#[test]
fn a_lowered_limit_cuts_a_branch_at_its_next_edit_and_a_raised_one_lets_it_grow() {
    let db = Db::new();
    let mut revs = edited(&db, "a", 120, 10);
    db.write(Write::RevsLimit(5));
    assert_branch(&db, "a", &revs);
    revs.push(db.rev(update("a", &revs[119], "{}")));
    assert_branch(&db, "a", &revs[116..]);
    let mut revs = revs.split_off(116);
    let mut requests = vec![vec![Write::RevsLimit(1000)]];
    for n in 0..70 {
        let (request, rev) = next_edit("a", revs.last().unwrap(), n);
        requests.push(request);
        revs.push(rev);
    }
    db.commit(&requests);
    assert_branch(&db, "a", &revs);
    let db = db.reopen();
    assert_branch(&db, "a", &revs);
}

#[test]
fn a_known_deep_path_changes_nothing() {
    let db = Db::new();
    let revs = edited(&db, "a", 300, 20);
    let hashes = hashes_down_from(&revs);
    let all: Vec<&str> = hashes.iter().map(String::as_str).collect();
    let before = db.counters();
    for start in [300, 290, 150, 1] {
        let known = push("a", start as u64, &all[300 - start..], r#"{"other":true}"#);
        assert!(matches!(db.write(known), Outcome::Known { .. }), "{start}");
    }
    assert_eq!(db.counters(), before);
}
