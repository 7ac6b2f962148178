//! A disk whose writes and syncs fail: the commit did not happen, or nobody can tell; nothing is acknowledged, and what
//! was acknowledged stays readable. Where the log cannot be used, commits go to LMDB by themselves: the tests that fail
//! LMDB's writes begin so.

use serde_json::json;

use seqtide_tests::{Database, Server};

use crate::faults::{Disk, Fault, PLENTY};
use crate::load::{assert_clean, write_despite};
use seqtide_tests::http::SOON;
use tokio::time::Instant;

async fn with_a_document(server: &Server) -> Database {
    let database = Database::create(server, "db").await;
    database.put("before", &json!({})).await;
    database
}

/// The same, and its log takes the next commit.
async fn with_a_log(server: &Server) -> Database {
    let database = with_a_document(server).await;
    let log = server.data_dir().join("databases/db/log-0");
    let deadline = Instant::now() + SOON;
    // A commit by itself makes no log.
    for number in 0.. {
        if log.exists() {
            break;
        }
        assert!(Instant::now() < deadline, "no log is made");
        database.request("PUT", &format!("/_local/{number}")).json(&json!({})).expect(201).await;
    }
    database
}

/// Tries to write a document; the word of the error it gets.
async fn refused(database: &Database, id: &str) -> String {
    let answer = database.request("PUT", &format!("/{id}")).json(&json!({})).send().await;
    answer.assert_status(500);
    answer.json()["error"].as_str().expect("a word").to_owned()
}

