//! A map that is full grows by itself, whoever reads meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Direction, PageLimits, ReadChanges, StoreOptions};

use crate::db::{Db, create, everything};

const TINY: usize = 1 << 20;

fn tiny() -> Db {
    Db::with(StoreOptions { map_bytes: TINY, ..StoreOptions::default() })
}

fn big_json(n: usize) -> String {
    format!(r#"{{"n":{n},"pad":"{}"}}"#, "x".repeat(20_000))
}

/// Writes are in the log first: the map grows when LMDB gets their rows.
fn wait_for_map(db: &Db, bytes: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while db.store.gauge().map_bytes < bytes {
        assert!(Instant::now() < deadline, "{} bytes", db.store.gauge().map_bytes);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Follows the feed by pages until `stop` and its end; gives how many rows it saw.
fn follow(db: &Db, stop: &AtomicBool) -> usize {
    let (mut after, mut rows) = (Sequence::ZERO, 0);
    loop {
        let stopping = stop.load(Ordering::SeqCst);
        let limits = PageLimits { rows_max: 10, ..PageLimits::default() };
        let read = ReadChanges { after, limits, direction: Direction::Forward, ..everything() };
        let page = db.snapshot().changes(&read, &|_| true).unwrap();
        assert!(page.changes.iter().all(|change| change.body.is_some()));
        rows += page.changes.len();
        after = page.examined.unwrap_or(after);
        if stopping && page.complete {
            return rows;
        }
    }
}

#[test]
fn a_full_map_grows_while_readers_page_and_nothing_is_lost() {
    let (db, stop) = (tiny(), AtomicBool::new(false));
    thread::scope(|scope| {
        let readers = [(); 3].map(|()| scope.spawn(|| follow(&db, &stop)));
        for n in 0..40 {
            db.request((0..10).map(|k| create(&format!("{n}-{k}"), &big_json(n))).collect());
        }
        stop.store(true, Ordering::SeqCst);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 400);
        }
    });
    assert_eq!(db.counters().docs, 400);
    wait_for_map(&db, TINY + 1);
}

#[test]
fn one_batch_may_need_many_times_the_map() {
    let db = tiny();
    db.request((0..400).map(|n| create(&format!("{n}"), &big_json(n))).collect());
    assert_eq!(db.feed().len(), 400);
    wait_for_map(&db, 8 * TINY);
}

#[test]
fn a_grown_database_opens_with_the_small_map_it_began_with() {
    let db = tiny();
    db.request((0..100).map(|n| create(&format!("{n}"), &big_json(n))).collect());
    let db = db.reopen();
    assert_eq!(db.feed().len(), 100);
    db.rev(create("more", &big_json(0)));
    assert_eq!(db.counters().docs, 101);
}
