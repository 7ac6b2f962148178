//! `_design_docs`, `_local_docs`, and several listings in one answer.

use serde_json::{Value, json};

use super::fresh;
use seqtide_tests::{Database, Server};

async fn make(database: &Database, id: &str) -> String {
    database.post("").json(&json!({ "_id": id })).expect(201).await.rev()
}

/// Documents of every kind.
async fn filled() -> (Server, Database) {
    let (server, database) = fresh().await;
    for id in ["a", "z", "_design/b", "_design/c", "_design/d"] {
        make(&database, id).await;
    }
    for name in ["x", "y"] {
        database.request("PUT", &format!("/_local/{name}")).json(&json!({ "n": name })).expect(201).await;
    }
    let rev = make(&database, "_design/gone").await;
    database.request("DELETE", &format!("/_design/gone?rev={rev}")).expect(200).await;
    (server, database)
}

async fn ask(database: &Database, rest: &str) -> Value {
    database.get(rest).expect(200).await.json()
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["rows"].as_array().expect("rows").iter().map(|row| row["id"].as_str().expect("an id")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn design_docs_are_the_design_documents_alone() {
    let (_server, database) = filled().await;
    for (query, total, offset, expected) in [
        ("", 3, 0, vec!["_design/b", "_design/c", "_design/d"]),
        ("?startkey=%22_design/c%22", 3, 1, vec!["_design/c", "_design/d"]),
        ("?startkey=%22A%22&endkey=%22zz%22", 3, 0, vec!["_design/b", "_design/c", "_design/d"]),
        ("?startkey=%22a%22", 3, 3, vec![]),
        ("?key=%22_design/c%22", 3, 1, vec!["_design/c"]),
        ("?key=%22a%22", 3, 3, vec![]),
        ("?descending=true&limit=1&skip=1", 3, 1, vec!["_design/c"]),
        ("?descending=true&startkey=%22_design/c%22", 3, 1, vec!["_design/c", "_design/b"]),
    ] {
        let answer = ask(&database, &format!("/_design_docs{query}")).await;
        assert_eq!(ids(&answer), expected, "{query}");
        assert_eq!((&answer["total_rows"], &answer["offset"]), (&json!(total), &json!(offset)), "{query}");
    }
    let keys = json!({ "keys": ["_design/d", "a", "_design/nope", "_design/gone"] });
    let rows = database.post("/_design_docs?include_docs=true").json(&keys).expect(200).await.json()["rows"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(3), "what is no design document is left out: {rows}");
    assert_eq!(rows[0]["doc"]["_id"], json!("_design/d"));
    assert_eq!(rows[1], json!({ "key": "_design/nope", "error": "not_found" }));
    assert_eq!((&rows[2]["value"]["deleted"], &rows[2]["doc"]), (&json!(true), &json!(null)));
}

#[tokio::test(flavor = "multi_thread")]
async fn local_docs_are_the_local_documents_alone() {
    let (_server, database) = filled().await;
    let text = "{\"total_rows\":null,\"offset\":null,\"rows\":[\r\n\
        {\"id\":\"_local/x\",\"key\":\"_local/x\",\"value\":{\"rev\":\"0-1\"}},\r\n\
        {\"id\":\"_local/y\",\"key\":\"_local/y\",\"value\":{\"rev\":\"0-1\"}}\r\n]}\n";
    assert_eq!(database.get("/_local_docs").expect(200).await.text(), text);
    for (query, expected) in [
        ("descending=true", vec!["_local/y", "_local/x"]),
        ("limit=1", vec!["_local/x"]),
        ("skip=1", vec!["_local/y"]),
        ("startkey=%22_local/xx%22", vec!["_local/y"]),
        ("startkey=%22_local/y%22&descending=true", vec!["_local/y", "_local/x"]),
        ("endkey=%22_local/y%22&inclusive_end=false", vec!["_local/x"]),
        ("endkey=%22_local/%22", vec![]),
        ("startkey=%22A%22&endkey=%22z%22", vec!["_local/x", "_local/y"]),
        ("startkey=%22a%22", vec![]),
        ("endkey=%22A%22", vec![]),
        ("key=%22_local/y%22", vec!["_local/y"]),
        ("key=%22a%22", vec![]),
    ] {
        assert_eq!(ids(&ask(&database, &format!("/_local_docs?{query}")).await), expected, "{query}");
    }
    let asked = json!({ "keys": ["_local/y", "a", "_local/nope"], "include_docs": true, "update_seq": true });
    let answer = database.post("/_local_docs").json(&asked).expect(200).await.json();
    let doc = json!({ "_id": "_local/y", "_rev": "0-1", "n": "y" });
    let row = json!({ "id": "_local/y", "key": "_local/y", "value": { "rev": "0-1" }, "doc": doc });
    assert_eq!(answer["rows"], json!([row, { "key": "_local/nope", "error": "not_found" }]));
    assert_eq!(answer["update_seq"], json!(null), "they are in no feed");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_local_docs_come_in_pages_that_do_not_show() {
    let (_server, database) = fresh().await;
    let docs: Vec<_> = (0..2500).map(|n| json!({ "_id": format!("_local/d{n:04}"), "pad": "x".repeat(900) })).collect();
    database.bulk(&docs).await;
    let expected: Vec<String> = (0..2500).map(|n| format!("_local/d{n:04}")).collect();
    assert_eq!(ids(&ask(&database, "/_local_docs?include_docs=true").await), expected);
    assert_eq!(ids(&ask(&database, "/_local_docs?skip=2100&limit=300").await), expected[2100..2400]);
    let keys: Vec<_> = expected.iter().rev().collect();
    let by_keys = database.post("/_local_docs?include_docs=true").json(&json!({ "keys": keys })).expect(200).await;
    assert_eq!(ids(&by_keys.json()), keys);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_give_a_listing_each() {
    let (_server, database) = filled().await;
    let queries = json!({ "queries": [
        { "key": "a", "include_docs": true }, { "keys": ["z", "nope"] }, { "limit": 2, "descending": true }, {}
    ] });
    let answer = database.post("/_all_docs/queries?limit=1").json(&queries).expect(200).await;
    assert!(answer.text().starts_with("{\"results\":[\r\n{\"total_rows\":5,"), "{}", answer.text());
    assert!(answer.text().ends_with("\r\n]}\r\n]}\n"), "{}", answer.text());
    let results = answer.json()["results"].clone();
    assert_eq!(results[0]["rows"][0]["doc"]["_id"], json!("a"));
    assert_eq!(ids(&results[1]), ["z"], "the options of the URL are for all of them");
    assert_eq!(ids(&results[2]), ["z", "a"], "unless one says otherwise");
    assert_eq!(ids(&results[3]), ["_design/b"]);
    let one = json!({ "queries": [{ "limit": 1 }] });
    for (listing, first) in [("_design_docs", "_design/b"), ("_local_docs", "_local/x")] {
        let answer = database.post(&format!("/{listing}/queries")).json(&one).expect(200).await.json();
        assert_eq!(ids(&answer["results"][0]), [first]);
    }
    let none = database.post("/_all_docs/queries").json(&json!({ "queries": [] })).expect(200).await;
    assert_eq!(none.json(), json!({ "results": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_queries_are_named_before_anything_is_sent() {
    let (_server, database) = fresh().await;
    for (body, reason) in [
        (json!({}), "POST body must include `queries` parameter."),
        (json!({ "queries": {} }), "`queries` parameter must be an array."),
        (json!({ "queries": [{}, 1] }), "each of `queries` must be a JSON object"),
    ] {
        database.post("/_all_docs/queries").json(&body).send().await.assert_error(400, "bad_request", reason);
    }
    let late = json!({ "queries": [{}, { "limit": "x" }] });
    let answer = database.post("/_all_docs/queries").json(&late).send().await;
    answer.assert_error(400, "query_parse_error", "Invalid value for integer: \"x\"");
    let many = json!({ "queries": vec![json!({}); 1001] });
    let answer = database.post("/_all_docs/queries").json(&many).send().await;
    answer.assert_error(413, "too_large", "`queries` has too many queries: at most 1000");
    let get = database.get("/_all_docs/queries").send().await;
    get.assert_error(405, "method_not_allowed", "Only POST allowed");
}
