//! `_all_docs`.

use serde_json::{Value, json};

use super::fresh;
use seqtide_tests::http::escaped;
use seqtide_tests::{Database, Server};

/// Documents a, b, é and Z, a deleted `gone`, and a `_local` one.
async fn filled() -> (Server, Database) {
    let (server, database) = fresh().await;
    for id in ["b", "a", "é", "Z"] {
        database.put(id, &json!({ "n": id })).await;
    }
    let rev = database.put("gone", &json!({})).await.rev();
    database.request("DELETE", &format!("/gone?rev={rev}")).expect(200).await;
    database.request("PUT", "/_local/l").json(&json!({})).expect(201).await;
    (server, database)
}

async fn ask(database: &Database, query: &str) -> Value {
    database.get(&format!("/_all_docs?{query}")).expect(200).await.json()
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["rows"].as_array().expect("rows").iter().map(|row| row["id"].as_str().expect("an id")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_stand_in_byte_order_of_ids_as_couchdb_writes_them() {
    let (_server, database) = fresh().await;
    database.put("b", &json!({ "x": 1 })).await;
    database.put("a", &json!({})).await;
    let expected = "{\"total_rows\":2,\"offset\":0,\"rows\":[\r\n\
        {\"id\":\"a\",\"key\":\"a\",\"value\":{\"rev\":\"1-967a00dff5e02add41819138abb3284d\"}},\r\n\
        {\"id\":\"b\",\"key\":\"b\",\"value\":{\"rev\":\"1-0785e9eb543380151003dc452c3a001a\"}}\r\n]}\n";
    assert_eq!(database.get("/_all_docs").expect(200).await.text(), expected);
    let (_server, database) = filled().await;
    let all = ask(&database, "").await;
    assert_eq!(ids(&all), ["Z", "a", "b", "é"]);
    assert_eq!(all["total_rows"], json!(4), "deleted and local documents do not count");
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_limits_and_directions() {
    let (_server, database) = filled().await;
    for (query, expected) in [
        ("startkey=%22a%22", vec!["a", "b", "é"]),
        ("endkey=%22a%22", vec!["Z", "a"]),
        ("start_key=%22a%22&end_key=%22b%22", vec!["a", "b"]),
        ("startkey=%22a%22&endkey=%22b%22&inclusive_end=false", vec!["a"]),
        ("descending=true", vec!["é", "b", "a", "Z"]),
        ("descending=true&startkey=%22b%22&endkey=%22a%22", vec!["b", "a"]),
        ("limit=2", vec!["Z", "a"]),
        ("skip=1&limit=2", vec!["a", "b"]),
        ("skip=18446744073709551615&startkey=%22a%22", vec![]),
        ("limit=0", vec![]),
        ("key=%22b%22", vec!["b"]),
        ("key=%22b%22&inclusive_end=false", vec![]),
        ("key=%22b%22&startkey=%22a%22", vec!["a", "b"]),
        ("key=%22a%22&endkey=%22b%22", vec!["a", "b"]),
        ("key=%22nope%22", vec![]),
        ("key=%22gone%22", vec![]),
        ("startkey=%22b%22&endkey=%22b%5Cufff0%22", vec!["b"]),
        ("descending=true&endkey=%22a%22&inclusive_end=false", vec!["é", "b"]),
        ("descending=true&skip=1&limit=2", vec!["b", "a"]),
        ("startkey_docid=a&endkey_docid=b", vec!["a", "b"]),
        ("start_key_doc_id=a&end_key_doc_id=b&inclusive_end=false", vec!["a"]),
        ("startkey=%22b%22&startkey_docid=a", vec!["b", "é"]),
        ("startkey=null", vec!["Z", "a", "b", "é"]),
        ("endkey=%7B%7D", vec!["Z", "a", "b", "é"]),
        ("startkey=%22b%22&endkey=%22a%22", vec![]),
        ("descending=True&limit=1", vec!["é"]),
    ] {
        assert_eq!(ids(&ask(&database, query).await), expected, "{query}");
    }
    assert_eq!(ask(&database, "startkey=%22b%22").await["offset"], json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn include_docs_adds_the_winner_and_conflicts_on_request() {
    let (_server, database) = filled().await;
    let answer = ask(&database, "include_docs=true&key=%22a%22").await;
    assert_eq!(answer["rows"][0]["doc"]["n"], json!("a"));
    database.push(&[json!({ "_id": "a", "_rev": "1-0" })]).await;
    let answer = ask(&database, "include_docs=true&conflicts=true&key=%22a%22").await;
    assert_eq!(answer["rows"][0]["doc"]["_conflicts"], json!(["1-0"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_give_a_row_each_in_their_order() {
    let (_server, database) = filled().await;
    let keys = json!(["gone", "b", "nope", "b"]);
    let query = format!("include_docs=true&keys={}", escaped(&keys.to_string()));
    let by_get = ask(&database, &query).await;
    let by_post = database.post("/_all_docs?include_docs=true").json(&json!({ "keys": keys })).expect(200).await.json();
    let in_body =
        database.post("/_all_docs").json(&json!({ "keys": keys, "include_docs": true })).expect(200).await.json();
    assert_eq!(by_get, by_post);
    assert_eq!(by_post, in_body, "options may stand in the body");
    let rows = &by_post["rows"];
    assert_eq!((&rows[0]["value"]["deleted"], &rows[0]["doc"]), (&json!(true), &json!(null)));
    assert_eq!(rows[1]["doc"]["_id"], json!("b"));
    assert_eq!(rows[2], json!({ "key": "nope", "error": "not_found" }));
    assert_eq!(rows[3], rows[1]);
    assert_eq!(by_post["offset"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_takes_every_option_in_its_body() {
    let (_server, database) = filled().await;
    for (query, body) in [
        ("startkey=%22a%22&endkey=%22b%22", json!({ "startkey": "a", "endkey": "b" })),
        (
            "start_key=%22a%22&end_key=%22b%22&inclusive_end=false",
            json!({ "start_key": "a", "end_key": "b", "inclusive_end": false }),
        ),
        ("key=%22a%22&include_docs=true", json!({ "key": "a", "include_docs": true })),
        ("descending=true&skip=1&limit=1", json!({ "descending": true, "skip": 1, "limit": 1 })),
        ("update_seq=true", json!({ "update_seq": true })),
    ] {
        let by_get = ask(&database, query).await;
        assert_eq!(database.post("/_all_docs").json(&body).expect(200).await.json(), by_get, "{query}");
    }
    let both = database.post("/_all_docs?limit=1").json(&json!({ "limit": 3 })).expect(200).await.json();
    assert_eq!(ids(&both), ["Z"], "the URL wins");
}

#[tokio::test(flavor = "multi_thread")]
async fn update_seq_is_where_the_feed_stands() {
    let (_server, database) = filled().await;
    let expected = database.info().await["update_seq"].clone();
    let answer = ask(&database, "update_seq=true&limit=0").await;
    assert_eq!((&answer["update_seq"], &answer["rows"]), (&expected, &json!([])));
    assert_eq!(ask(&database, "limit=0").await.get("update_seq"), None);
    assert_eq!(ask(&database, "update_seq=true&keys=%5B%22a%22%5D").await["update_seq"], json!(null), "as CouchDB");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_turned_round_then_skipped_then_cut() {
    let (_server, database) = filled().await;
    let asked = json!({ "keys": ["Z", "a", "b", "é"], "descending": true, "skip": 1, "limit": 2 });
    let answer = database.post("/_all_docs").json(&asked).expect(200).await.json();
    assert_eq!(ids(&answer), ["b", "a"]);
    assert_eq!(answer["total_rows"], json!(4));
    let none = database.post("/_all_docs").json(&json!({ "keys": [] })).expect(200).await;
    assert_eq!(none.text(), "{\"total_rows\":4,\"offset\":null,\"rows\":[\r\n\r\n]}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_and_options_of_attachments_go_with_keys_too() {
    let (_server, database) = filled().await;
    database.push(&[json!({ "_id": "a", "_rev": "1-0" })]).await;
    let query = "include_docs=true&conflicts=true&attachments=true&att_encoding_info=true&keys=%5B%22a%22%5D";
    assert_eq!(ask(&database, query).await["rows"][0]["doc"]["_conflicts"], json!(["1-0"]));
    let answer = database.get("/_all_docs?attachments=maybe").send().await;
    answer.assert_error(400, "query_parse_error", "Invalid boolean parameter: \"maybe\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    let (_server, database) = fresh().await;
    let integer = "Invalid value for integer: \"x\"";
    database.get("/_all_docs?limit=x").send().await.assert_error(400, "query_parse_error", integer);
    database.get("/_all_docs?skip=x").send().await.assert_error(400, "query_parse_error", integer);
    database.get("/_all_docs?startkey=abc").send().await.assert_error(400, "bad_request", "invalid UTF-8 JSON");
    let answer = database.post("/_all_docs").json(&json!({ "keys": 1 })).send().await;
    answer.assert_error(400, "bad_request", "`keys` parameter must be an array.");
    let answer = database.post("/_all_docs").json(&json!({ "keys": ["a", 1] })).send().await;
    answer.assert_error(400, "bad_request", "`keys` must be document ids, each a string");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_reader_do_not_show() {
    let (_server, database) = fresh().await;
    let docs: Vec<_> = (0..3000).map(|n| json!({ "_id": format!("d{n:04}"), "pad": "x".repeat(400) })).collect();
    database.bulk(&docs).await;
    let answer = ask(&database, "include_docs=true").await;
    let expected: Vec<String> = (0..3000).map(|n| format!("d{n:04}")).collect();
    assert_eq!(ids(&answer), expected);
    let answer = ask(&database, "skip=2500&limit=400").await;
    assert_eq!(ids(&answer), expected[2500..2900]);
    assert_eq!(answer["offset"], json!(2500));
}
