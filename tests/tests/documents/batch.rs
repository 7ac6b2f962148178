//! `batch=ok`: a write that nobody waits for.

use serde_json::json;

use super::fresh;
use seqtide_tests::Database;

/// Writes are made in the order they are queued: behind this one, those before it are made.
async fn flush(database: &Database) {
    database.post("").json(&json!({ "_id": "flush" })).expect(201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_write_is_accepted_without_a_revision_and_then_made() {
    let (_server, database) = fresh().await;
    let rev = database.put("old", &json!({ "n": 1 })).await.rev();
    let rev_of_copied = database.put("copied", &json!({ "n": 2 })).await.rev();
    let accepted = [
        ("put", database.request("PUT", "/put?batch=ok").json(&json!({ "n": 3 }))),
        ("post", database.post("?batch=ok").json(&json!({ "_id": "post" }))),
        ("old", database.request("DELETE", &format!("/old?batch=ok&rev={rev}"))),
        ("copy", database.request("COPY", "/copied?batch=ok").header("destination", "copy")),
        ("_local/l", database.request("PUT", "/_local/l?batch=ok").json(&json!({ "n": 4 }))),
    ];
    for (id, request) in accepted {
        let answer = request.expect(202).await;
        assert_eq!(answer.text(), format!("{{\"ok\":true,\"id\":\"{id}\"}}\n"));
        assert_eq!((answer.header("etag"), answer.header("seqtide-seq")), (None, None), "{id}");
    }
    flush(&database).await;
    assert_eq!(database.get("/put").expect(200).await.json()["n"], json!(3));
    database.get("/post").expect(200).await;
    database.get("/old").expect(404).await;
    assert_eq!(database.get("/copy").expect(200).await.json()["n"], json!(2));
    assert_eq!(database.get("/copied").expect(200).await.json()["_rev"], json!(rev_of_copied));
    assert_eq!(database.get("/_local/l").expect(200).await.json()["_rev"], json!("0-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_is_there_after_an_orderly_end() {
    let (mut server, database) = fresh().await;
    for n in 0..100 {
        database.request("PUT", &format!("/d{n}?batch=ok")).json(&json!({ "n": n })).expect(202).await;
    }
    server.stop();
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["doc_count"], json!(100));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_is_counted_and_changes_nothing() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({ "n": 1 })).await.rev();
    database.request("PUT", "/a?batch=ok").json(&json!({ "n": 2 })).expect(202).await;
    flush(&database).await;
    assert_eq!(database.get("/a").expect(200).await.json(), json!({ "_id": "a", "_rev": rev, "n": 1 }));
    assert_eq!(database.api.metric("seqtide_unattended_writes_failed_total").await, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_said_at_once_is_said() {
    let (_server, database) = fresh().await;
    let put = async |body: &'static str| database.request("PUT", "/a?batch=ok").body(body).send().await;
    put("{").await.assert_error(400, "bad_request", "invalid UTF-8 JSON");
    put("{\"_x\":1}").await.assert_error(400, "doc_validation", "Bad special document member: _x");
    let missing = database.request("DELETE", "/nope?batch=ok").send().await;
    missing.assert_error(404, "not_found", "missing");
    database.request("PUT", "/a?batch=yes").json(&json!({})).expect(201).await;
}
