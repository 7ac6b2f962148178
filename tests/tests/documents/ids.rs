//! Document ids, and how they stand in a URL.

use serde_json::json;

use super::fresh;
use seqtide_tests::http::escaped;

#[tokio::test(flavor = "multi_thread")]
async fn any_text_is_an_id_when_it_is_escaped() {
    let (_server, database) = fresh().await;
    let long = "x".repeat(500);
    let ids = ["a/b", "a b", "a+b", "a%2Fb", "é😀", "?&#", "\u{1}\n", "..", "a/_b/c", "\u{0}", "\"\\", long.as_str()];
    for id in ids.iter().filter(|id| **id != "..") {
        let written = database.put(id, &json!({})).await;
        assert_eq!(written.json()["id"], json!(id));
        assert_eq!(database.get(&format!("/{}", escaped(id))).expect(200).await.json()["_id"], json!(id));
    }
    assert_eq!(database.info().await["doc_count"], json!(ids.len() - 1));
    let rows = database.changes("").await;
    let shown: Vec<_> = rows["results"].as_array().expect("rows").iter().map(|row| row["id"].as_str()).collect();
    let expected: Vec<_> = ids.iter().filter(|id| **id != "..").map(|id| Some(*id)).collect();
    assert_eq!(shown, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plus_in_the_path_is_a_space() {
    let (_server, database) = fresh().await;
    let written = database.request("PUT", "/a+b").json(&json!({})).expect(201).await;
    assert_eq!(written.json()["id"], json!("a b"));
    let written = database.request("PUT", "/a%2Bb").json(&json!({})).expect(201).await;
    assert_eq!(written.json()["id"], json!("a+b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn design_documents_have_a_path_of_their_own() {
    let (server, database) = fresh().await;
    let written = database.request("PUT", "/_design/f").json(&json!({})).expect(201).await;
    assert_eq!(written.json()["id"], json!("_design/f"));
    assert_eq!(written.header("location"), Some(format!("{}/db/_design%2Ff", server.url()).as_str()));
    database.get("/_design/f").expect(200).await;
    let redirect = database.get("/_design%2Ff").expect(301).await;
    assert_eq!(redirect.header("location"), Some(format!("{}/db/_design/f", server.url()).as_str()));
    assert_eq!(database.changes("filter=_design").await["results"][0]["id"], json!("_design/f"));
    let written = database.request("PUT", "/_design%2Fg").json(&json!({})).expect(201).await;
    assert_eq!(written.json()["id"], json!("_design/g"), "a redirected PUT would come back as a GET");
}

#[tokio::test(flavor = "multi_thread")]
async fn illegal_ids_are_named() {
    let (_server, database) = fresh().await;
    for (id, reason) in [
        (json!("_bad"), "Only reserved document ids may start with underscore."),
        (json!("_design/"), "Illegal document id `_design/`"),
        (json!("_local/"), "Illegal document id `_local/`"),
        (json!(""), "Document id must not be empty"),
        (json!(7), "Document id must be a string"),
    ] {
        let answer = database.post("").json(&json!({ "_id": id })).send().await;
        answer.assert_error(400, "illegal_docid", reason);
    }
    let answer = database.request("PUT", "/_bad").json(&json!({})).send().await;
    answer.assert_error(400, "illegal_docid", "Only reserved document ids may start with underscore.");
    let answer = database.request("PUT", "/%ff").json(&json!({})).send().await;
    answer.assert_error(400, "illegal_docid", "Document id must be valid UTF-8");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_too_long_for_the_store_names_the_limit() {
    let (_server, database) = fresh().await;
    for id in ["x".repeat(501), "é".repeat(251)] {
        let answer = database.request("PUT", &format!("/{}", escaped(&id))).json(&json!({})).send().await;
        answer.assert_status(400);
        let error = answer.json();
        assert_eq!(error["error"], json!("illegal_docid"));
        assert!(error["reason"].as_str().is_some_and(|reason| reason.contains("500")), "{error} should name the limit");
    }
}
