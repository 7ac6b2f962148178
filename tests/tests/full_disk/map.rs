//! A database as large as it may be.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use seqtide_tests::http::SOON;
use seqtide_tests::{Database, Server};

use crate::load::{Load, Log, Written, assert_clean, assert_holds};

const MAP_BYTES_MAX: u64 = 6 << 20;

fn launch() -> Server {
    Server::launch().arg("--storage-map-bytes=1048576").arg(format!("--storage-map-bytes-max={MAP_BYTES_MAX}")).start()
}

/// Deletes documents that are there; each deletion succeeds.
async fn delete(database: &Database, ids: &[(String, String)]) -> Log {
    let mut log = Log::default();
    for (id, rev) in ids {
        let answer = database.request("DELETE", &format!("/{id}?rev={rev}")).expect(200).await;
        log.written.insert(answer.seq(), Written { id: id.clone(), rev: answer.rev(), deleted: true });
    }
    log
}

async fn live_documents(database: &Database) -> Vec<(String, String)> {
    let all = database.get("/_all_docs").expect(200).await.json();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let rows = all["rows"].as_array().expect("rows").iter();
    rows.map(|row| (text(&row["id"]), text(&row["value"]["rev"]))).collect()
}

/// An index has rows to write, and to remove, in the same commits.
async fn index(database: &Database) {
    database.request("PUT", "/_feed_index").json(&json!({ "fields": ["_id", "pad"] })).expect(202).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_makes_room_in_a_full_database_under_load() {
    let mut server = launch();
    let database = Database::create(&server, "db").await;
    index(&database).await;
    let mut load = Load::start(&server, &database, 0);
    let mut deleted = Log::default();
    for _ in 0..2 {
        load.until_full().await;
        let writes = load.writes();
        let documents = live_documents(&database).await;
        // The readers read the newest.
        let oldest = &documents[..documents.len() / 2];
        deleted.written.extend(delete(&database, oldest).await.written);
        load.until_written_since(writes).await;
    }
    let mut log = load.stop().await;
    let expected = format!("it may take {MAP_BYTES_MAX} bytes (`storage.map_bytes_max`)");
    assert_eq!(log.reasons.len(), 1, "{:?}", log.reasons);
    assert!(log.reasons.iter().all(|reason| reason.contains(&expected)), "{:?}", log.reasons);
    log.written.extend(deleted.written);
    load.assert_feeds_gave(&log).await;
    assert_holds(&database, &log).await;
    let file = server.data_dir().join("databases/db/data.mdb").metadata().expect("a database").len();
    assert!(file <= MAP_BYTES_MAX, "{file} bytes");
    server.stop();
    assert_clean(&server);
}

/// However often it is filled to the brim, whatever is deleted fits, and comes back as room.
#[tokio::test(flavor = "multi_thread")]
async fn the_reserve_is_not_used_up() {
    let mut server = launch();
    let database = Database::create(&server, "db").await;
    index(&database).await;
    let mut made = 0;
    for round in 0..6 {
        for size in [100_000, 3_000, 100, 1] {
            made += fill(&database, &format!("{round}-{size}"), size).await;
        }
        let documents = live_documents(&database).await;
        let (few, many): (Vec<_>, Vec<_>) = documents.into_iter().partition(|(id, _)| id.contains("-100000-"));
        delete(&database, &few).await;
        if round % 2 == 1 {
            let deletions: Vec<Value> =
                many.iter().map(|(id, rev)| json!({ "_id": id, "_rev": rev, "_deleted": true })).collect();
            for deletions in deletions.chunks(40) {
                let results = database.bulk(deletions).await;
                let failed: Vec<&Value> =
                    results.as_array().expect("results").iter().filter(|one| one["ok"] != json!(true)).collect();
                assert!(failed.is_empty(), "{failed:?}");
            }
            assert_eq!(live_documents(&database).await, []);
        }
        wait_for_room(&database, round).await;
    }
    assert!(made > 50, "{made} documents");
    server.kill();
    assert_clean(&server);
}

/// Writes documents of a size until there is no room for another; how many.
async fn fill(database: &Database, name: &str, size: usize) -> usize {
    let mut made = 0;
    loop {
        let docs: Vec<Value> =
            (0..5).map(|n| json!({ "_id": format!("{name}-{made}-{n}"), "pad": "x".repeat(size) })).collect();
        let answer = database.post("/_bulk_docs").json(&json!({ "docs": docs })).send().await;
        if answer.status != 201 {
            crate::load::reason(&answer);
            return made;
        }
        made += docs.len();
        // Small ones would take long to fill it, and prove no more.
        if made >= 1000 {
            return made;
        }
    }
}

async fn wait_for_room(database: &Database, round: usize) {
    let deadline = Instant::now() + SOON;
    let mut reasons = BTreeSet::new();
    loop {
        let answer =
            database.request("PUT", &format!("/room-{round}")).json(&json!({ "pad": "x".repeat(5_000) })).send().await;
        if answer.status == 201 {
            return;
        }
        reasons.insert(crate::load::reason(&answer));
        assert!(Instant::now() < deadline, "no room came: {reasons:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
