//! `_bulk_get`, as JSON.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fresh;
use seqtide_tests::Database;

async fn ask(database: &Database, query: &str, docs: Value) -> Value {
    let request = database.post(&format!("/_bulk_get{query}")).header("accept", "application/json");
    request.json(&json!({ "docs": docs })).expect(200).await.json()["results"].clone()
}

fn error(id: Value, rev: Value, error: &str, reason: &str) -> Value {
    json!([{ "error": { "id": id, "rev": rev, "error": error, "reason": reason } }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rev_gives_that_revision_and_none_gives_every_leaf() {
    let (_server, database) = fresh().await;
    let path = |ids: [&str; 2]| json!({ "start": 2, "ids": ids });
    database
        .push(&[
            json!({ "_id": "a", "_rev": "2-c", "_revisions": path(["c", "a"]), "w": "c" }),
            json!({ "_id": "a", "_rev": "2-b", "_revisions": path(["b", "a"]), "w": "b" }),
            json!({ "_id": "a", "_rev": "2-d", "_revisions": path(["d", "a"]), "_deleted": true }),
        ])
        .await;
    let results =
        ask(&database, "", json!([{ "id": "a", "rev": "2-b" }, { "id": "a" }, { "id": "a", "rev": "1-a" }])).await;
    let (b, c) = (json!({ "_id": "a", "_rev": "2-b", "w": "b" }), json!({ "_id": "a", "_rev": "2-c", "w": "c" }));
    let d = json!({ "_id": "a", "_rev": "2-d", "_deleted": true });
    assert_eq!(results[0], json!({ "id": "a", "docs": [{ "ok": b }] }));
    assert_eq!(results[1], json!({ "id": "a", "docs": [{ "ok": b }, { "ok": c }, { "ok": d }] }));
    assert_eq!(results[2]["docs"], error(json!("a"), json!("1-a"), "not_found", "missing"), "its body never came");
    let latest = ask(&database, "?latest=true&revs=true", json!([{ "id": "a", "rev": "1-a" }])).await;
    let revs: Vec<_> =
        latest[0]["docs"].as_array().expect("leaves").iter().map(|leaf| leaf["ok"]["_rev"].clone()).collect();
    assert_eq!(revs, [json!("2-b"), json!("2-c"), json!("2-d")]);
    assert_eq!(latest[0]["docs"][0]["ok"]["_revisions"], path(["b", "a"]));
}

/// The whole tree was read anew for each of them.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_leaves_of_one_document_are_read_one_by_one() {
    let leaves = 20_000;
    let (_server, database) = fresh().await;
    let revs: Vec<String> = (0..leaves).map(|at| format!("1-{at:05}")).collect();
    for some in revs.chunks(5_000) {
        database.push(&some.iter().map(|rev| json!({ "_id": "a", "_rev": rev })).collect::<Vec<_>>()).await;
    }
    let items = revs.iter().map(|rev| json!({ "id": "a", "rev": rev })).collect();
    let began = Instant::now();
    let results = ask(&database, "", items).await;
    let took = began.elapsed();
    let given = results.as_array().expect("a list").iter().map(|item| item["docs"][0]["ok"]["_rev"].clone());
    assert!(given.eq(revs.iter().map(|rev| json!(rev))));
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failing_item_says_why_in_its_place() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({})).await;
    database.request("PUT", "/_local/l").json(&json!({})).expect(201).await;
    let items = json!([
        { "id": "nope", "rev": "1-x" }, { "id": "nope" }, { "rev": "1-x" }, 5, { "id": "a", "rev": "bad" },
        { "id": "_bad" }, { "id": "_local/l" }, { "id": "a" }, ["a", null], { "id": null, "rev": "1-x" }
    ]);
    let results = ask(&database, "", items).await;
    let docs = |index: usize| results[index]["docs"].clone();
    assert_eq!(results.as_array().map(Vec::len), Some(10));
    assert_eq!(docs(0), error(json!("nope"), json!("1-x"), "not_found", "missing"));
    assert_eq!(docs(1), error(json!("nope"), json!("undefined"), "not_found", "missing"));
    assert_eq!(results[2]["id"], json!(null));
    assert_eq!(docs(2), error(json!(null), json!(null), "bad_request", "document id missed"));
    assert_eq!(docs(3)[0]["error"]["reason"], json!("document must be a JSON object"));
    assert_eq!(docs(4), error(json!("a"), json!("bad"), "bad_request", "Invalid rev format"));
    assert_eq!(docs(5)[0]["error"]["error"], json!("illegal_docid"));
    assert_eq!(docs(6)[0]["error"]["error"], json!("not_found"));
    assert_eq!(docs(7)[0]["ok"]["_id"], json!("a"));
    assert_eq!(docs(8), error(json!(null), json!(null), "bad_request", "document must be a JSON object"));
    assert_eq!(docs(9), error(json!(null), json!(null), "bad_request", "document id missed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_member_given_twice_the_last_is_read() {
    let (_server, database) = fresh().await;
    let written = database.put("a", &json!({})).await;
    let twice = format!("{{\"docs\":[{{\"id\":\"b\",\"rev\":\"1-x\",\"id\":\"a\",\"rev\":\"{}\"}}]}}", written.rev());
    let request = database.post("/_bulk_get").header("accept", "application/json");
    let results = request.header("content-type", "application/json").body(twice).expect(200).await.json();
    assert_eq!(results["results"][0]["docs"][0]["ok"]["_id"], json!("a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_the_request_are_named() {
    let (_server, database) = fresh().await;
    let none = database.post("/_bulk_get").json(&json!({})).send().await;
    none.assert_error(400, "bad_request", "Missing JSON list of 'docs'.");
    let twice = database.post("/_bulk_get").header("content-type", "application/json").body("{\"docs\":1,\"docs\":[]}");
    assert_eq!(twice.expect(200).await.json(), json!({ "results": [] }), "the last counts");
    for name in ["open_revs", "new_edits", "w", "rev", "atts_since"] {
        let answer = database.post(&format!("/_bulk_get?{name}=1")).json(&json!({ "docs": [] })).send().await;
        answer.assert_error(400, "bad_request", &format!("\"{name}\" query parameter is not acceptable"));
    }
}