/// The disk works again: so does the database, without what failed.
async fn assert_whole(mut server: Server, database: Database, failed: &[&str]) {
    let next = write_despite(&database, "/after", 500).await.seq();
    assert_eq!(next, 2, "nothing else was written");
    for id in failed {
        database.get(&format!("/{id}")).expect(404).await;
    }
    server.stop();
    assert_clean(&server);
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["doc_count"], json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_cannot_be_synced_did_not_happen() {
    for durability in ["full", "relaxed"] {
        let disk = Disk::with_room(PLENTY);
        disk.set_fault(Fault::LogSyncs, true);
        let server = disk.launch().arg(format!("--durability={durability}")).start();
        let database = with_a_document(&server).await;
        disk.set_fault(Fault::Syncs, true);
        for id in ["one", "two"] {
            assert_eq!(refused(&database, id).await, "disk_failed");
            database.get("/before").expect(200).await;
            database.get(&format!("/{id}")).expect(404).await;
        }
        disk.set_fault(Fault::Syncs, false);
        assert_whole(server, database, &["one", "two"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_meta_page_that_failed_is_put_back_and_the_commit_did_not_happen() {
    let disk = Disk::with_room(PLENTY);
    disk.set_fault(Fault::LogSyncs, true);
    let server = disk.launch().start();
    let database = with_a_document(&server).await;
    let mut feed = database.get("/_changes?feed=continuous&since=0&heartbeat=100").open().await;
    disk.set_fault(Fault::SyncedWrites, true);
    for id in ["one", "two"] {
        assert_eq!(refused(&database, id).await, "disk_failed");
        database.get("/before").expect(200).await;
    }
    disk.set_fault(Fault::SyncedWrites, false);
    assert_eq!(database.put("again", &json!({})).await.seq(), 2, "writing goes on at once, where it stood");
    let given = feed.until(|text| text.contains("\"again\"")).await;
    assert!(!given.contains("\"one\"") && !given.contains("\"two\""), "{given}");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_undoing_fails_too_the_outcome_is_unknown_and_nothing_is_written_until_it_is_undone() {
    let disk = Disk::with_room(PLENTY);
    disk.set_fault(Fault::LogSyncs, true);
    let server = disk.launch().start();
    let database = with_a_document(&server).await;
    disk.fail_from_the_next_synced_write();
    assert_eq!(refused(&database, "one").await, "outcome_unknown");
    disk.set_fault(Fault::SyncedWrites, false);
    for id in ["two", "three"] {
        assert_eq!(refused(&database, id).await, "disk_failed");
        database.get("/before").expect(200).await;
        database.get("/one").expect(404).await;
    }
    disk.set_fault(Fault::Syncs, false);
    assert_whole(server, database, &["one", "two", "three"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_meta_pages_cannot_be_put_back_is_closed_until_they_can() {
    let disk = Disk::with_room(PLENTY);
    disk.set_fault(Fault::LogSyncs, true);
    let server = disk.launch().start();
    let database = with_a_document(&server).await;
    disk.set_fault(Fault::SyncedWrites, true);
    disk.set_fault(Fault::MetaPutBack, true);
    assert_eq!(refused(&database, "one").await, "outcome_unknown");
    let answer = database.get("/before").send().await;
    answer.assert_status(500);
    assert_eq!(answer.json()["error"], json!("disk_failed"));
    disk.set_fault(Fault::SyncedWrites, false);
    disk.set_fault(Fault::MetaPutBack, false);
    // Reading alone opens it again.
    database.get("/before").expect(200).await;
    database.get("/one").expect(404).await;
    assert_whole(server, database, &["one"]).await;
}

/// LMDB takes its place at once, and passes the record over.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_the_log_that_cannot_be_synced_did_not_happen_and_writing_goes_on() {
    let disk = Disk::with_room(PLENTY);
    let mut server = disk.launch().start();
    let database = with_a_log(&server).await;
    disk.set_fault(Fault::LogSyncs, true);
    assert_eq!(refused(&database, "one").await, "disk_failed");
    database.get("/one").expect(404).await;
    assert_eq!(database.put("two", &json!({})).await.seq(), 2);
    disk.set_fault(Fault::LogSyncs, false);
    database.put("three", &json!({})).await;
    server.kill();
    assert_clean(&server);
    server.restart_on_same_port_and_data();
    database.get("/one").expect(404).await;
    assert_eq!(database.info().await["doc_count"], json!(3));
}

/// Nothing can be synced any more: only a power cut could bring the record back, until LMDB has passed it over.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_the_log_that_cannot_be_undone_is_unknown_and_nothing_is_written_until_it_is() {
    let disk = Disk::with_room(PLENTY);
    let server = disk.launch().start();
    let database = with_a_log(&server).await;
    disk.set_fault(Fault::Syncs, true);
    for (id, error) in [("one", "outcome_unknown"), ("two", "disk_failed"), ("three", "disk_failed")] {
        assert_eq!(refused(&database, id).await, error);
        database.get("/before").expect(200).await;
        database.get(&format!("/{id}")).expect(404).await;
    }
    disk.set_fault(Fault::Syncs, false);
    assert_whole(server, database, &["one", "two", "three"]).await;
}

/// What the log has taken is acknowledged, read and kept; what comes after LMDB has failed is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_lmdb_fails_under_keeps_what_was_acknowledged_and_refuses_the_rest() {
    let disk = Disk::with_room(PLENTY);
    let mut server = disk.launch().start();
    let database = with_a_document(&server).await;
    disk.fail_lmdb_under(&database, "PUT", "/d0", &json!({})).await;
    let deadline = Instant::now() + SOON;
    let mut acknowledged = vec!["d0".to_owned()];
    loop {
        let id = format!("d{}", acknowledged.len());
        let answer = database.request("PUT", &format!("/{id}")).json(&json!({})).send().await;
        if answer.status != 201 {
            assert_eq!(answer.json()["error"], json!("disk_failed"), "the write was not begun");
            break;
        }
        acknowledged.push(id);
        assert!(Instant::now() < deadline, "LMDB's failure is never told of");
    }
    for id in &acknowledged {
        database.get(&format!("/{id}")).expect(200).await;
    }
    server.kill();
    disk.set_fault(Fault::SyncedWrites, false);
    assert_clean(&server);
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["doc_count"], json!(1 + acknowledged.len()));
    database.put("after", &json!({})).await;
}
