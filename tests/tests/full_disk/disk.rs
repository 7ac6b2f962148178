//! A full disk under load.

use std::fs;

use serde_json::json;
use tokio::time::Instant;

use seqtide_tests::Database;
use seqtide_tests::http::SOON;

use crate::faults::{Disk, PLENTY};
use crate::load::{Load, assert_clean, assert_holds, write_despite};

const ROOM: i64 = 2_000_000;
/// What the log took while there was [`ROOM`] needs at most so much in LMDB: twice its bytes, and each page anew. Until
/// it has it, nothing is written, for this disk does not tell how much is free.
const ROOM_FOR_THE_LOG: i64 = 4 * ROOM;

/// Waits until the disk is full, and until writes are made again when it is not.
async fn make_room(disk: &Disk, load: &Load, bytes: i64) {
    load.until_full().await;
    let writes = load.writes();
    disk.set_room(bytes);
    load.until_written_since(writes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_stops_and_goes_on_with_the_room_on_the_disk() {
    let disk = Disk::with_room(ROOM);
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    let mut load = Load::start(&server, &database, 0);
    make_room(&disk, &load, ROOM_FOR_THE_LOG).await;
    make_room(&disk, &load, PLENTY).await;
    let log = load.stop().await;
    for reason in &log.reasons {
        assert!(reason.starts_with("no space left on the disk, nothing was written: No space left"), "{reason}");
    }
    load.assert_feeds_gave(&log).await;
    assert_holds(&database, &log).await;
    server.stop();
    assert_clean(&server);
}

/// Without a log, as in relaxed durability, LMDB's write is the answer's.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_for_a_moment_is_not_taken_for_one_that_fails() {
    let disk = Disk::with_room(PLENTY);
    let mut server = disk.launch().arg("--durability=relaxed").start();
    let database = Database::create(&server, "db").await;
    database.put("before", &json!({})).await;
    disk.cut_next_write_of_tables();
    assert_eq!(database.put("large", &json!({ "pad": "x".repeat(200_000) })).await.seq(), 2);
    assert!(!disk.cuts_next_write_of_tables(), "nothing was cut short");
    server.stop();
    assert_clean(&server);
}

/// The log is then written as other files are: nobody who writes notices.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_has_no_direct_writes_has_a_log_all_the_same() {
    let disk = Disk::with_room(PLENTY);
    disk.refuse_direct_writes();
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    let log = server.data_dir().join("databases/db/log-0");
    let mut written = 0;
    // The first commits may be too far apart for a log.
    let deadline = Instant::now() + SOON;
    while written < 20 || disk.direct_writes_refused() == 0 {
        assert!(Instant::now() < deadline, "none was refused");
        database.put(&format!("d{written}"), &json!({ "logged": written })).await;
        written += 1;
    }
    database.put("last", &json!({ "logged": "last" })).await;
    assert_eq!(disk.direct_writes_refused(), 1, "a file of the log is not tried again");
    server.kill();
    let logged = fs::read(&log).expect("the log");
    let last = br#"{"logged":"last"}"#;
    assert!(logged.windows(last.len()).any(|bytes| bytes == last), "the log does not have the last write");
    assert_clean(&server);
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["doc_count"], json!(written + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_while_the_disk_is_full_loses_nothing() {
    let disk = Disk::with_room(ROOM);
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    let mut load = Load::start(&server, &database, 0);
    load.until_full().await;
    server.kill();
    assert_clean(&server);
    let log = load.stop().await;
    assert!(!log.written.is_empty() && !log.refused.is_empty());

    // It starts on the full disk, reads, and refuses.
    server.restart_on_same_port_and_data();
    assert_holds(&database, &log).await;
    disk.set_room(PLENTY);
    let next = write_despite(&database, "/next", 507).await.seq();
    assert!(log.written.keys().all(|seq| *seq < next));
    server.stop();
    assert_clean(&server);
}
