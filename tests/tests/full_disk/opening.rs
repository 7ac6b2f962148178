//! Databases that are opened, checked and closed while their disk takes or gives less than it should.

use rustix::io::Errno;
use serde_json::{Value, json};
use tokio::time::Instant;

use seqtide_tests::http::SOON;
use seqtide_tests::{Api, Database, Server};

use crate::faults::{Disk, Fault, PLENTY};
use crate::load::{assert_clean, write_despite};

const DOCUMENTS: usize = 20;

/// What a small catalogue takes, and LMDB's commits do not fit into.
const LITTLE_ROOM: i64 = 10_000;

/// A server that was killed while LMDB had nothing of its database's documents, which are larger than `LITTLE_ROOM`.
async fn killed_with_a_log(disk: &Disk) -> (Server, Database) {
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    let doc = |number| json!({ "_id": format!("d{number}"), "pad": "x".repeat(10_000) });
    let docs: Vec<_> = (0..DOCUMENTS).map(doc).collect();
    disk.fail_lmdb_under(&database, "POST", "/_bulk_docs", &json!({ "docs": docs })).await;
    server.kill();
    disk.set_fault(Fault::SyncedWrites, false);
    (server, database)
}

/// Of a database that counts on in a new incarnation, which could not be written when it was opened.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_opening_could_not_write_is_seen_as_soon_as_a_sweep_has_written_it() {
    let disk = Disk::with_room(PLENTY);
    let (server, _) = killed_with_a_log(&disk).await;
    let file = server.data_dir().join("catalogue.json");
    drop(server);
    let mut catalogue: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    catalogue["databases"]["db"]["incarnation"] = 3.into();
    std::fs::write(&file, catalogue.to_string()).unwrap();
    disk.set_room(LITTLE_ROOM);
    let mut server = disk.launch().arg("--durability=relaxed").start();
    let database = Database::at(&server, "db");
    let update_seq = async || database.info().await["update_seq"].as_u64().expect("a number");
    assert_eq!(update_seq().await, DOCUMENTS as u64);

    disk.set_room(PLENTY);
    let deadline = Instant::now() + SOON;
    while update_seq().await < 3 << 45 {
        assert!(Instant::now() < deadline, "{}", update_seq().await);
        database.request("POST", "/_compact").json(&json!({})).expect(202).await;
    }
    server.stop();
    assert_clean(&server);
}

async fn assert_holds_all(database: &Database) {
    for number in 0..DOCUMENTS {
        database.get(&format!("/d{number}")).expect(200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_on_which_no_log_is_wanted_any_more_is_read_and_refuses_writes() {
    let disk = Disk::with_room(PLENTY);
    let (server, _) = killed_with_a_log(&disk).await;
    drop(server);
    disk.set_room(LITTLE_ROOM);
    let mut server = disk.launch().arg("--durability=relaxed").start();
    let database = Database::at(&server, "db");
    assert_holds_all(&database).await;
    let answer = database.request("PUT", "/new").json(&json!({})).send().await;
    answer.assert_status(507);
    let reason = answer.json()["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.starts_with("no space left on the disk, nothing was written"), "{reason}");
    assert_holds_all(&database).await;
    disk.set_room(PLENTY);
    write_despite(&database, "/after", 507).await;
    server.stop();
    assert_clean(&server);
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["doc_count"], json!(DOCUMENTS + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_the_disk_does_not_give_is_a_damage_and_what_lmdb_has_is_read() {
    let disk = Disk::with_room(PLENTY);
    let (mut server, database) = killed_with_a_log(&disk).await;
    disk.set_fault(Fault::LogReads, true);
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["doc_count"], json!(0), "LMDB had none");
    let answer = database.request("PUT", "/new").json(&json!({})).send().await;
    answer.assert_status(500);
    let reason = answer.json()["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("log-0, byte ") && reason.contains("cannot be read: Input/output error"), "{reason}");
    server.stop();
    disk.set_fault(Fault::LogReads, false);
    server.restart_on_same_port_and_data();
    assert_holds_all(&database).await;
    database.put("after", &json!({})).await;
    server.stop();
    assert_clean(&server);
}

/// What an opening builds on must outlive a power cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_meta_pages_cannot_be_synced_is_opened_once_they_can() {
    let disk = Disk::with_room(PLENTY);
    let (mut server, database) = killed_with_a_log(&disk).await;
    disk.set_fault(Fault::SyncedWrites, true);
    server.restart_on_same_port_and_data();
    let answer = database.get("").send().await;
    answer.assert_status(500);
    assert_eq!(answer.json()["error"], json!("disk_failed"));
    disk.set_fault(Fault::SyncedWrites, false);
    assert_holds_all(&database).await;
    server.stop();
    assert_clean(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_may_not_be_written_to_is_checked_with_its_log() {
    let disk = Disk::with_room(PLENTY);
    let (server, _) = killed_with_a_log(&disk).await;
    for error in [Errno::ROFS, Errno::ACCESS] {
        let checked = disk.check_without_writing(error);
        let report = String::from_utf8_lossy(&checked.stdout);
        let documents = format!("db: ok ({DOCUMENTS} documents");
        assert!(checked.status.success() && report.contains(&documents), "{error}: {report}{checked:?}");
    }
    drop(server);
}

/// It is told without anybody writing, and an end with it is none that the next start takes for orderly.
#[tokio::test(flavor = "multi_thread")]
async fn that_lmdb_does_not_take_the_log_is_logged_once_and_counted_and_the_end_says_so() {
    let disk = Disk::with_room(PLENTY);
    let mut server = disk.launch().start();
    let database = Database::create(&server, "db").await;
    disk.fail_lmdb_under(&database, "PUT", "/one", &json!({})).await;
    let deadline = Instant::now() + SOON;
    while Api::new(&server).metric("seqtide_log_failures_total").await < Some(2) {
        assert!(Instant::now() < deadline, "it is never told: {}", server.stderr());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let says = "LMDB does not take what the log has";
    let logged = server.stderr_with(says).await;
    assert_eq!(logged.matches(says).count(), 1, "{logged}");
    server.terminate();
    assert_eq!(server.wait().code(), Some(1), "{}", server.stderr());
    assert!(server.stderr().contains("closed with its newest writes in the log alone"), "{}", server.stderr());
    let catalogue = std::fs::read_to_string(server.data_dir().join("catalogue.json")).expect("the catalogue");
    assert!(catalogue.contains("\"exact\": false") || !catalogue.contains("\"exact\""), "{catalogue}");
    disk.set_fault(Fault::SyncedWrites, false);
    assert_clean(&server);
    server.restart_on_same_port_and_data();
    database.get("/one").expect(200).await;
    server.stop();
}
