//! `_compact`: what no leaf needs is freed, and the database says while it goes on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{MISSING, fresh};
use seqtide_tests::Database;
use seqtide_tests::http::{Answer, Request};
use seqtide_tests::server::assert_clean;

/// Far longer than any sweep here takes.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bodies to look at: several slices of a sweep.
const DOCUMENTS: usize = 5_000;

fn compact(database: &Database) -> Request {
    database.post("/_compact").header("content-type", "application/json")
}

/// Asks for the database's information until it is so; `again` comes before each time.
async fn until(database: &Database, again: impl AsyncFn(), so: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        again().await;
        let info = database.info().await;
        if so(&info) {
            return info;
        }
        assert!(start.elapsed() < DEADLINE, "it never came to that: {info}");
    }
}

async fn until_compacted(database: &Database) -> Value {
    until(database, async || {}, |info| info["compact_running"] == json!(false)).await
}

fn assert_accepted(answer: &Answer) {
    answer.assert_status(202);
    assert_eq!(answer.text(), "{\"ok\":true}\n");
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn superseded_bodies_are_freed_and_the_rest_is_as_it_was() {
    let (server, database) = fresh().await;
    let first = database.put("a", &json!({ "n": 1 })).await.rev();
    database.put("a", &json!({ "_rev": first, "n": 2 })).await;
    database.put("b", &json!({ "n": 3 })).await;
    let (before, changes) = (database.info().await, database.changes("include_docs=true").await);
    assert_eq!((&before["sizes"]["active"], &before["compact_running"]), (&json!(21), &json!(false)));
    database.get(&format!("/a?rev={first}")).expect(200).await;
    assert_accepted(&compact(&database).send().await);
    let after = until_compacted(&database).await;
    assert_eq!((&after["sizes"]["active"], &after["sizes"]["external"]), (&json!(14), &json!(14)));
    assert_eq!((&after["update_seq"], database.changes("include_docs=true").await), (&before["update_seq"], changes));
    let (status, error, reason) = MISSING;
    database.get(&format!("/a?rev={first}")).send().await.assert_error(status, error, reason);
    assert_clean(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn compact_running_is_true_for_as_long_as_it_goes_on() {
    let (_server, database) = fresh().await;
    let docs = |revs: Option<&Value>| -> Vec<Value> {
        let doc = |n: usize| {
            let mut doc = json!({ "_id": format!("d{n}"), "n": n });
            if let Some(revs) = revs {
                doc["_rev"] = revs[n]["rev"].clone();
            }
            doc
        };
        (0..DOCUMENTS).map(doc).collect()
    };
    let written = database.bulk(&docs(None)).await;
    database.bulk(&docs(Some(&written))).await;
    // A sweep may be over before the answer to the next question: it is asked for anew until it has been seen.
    let ask = async || assert_accepted(&compact(&database).send().await);
    until(&database, ask, |info| info["compact_running"] == json!(true)).await;
    let info = until_compacted(&database).await;
    assert_eq!(info["sizes"]["active"], info["sizes"]["external"], "it has freed everything when it says so");
    assert_eq!(info["doc_count"], json!(DOCUMENTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_is_compacted_too() {
    let (_server, database) = fresh().await;
    assert_accepted(&compact(&database).body("{}").send().await);
    until_compacted(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    let (server, database) = fresh().await;
    let no_type = database.post("/_compact").send().await;
    no_type.assert_error(415, "bad_content_type", "Content-Type must be application/json");
    database.get("/_compact").send().await.assert_error(405, "method_not_allowed", "Only POST allowed");
    let missing = compact(&Database::at(&server, "nope")).send().await;
    missing.assert_error(404, "not_found", "Database does not exist.");
}
