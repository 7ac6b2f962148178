//! Bodies that no leaf needs are freed, those of leaves never, and the counters know how many bytes there are.

use seqtide_storage::model::body_place::BodyPlace;
use seqtide_storage::{Counters, PageLimits, ReclaimPolicy, Reclaimed};

use crate::db::{Db, NO_LIMITS, body, create, delete, push, push_deleted, rev, update};

/// Sweeps once through; gives the bytes freed.
fn sweep(db: &Db, rows_max: usize) -> u64 {
    let mut bytes = 0;
    loop {
        let slice = db.reclaim(rows_max);
        bytes += slice.bytes;
        if slice.swept {
            return bytes;
        }
    }
}

/// Bytes of the bodies of all leaves, all of which must be there.
fn leaf_bytes(db: &Db) -> u64 {
    let snapshot = db.snapshot();
    let mut bytes = 0;
    for change in db.feed() {
        for leaf in snapshot.tree(&change.id).unwrap().unwrap().tree.leaves() {
            let stored = snapshot.body(leaf.body).unwrap().expect("a leaf has its body");
            assert!(leaf.body == BodyPlace::Empty || stored.as_bytes().len() as u64 == leaf.body.bytes());
            bytes += leaf.body.bytes();
        }
    }
    bytes
}

fn json(n: usize) -> String {
    format!(r#"{{"n":{n},"pad":"{}"}}"#, "x".repeat(n % 50))
}

/// Every way in which a body becomes garbage.
fn wasteful() -> Db {
    let db = Db::new();
    let mut last = db.rev(create("edited", &json(0)));
    for n in 1..40 {
        last = db.rev(update("edited", &last, &json(n)));
    }
    let gone = db.rev(create("gone", &json(45)));
    db.rev(delete("gone", &gone));
    db.request(vec![push("in one request", 1, &["a"], &json(1)), push("in one request", 2, &["b", "a"], &json(2))]);
    db.commit(&[
        vec![push("in one commit", 1, &["a"], &json(3))],
        vec![push("in one commit", 2, &["b", "a"], &json(4))],
    ]);
    db.request(vec![push("conflict", 2, &["b", "a"], &json(5)), push("conflict", 2, &["c", "a"], &json(6))]);
    db.rev(delete("conflict", &rev("2-b")));
    db.request(vec![push("joined", 1, &["a"], &json(7)), push("joined", 3, &["c"], &json(8))]);
    db.write(push("joined", 4, &["d", "c", "b", "a"], "{}"));
    db
}

#[test]
fn a_sweep_frees_all_garbage_and_no_leafs_body() {
    for rows_max in [1, 3, 1000] {
        let db = wasteful();
        let before = db.counters();
        assert_eq!(before.body_bytes, leaf_bytes(&db));
        let feed = db.feed();
        assert!(before.garbage_bytes > 0);
        assert_eq!(sweep(&db, rows_max), before.garbage_bytes, "as many bytes as were counted");
        assert_eq!(db.counters(), Counters { garbage_bytes: 0, ..before });
        assert_eq!(leaf_bytes(&db), before.body_bytes);
        assert_eq!(db.feed(), feed);
        assert_eq!(sweep(&db, rows_max), 0);
    }
}

/// Whoever replicates may name a revision with two parents. The first stands: what was built on it, and what was not,
/// stays.
#[test]
fn a_revision_that_is_named_with_two_parents_takes_no_leafs_body() {
    let db = Db::new();
    db.write(push("d", 1, &["b1"], &json(7)));
    db.write(push_deleted("d", 4, &["b4", "b3", "b2", "a1"]));
    db.write(push_deleted("d", 3, &["a3", "b2", "b1"]));
    sweep(&db, 1000);
    db.write(push_deleted("d", 9, &["z9", "z8"]));
    assert_eq!(db.tree("d").winner().unwrap().rev, rev("1-b1"));
    assert_eq!(leaf_bytes(&db), db.counters().body_bytes);
}

#[test]
fn a_superseded_body_is_readable_until_a_sweep_passes_it() {
    let db = Db::new();
    let first = db.rev(create("a", r#"{"n":1}"#));
    db.rev(update("a", &first, r#"{"n":2}"#));
    let old = db.tree("a").leaves()[0].ancestors.recent.get(0).unwrap().body;
    assert_eq!(db.body_at(old), Some(body(r#"{"n":1}"#)));
    assert_eq!(db.reclaim(1), Reclaimed { examined: 1, bytes: 7, swept: false });
    assert_eq!(db.body_at(old), None);
}

#[test]
fn slices_go_on_where_the_last_one_ended_and_take_at_least_one_row() {
    let db = Db::new();
    for id in ["a", "b"] {
        let first = db.rev(create(id, r#"{"n":1}"#));
        db.rev(update(id, &first, r#"{"n":2}"#));
    }
    let slices = [0; 4].map(|rows_max| db.reclaim(rows_max));
    let slice = |bytes| Reclaimed { examined: 1, bytes, swept: false };
    let nothing_left = Reclaimed { examined: 0, bytes: 0, swept: true };
    assert_eq!(slices, [slice(7), slice(0), slice(7), nothing_left]);
}

/// A slice of large bodies took as long as it took to read all of them.
#[test]
fn a_slice_ends_with_the_bytes_it_may_read() {
    let db = Db::new();
    let large = format!(r#"{{"pad":"{}"}}"#, "x".repeat(1000));
    let mut last = db.rev(create("a", &large));
    for _ in 0..9 {
        last = db.rev(update("a", &last, &large));
    }
    let limits = PageLimits { bytes_max: 3000, ..NO_LIMITS };
    let examined: Vec<u64> = (0..4).map(|_| db.store.reclaim(limits).unwrap().examined).collect();
    assert_eq!(examined, [3, 3, 3, 0]);
}

#[test]
fn a_sweep_goes_on_among_writes() {
    let db = wasteful();
    let mut freed = 0;
    let mut last = db.rev(create("z", &json(9)));
    for n in 10..60 {
        freed += db.reclaim(2).bytes;
        last = db.rev(update("z", &last, &json(n)));
    }
    assert!(freed > 0);
    sweep(&db, 1000);
    sweep(&db, 1000);
    assert_eq!((db.counters().garbage_bytes, db.counters().body_bytes), (0, leaf_bytes(&db)));
}

#[test]
fn reclaiming_is_due_by_share_above_a_floor_and_never_at_a_hundred_percent() {
    let due = |garbage_percent, floor_bytes, body_bytes, garbage_bytes| {
        let counters = Counters { body_bytes, garbage_bytes, ..Db::new().counters() };
        ReclaimPolicy { garbage_percent, floor_bytes }.due(&counters)
    };
    assert!(due(50, 10, 100, 100));
    assert!(!due(50, 10, 101, 100), "under the share");
    assert!(!due(50, 100, 100, 100), "not above the floor");
    assert!(due(0, 0, 100, 1) && !due(0, 0, 100, 0));
    assert!(!due(100, 0, 0, 100) && !due(255, 0, 0, 100), "not even when all is garbage");
    assert!(due(99, 0, 0, u64::MAX) && !due(50, 0, u64::MAX, 100));
}
