//! Sequences by time, with a clock of the tests' own.

use std::cell::Cell;

use proptest::prelude::*;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Durability, Store, StoreOptions};

use crate::db::{Db, cases, create, small};

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn options() -> StoreOptions {
    StoreOptions { clock: || NOW.get(), ..small() }
}

/// Makes a document when the clock says so; everybody sees it at once.
fn write_at(store: &Store, secs: u64, number: usize) -> Sequence {
    write_from_to(store, secs, secs, number)
}

/// Makes a document in a commit that is begun in one second and seen in another.
fn write_from_to(store: &Store, begun: u64, seen: u64, number: usize) -> Sequence {
    NOW.set(begun);
    let seq = store.write(&[vec![create(&format!("d{number}"), "{}")].into()]).unwrap().counters.update_seq;
    NOW.set(seen);
    store.note_seen(seq);
    seq
}

fn behind(store: &Store, secs: u64) -> u64 {
    store.snapshot().unwrap().seq_before(secs).unwrap().version
}

fn since(store: &Store, version: u64) -> Option<u64> {
    store.snapshot().unwrap().secs_behind(Sequence::new(0, version)).unwrap()
}

fn rows(store: &Store) -> u64 {
    store.check().unwrap().times
}

#[test]
fn a_time_is_a_place_behind_which_lies_all_that_was_written_from_then_on() {
    let mut db = Db::with(options());
    assert_eq!((behind(&db.store, 5), since(&db.store, 0)), (0, None), "nothing was written");
    for (number, secs) in [100, 100, 101, 500, 500, 501].into_iter().enumerate() {
        write_at(&db.store, secs, number);
    }
    for newest in [6, 5] {
        // Between 101 and 500 nothing was written: what was before is not given to who asks for what came after.
        for (secs, place) in
            [(0, 0), (99, 0), (100, 0), (101, 2), (102, 3), (499, 3), (500, 3), (501, 5), (502, newest), (551, 6)]
        {
            assert_eq!(behind(&db.store, secs), place, "from {secs} on");
        }
        for (place, secs) in [(0, 100), (1, 100), (2, 101), (3, 500), (4, 500), (5, 501), (6, 501)] {
            assert_eq!(since(&db.store, place), Some(secs), "behind {place}");
        }
        // When the last of it came to be seen is known no more.
        NOW.set(550);
        db = db.reopen();
    }
}

#[test]
fn what_is_seen_in_a_later_second_than_it_was_begun_in_was_written_then() {
    for next in [None, Some(12), Some(15)] {
        let mut db = Db::with(options());
        for (number, secs) in [1, 9, 9].into_iter().enumerate() {
            write_at(&db.store, secs, number);
        }
        write_from_to(&db.store, 9, 12, 3);
        if let Some(secs) = next {
            write_at(&db.store, secs, 4);
        }
        for _ in 0..2 {
            assert_eq!(db.store.check().unwrap().problems, Vec::<String>::new());
            let places = [9, 10, 12].map(|secs| behind(&db.store, secs));
            assert!(places[0] <= 1 && places[1..].iter().all(|place| *place <= 3), "{next:?}: {places:?}");
            assert_eq!(since(&db.store, 0), Some(1));
            NOW.set(18);
            db = db.reopen();
        }
        assert_eq!(behind(&db.store, 20), if next.is_some() { 5 } else { 4 }, "{next:?}");
    }
}

#[test]
fn what_nobody_sees_yet_is_given_to_who_asks_for_any_time() {
    let db = Db::with(options());
    write_at(&db.store, 9, 0);
    NOW.set(9);
    db.store.write(&[vec![create("x", "{}")].into()]).unwrap();
    assert_eq!(behind(&db.store, 50), 1);
    NOW.set(40);
    db.store.note_seen(Sequence::new(0, 1));
    assert_eq!(behind(&db.store, 50), 1, "that was the one before");
    db.store.note_seen(Sequence::new(0, 2));
    assert_eq!((behind(&db.store, 40), behind(&db.store, 41)), (1, 2));
}

