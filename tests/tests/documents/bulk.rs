//! `_bulk_docs` with new revisions.

use serde_json::json;

use super::fresh;

#[tokio::test(flavor = "multi_thread")]
async fn results_come_in_the_order_of_the_request() {
    let (_server, database) = fresh().await;
    database.put("taken", &json!({})).await;
    let results = database.bulk(&[json!({ "_id": "z" }), json!({ "_id": "taken" }), json!({ "_id": "a" })]).await;
    let rev = "1-967a00dff5e02add41819138abb3284d";
    assert_eq!(results[0], json!({ "ok": true, "id": "z", "rev": rev }));
    assert_eq!((&results[1]["id"], &results[1]["error"]), (&json!("taken"), &json!("conflict")));
    assert_eq!(results[1]["reason"], json!("Document update conflict."));
    assert_eq!(results[2], json!({ "ok": true, "id": "a", "rev": rev }));
    let ids: Vec<_> = database.changes("since=1").await["results"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["id"].clone())
        .collect();
    assert_eq!(ids, [json!("z"), json!("a")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_twice_lets_the_first_through() {
    let (_server, database) = fresh().await;
    let results = database.bulk(&[json!({ "_id": "a", "n": 1 }), json!({ "_id": "a", "n": 2 })]).await;
    assert_eq!((&results[0]["ok"], &results[1]["error"]), (&json!(true), &json!("conflict")));
    assert_eq!(database.get("/a").expect(200).await.json()["n"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_made_where_missing_or_empty() {
    let (_server, database) = fresh().await;
    let results = database.bulk(&[json!({}), json!({ "_id": "" })]).await;
    for result in results.as_array().expect("a list") {
        assert_eq!(result["id"].as_str().map(str::len), Some(32), "{result}");
    }
    assert_ne!(results[0]["id"], results[1]["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_an_empty_list_are_fine() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    let results = database
        .bulk(&[json!({ "_id": "a", "_rev": rev, "_deleted": true }), json!({ "_id": "n", "_deleted": true })])
        .await;
    assert_eq!((&results[0]["ok"], &results[1]["ok"]), (&json!(true), &json!(true)));
    let info = database.info().await;
    assert_eq!((&info["doc_count"], &info["doc_del_count"]), (&json!(0), &json!(2)));
    assert_eq!(database.bulk(&[]).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_invalid_document_fails_the_whole_request() {
    let (_server, database) = fresh().await;
    for (bad, error, reason) in [
        (json!({ "_id": "_b" }), "illegal_docid", "Only reserved document ids may start with underscore."),
        (json!({ "_id": 1 }), "illegal_docid", "Document id must be a string"),
        (json!({ "_id": "b", "_x": 1 }), "doc_validation", "Bad special document member: _x"),
        (json!(1), "bad_request", "Document must be a JSON object"),
    ] {
        let docs = json!({ "docs": [{ "_id": "good" }, bad] });
        database.post("/_bulk_docs").json(&docs).send().await.assert_error(400, error, reason);
    }
    assert_eq!(database.info().await["update_seq"], json!(0), "nothing is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_the_request_are_named() {
    let (_server, database) = fresh().await;
    for (body, reason) in [
        ("{}", "POST body must include `docs` parameter."),
        ("{\"docs\":1}", "`docs` parameter must be an array."),
        ("{\"docs\":null}", "`docs` parameter must be an array."),
        ("{\"docs\":[],\"new_edits\":1}", "`new_edits` parameter must be a boolean."),
        ("{\"docs\":[],\"new_edits\":null}", "`new_edits` parameter must be a boolean."),
        ("{\"docs\":[],\"docs\":1}", "`docs` parameter must be an array."),
        ("[]", "Request body must be a JSON object"),
        ("{\"docs\":[", "invalid UTF-8 JSON"),
    ] {
        let request = database.post("/_bulk_docs").header("content-type", "application/json").body(body);
        request.send().await.assert_error(400, "bad_request", reason);
    }
    let plain = database.post("/_bulk_docs").header("content-type", "text/plain").body("{\"docs\":[]}").send().await;
    plain.assert_error(415, "bad_content_type", "Content-Type must be application/json");
}

#[tokio::test(flavor = "multi_thread")]
async fn ensure_full_commit_tells_the_instance_start_time() {
    let (mut server, database) = fresh().await;
    let start_time = database.info().await["instance_start_time"].clone();
    assert!(start_time.as_str().is_some_and(|text| !text.is_empty()), "{start_time} should be text");
    let commit = database.post("/_ensure_full_commit").header("content-type", "application/json").body("");
    assert_eq!(commit.expect(201).await.json(), json!({ "ok": true, "instance_start_time": start_time }));
    database.post("/_ensure_full_commit").send().await.assert_status(415);
    server.stop();
    server.restart_on_same_port_and_data();
    assert_eq!(database.info().await["instance_start_time"], start_time, "constant for the life of the database");
}
