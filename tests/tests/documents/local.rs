//! `_local` documents: checkpoints that are never replicated.

use serde_json::json;

use super::{CONFLICT, MISSING, fresh};

#[tokio::test(flavor = "multi_thread")]
async fn revisions_count_up_and_a_stale_one_is_a_conflict() {
    let (_server, database) = fresh().await;
    let put = async |body: serde_json::Value| database.request("PUT", "/_local/ck").json(&body).send().await;
    let first = put(json!({ "v": 1 })).await;
    assert_eq!(first.json(), json!({ "ok": true, "id": "_local/ck", "rev": "0-1" }));
    assert_eq!(put(json!({ "v": 2, "_rev": "0-1" })).await.rev(), "0-2");
    let (status, error, reason) = CONFLICT;
    for body in [json!({ "v": 3 }), json!({ "v": 3, "_rev": "0-1" }), json!({ "v": 3, "_rev": "0-7" })] {
        put(body).await.assert_error(status, error, reason);
    }
    assert_eq!(
        database.get("/_local/ck").expect(200).await.json(),
        json!({ "_id": "_local/ck", "_rev": "0-2", "v": 2 })
    );
    for rev in ["1-abc", "0-abc"] {
        put(json!({ "_rev": rev })).await.assert_status(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_one_is_gone_without_a_tombstone() {
    let (_server, database) = fresh().await;
    database.request("PUT", "/_local/ck").json(&json!({})).expect(201).await;
    let deleted = database.request("DELETE", "/_local/ck?rev=0-1").expect(200).await;
    assert_eq!(deleted.json(), json!({ "ok": true, "id": "_local/ck", "rev": "0-0" }));
    let (status, error, reason) = MISSING;
    database.get("/_local/ck").send().await.assert_error(status, error, reason);
    database.request("DELETE", "/_local/ck?rev=0-1").send().await.assert_error(status, error, reason);
    assert_eq!(database.request("PUT", "/_local/ck").json(&json!({})).expect(201).await.rev(), "0-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn they_take_no_sequence_and_show_nowhere_else() {
    let (_server, database) = fresh().await;
    database.request("PUT", "/_local%2Fa%2Fb%20c").json(&json!({ "v": 1 })).expect(201).await;
    assert_eq!(database.get("/_local/a%2Fb%20c").expect(200).await.json()["_id"], json!("_local/a/b c"));
    let results = database.bulk(&[json!({ "_id": "_local/bulk" })]).await;
    assert_eq!(results, json!([{ "ok": true, "id": "_local/bulk", "rev": "0-1" }]));
    let info = database.info().await;
    assert_eq!((&info["update_seq"], &info["doc_count"], &info["doc_del_count"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(database.changes("").await["results"], json!([]));
    assert_eq!(database.get("/_all_docs").expect(200).await.json()["rows"], json!([]));
    let diff = database.post("/_revs_diff").json(&json!({ "_local/bulk": ["0-1"] })).expect(200).await.json();
    assert_eq!(diff["_local/bulk"]["missing"], json!(["0-1"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_one_needs_no_rev() {
    let (_server, database) = fresh().await;
    database.push(&[json!({ "_id": "_local/ck", "v": 1 })]).await;
    assert_eq!(database.get("/_local/ck").expect(200).await.json()["v"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn they_survive_a_restart() {
    let (mut server, database) = fresh().await;
    database.request("PUT", "/_local/ck").json(&json!({ "v": 1 })).expect(201).await;
    server.stop();
    server.restart_on_same_port_and_data();
    assert_eq!(
        database.get("/_local/ck").expect(200).await.json(),
        json!({ "_id": "_local/ck", "_rev": "0-1", "v": 1 })
    );
}