#[test]
fn what_was_seen_before_the_clock_was_set_back_is_not_taken_to_be_seen_when_it_is_opened() {
    let mut db = Db::with(options());
    write_from_to(&db.store, 100, 101, 0);
    NOW.set(50);
    db = db.reopen();
    assert_eq!(behind(&db.store, 101), 0);
    write_at(&db.store, 103, 1);
    assert_eq!(behind(&db.store, 101), 0);
}

#[test]
fn of_two_commits_that_nobody_sees_yet_both_are_given() {
    let db = Db::with(options());
    for (number, secs) in [(0, 9), (1, 12)] {
        NOW.set(secs);
        db.store.write(&[vec![create(&format!("d{number}"), "{}")].into()]).unwrap();
    }
    NOW.set(13);
    db.store.note_seen(Sequence::new(0, 2));
    assert_eq!(behind(&db.store, 13), 0);
    write_at(&db.store, 15, 2);
    assert_eq!((behind(&db.store, 13), behind(&db.store, 14)), (0, 2));
}

#[test]
fn a_clock_that_is_set_back_hides_nothing() {
    let db = Db::with(options());
    for (number, secs) in [1000, 1001, 400, 401, 1001, 1002].into_iter().enumerate() {
        write_at(&db.store, secs, number);
    }
    assert_eq!(rows(&db.store), 3, "seconds only rise");
    assert_eq!((behind(&db.store, 400), behind(&db.store, 1001), behind(&db.store, 1002)), (0, 1, 5));
}

#[test]
fn a_write_within_the_same_second_touches_no_more_than_one_did_before() {
    let db = Db::with(options());
    for number in 0..50 {
        write_at(&db.store, 7, number);
    }
    assert_eq!(rows(&db.store), 1);
}

#[test]
fn old_rows_are_thinned_out_and_what_is_left_is_a_thousandth_apart() {
    const END: usize = 6000;
    let db = Db::with(StoreOptions { durability: Durability::Relaxed, ..options() });
    for secs in 1..=END {
        write_at(&db.store, secs as u64, secs);
    }
    let rows = rows(&db.store) as usize;
    assert!((2000..4000).contains(&rows), "{rows} rows are left of {END}");
    for secs in (1..=END).step_by(37) {
        // All before the second were written one a second.
        let early = (secs - 1).checked_sub(behind(&db.store, secs as u64) as usize).expect("nothing is left out");
        assert!(early <= 1 + (END - secs) / 1000, "{early} seconds more than was asked for, {} ago", END - secs);
    }
    assert_eq!(db.store.check().unwrap().problems, Vec::<String>::new());
}

proptest! {
    #![proptest_config(cases(24))]
    #[test]
    fn nothing_written_at_a_time_or_after_is_ever_left_out(
        steps in prop::collection::vec((0u8..10, 0u64..4000, prop_oneof![4 => Just(0), 1 => 0u64..5]), 1..200),
        asked in prop::collection::vec(0u64..200_000, 20),
    ) {
        let mut db = Db::with(options());
        let (mut now, mut written) = (50_000, Vec::new());
        for (number, (kind, step, lasts)) in steps.into_iter().enumerate() {
            now = match kind {
                0 => now - step,
                1..4 => now + step,
                4..8 => now + step % 3,
                _ => now,
            };
            if kind == 9 {
                NOW.set(now);
                db = db.reopen();
            }
            written.push((now + lasts, write_from_to(&db.store, now, now + lasts, number)));
            now += lasts;
        }
        let snapshot = db.store.snapshot().unwrap();
        let moments = written.iter().flat_map(|(secs, _)| [secs - 1, *secs, secs + 1]).chain(asked);
        for secs in moments {
            let place = snapshot.seq_before(secs).unwrap();
            let left_out = written.iter().find(|(at, seq)| *at >= secs && *seq <= place);
            prop_assert_eq!(left_out, None, "from {} on, behind {:?}", secs, place);
        }
        drop(snapshot);
        prop_assert_eq!(db.store.check().unwrap().problems, Vec::<String>::new());
    }
}
