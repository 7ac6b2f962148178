//! PUT, POST and DELETE of single documents.

use serde_json::{Value, json};

use super::{BAD_REV, CONFLICT, DELETED, MISSING, fresh};
use seqtide_tests::Database;
use seqtide_tests::http::Answer;
use seqtide_tests::raw::exchange;

async fn put(database: &Database, rest: &str, body: &Value) -> Answer {
    database.request("PUT", rest).json(body).send().await
}

fn assert_error(answer: &Answer, (status, error, reason): (u16, &str, &str)) {
    answer.assert_error(status, error, reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_document_answers_its_rev_etag_and_place() {
    let (server, database) = fresh().await;
    let answer = database.put("a", &json!({ "x": 1 })).await;
    assert_eq!(answer.text(), "{\"ok\":true,\"id\":\"a\",\"rev\":\"1-0785e9eb543380151003dc452c3a001a\"}\n");
    assert_eq!(answer.header("etag"), Some("\"1-0785e9eb543380151003dc452c3a001a\""));
    assert_eq!(answer.header("location"), Some(format!("{}/db/a", server.url()).as_str()));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("must-revalidate"));
}

/// Behind a proxy it is the one that the client called.
#[tokio::test(flavor = "multi_thread")]
async fn the_place_of_a_document_is_on_the_server_that_the_client_called() {
    let (server, database) = fresh().await;
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(&str, Headers, &str); 6] = [
        ("a", &[], &server.url()),
        ("b", &[("host", "feeds.example:8080")], "http://feeds.example:8080"),
        ("c", &[("x-forwarded-proto", "https"), ("x-forwarded-host", "feeds.example")], "https://feeds.example"),
        ("d", &[("host", "feeds.example"), ("x-forwarded-proto", "https")], "https://feeds.example"),
        ("e", &[("forwarded", "for=192.0.2.1;proto=https;host=feeds.example")], "https://feeds.example"),
        ("f", &[("host", "feeds.example"), ("forwarded", "proto=https")], "https://feeds.example"),
    ];
    for (id, headers, called) in cases {
        let request = database.request("PUT", &format!("/{id}")).json(&json!({}));
        let answer =
            headers.iter().fold(request, |request, (name, value)| request.header(name, value)).expect(201).await;
        assert_eq!(answer.header("location"), Some(format!("{called}/db/{id}").as_str()), "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_couchdb_s_through_update_delete_and_recreation() {
    let (_server, database) = fresh().await;
    assert_eq!(database.put("a", &json!({ "x": 1 })).await.rev(), "1-0785e9eb543380151003dc452c3a001a");
    let update = json!({ "x": 2, "_rev": "1-0785e9eb543380151003dc452c3a001a" });
    assert_eq!(database.put("a", &update).await.rev(), "2-8c49edca19d786e747fb5bea32c4cb91");
    let delete = database.request("DELETE", "/a?rev=2-8c49edca19d786e747fb5bea32c4cb91").expect(200).await;
    assert_eq!(delete.rev(), "3-fb567087695adb203ba116e130794a84");
    assert_eq!(database.put("a", &json!({ "x": 4 })).await.rev(), "4-4e39a5e7059c750e2313a90b3a5efa37");
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_hash_the_body_as_couchdb_does() {
    let (_server, database) = fresh().await;
    for (id, body, rev) in [
        ("empty", "{}", "1-967a00dff5e02add41819138abb3284d"),
        ("list", r#"{"a":[1,2,3]}"#, "1-308048961a84beb0c9e99e07facf0f5f"),
        ("float", r#"{"a":[1,2.0]}"#, "1-3b562cec9ddf9f74ee2f9b8a9de3f536"),
        ("big", r#"{"a":123456789012345678901234567890}"#, "1-da1bd830ce681811ea5692e0ec6bd683"),
        ("spaced", "{ \"a\" : [ 1 ,\n 2, 3 ] }", "1-308048961a84beb0c9e99e07facf0f5f"),
    ] {
        let answer = database.request("PUT", &format!("/{id}")).body(body).expect(201).await;
        assert_eq!(answer.rev(), rev, "{body}");
    }
    database.push(&[json!({ "_id": "child", "_rev": "1-abc" })]).await;
    assert_eq!(database.put("child", &json!({ "_rev": "1-abc" })).await.rev(), "2-4a197020586a4dd9ea6eb97053f996e4");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_must_name_the_live_leaf() {
    let (_server, database) = fresh().await;
    let first = database.put("a", &json!({ "x": 1 })).await.rev();
    let second = database.put("a", &json!({ "x": 2, "_rev": first })).await.rev();
    assert_error(&put(&database, "/a", &json!({ "x": 3 })).await, CONFLICT);
    assert_error(&put(&database, "/a", &json!({ "x": 2 })).await, CONFLICT);
    assert_error(&put(&database, "/a", &json!({ "x": 3, "_rev": first })).await, CONFLICT);
    let unknown = json!({ "x": 3, "_rev": "2-00000000000000000000000000000000" });
    assert_error(&put(&database, "/a", &unknown).await, CONFLICT);
    put(&database, &format!("/a?rev={second}"), &json!({ "x": 3 })).await.assert_status(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rev_of_an_unknown_document_is_a_conflict() {
    let (_server, database) = fresh().await;
    let rev = "1-00000000000000000000000000000000";
    assert_error(&put(&database, "/a", &json!({ "_rev": rev })).await, CONFLICT);
    assert_error(&put(&database, &format!("/a?rev={rev}"), &json!({})).await, CONFLICT);
    assert_error(&database.get("/a").send().await, MISSING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_write_takes_no_sequence() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({})).await;
    assert_error(&put(&database, "/a", &json!({})).await, CONFLICT);
    assert_eq!(database.info().await["update_seq"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rev_comes_from_body_query_or_if_match_and_they_must_agree() {
    let (_server, database) = fresh().await;
    let first = database.put("a", &json!({})).await.rev();
    let request = database.request("PUT", "/a").header("if-match", &format!("\"{first}\""));
    let second = request.json(&json!({ "n": 2 })).expect(201).await.rev();
    let request = database.request("PUT", "/a").header("if-match", &second);
    let third = request.json(&json!({ "n": 3 })).expect(201).await.rev();

    let differing = put(&database, &format!("/a?rev={second}"), &json!({ "_rev": third })).await;
    let reason = "Document rev from request body and query string have different values";
    assert_error(&differing, (400, "bad_request", reason));
    let request = database.request("PUT", "/a").header("if-match", &second).json(&json!({ "_rev": third }));
    assert_error(&request.send().await, (400, "bad_request", "Document rev and etag have different values"));
    let request = database.request("PUT", &format!("/a?rev={third}")).header("if-match", &third);
    request.json(&json!({ "_rev": third, "n": 4 })).expect(201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_revisions_are_refused() {
    let (_server, database) = fresh().await;
    let not_hex = format!("1-{}", "z".repeat(32));
    for rev in ["zzz", "x-abc", "1", "", not_hex.as_str()] {
        assert_error(&put(&database, "/a", &json!({ "_rev": rev })).await, BAD_REV);
    }
    for rev in [json!(null), json!(1)] {
        assert_error(&put(&database, "/a", &json!({ "_rev": rev })).await, BAD_REV);
    }
    let long = format!("1-{}", "z".repeat(129));
    put(&database, "/a?new_edits=false", &json!({ "_rev": long })).await.assert_status(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_needs_the_live_revision() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    assert_error(&database.request("DELETE", "/a").send().await, CONFLICT);
    let wrong = "/a?rev=1-00000000000000000000000000000000";
    assert_error(&database.request("DELETE", wrong).send().await, CONFLICT);
    assert_error(&database.request("DELETE", "/nope").send().await, MISSING);
    assert_error(&database.request("DELETE", "/a?rev=zzz").send().await, BAD_REV);

    let deleted = database.request("DELETE", "/a").header("if-match", &rev).expect(200).await;
    let tombstone = deleted.rev();
    assert_eq!(deleted.header("etag"), Some(format!("\"{tombstone}\"").as_str()));
    assert_error(&database.get("/a").send().await, DELETED);
    for query in ["".to_owned(), format!("?rev={rev}"), format!("?rev={tombstone}")] {
        assert_error(&database.request("DELETE", &format!("/a{query}")).send().await, DELETED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_document_is_made_again_without_a_rev_only() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    let tombstone = database.request("DELETE", &format!("/a?rev={rev}")).expect(200).await.rev();
    assert_error(&put(&database, "/a", &json!({ "_rev": tombstone })).await, CONFLICT);
    assert_error(&put(&database, "/a", &json!({ "_rev": rev })).await, CONFLICT);
    let again = database.put("a", &json!({})).await.rev();
    assert!(again.starts_with("3-"), "{again} should go on from {tombstone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_may_come_first_and_keep_a_body() {
    let (_server, database) = fresh().await;
    let answer = put(&database, "/a", &json!({ "_deleted": true, "why": "moved" })).await;
    answer.assert_status(200);
    assert_error(&database.get("/a").send().await, DELETED);
    let tombstone = database.get(&format!("/a?rev={}", answer.rev())).expect(200).await.json();
    assert_eq!(tombstone, json!({ "_id": "a", "_rev": answer.rev(), "_deleted": true, "why": "moved" }));
    let info = database.info().await;
    assert_eq!((&info["doc_count"], &info["doc_del_count"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn post_makes_an_id_where_none_is_given() {
    let (server, database) = fresh().await;
    let answer = database.post("").json(&json!({ "n": 1 })).expect(201).await;
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    assert_eq!(answer.header("location"), Some(format!("{}/db/{id}", server.url()).as_str()));
    assert_eq!(answer.header("etag"), None);
    let named = database.post("").json(&json!({ "_id": "named" })).expect(201).await;
    assert_eq!(named.json()["id"], json!("named"));
    let empty = database.post("").json(&json!({ "_id": "" })).send().await;
    assert_error(&empty, (400, "illegal_docid", "Document id must not be empty"));
    let plain = database.post("").header("content-type", "text/plain").body("{}").send().await;
    assert_error(&plain, (415, "bad_content_type", "Content-Type must be application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn put_ignores_the_content_type_and_the_id_in_the_body() {
    let (_server, database) = fresh().await;
    let request = database.request("PUT", "/a").header("content-type", "text/plain");
    request.body("{\"_id\":\"other\"}").expect(201).await;
    assert_eq!(database.get("/a").expect(200).await.json()["_id"], json!("a"));
    let answer = put(&database, "/b", &json!({ "_id": "_other" })).await;
    assert_error(&answer, (400, "illegal_docid", "Only reserved document ids may start with underscore."));
}

#[tokio::test(flavor = "multi_thread")]
async fn seqtide_seq_tells_the_sequence_of_a_write() {
    let (_server, database) = fresh().await;
    let first = database.put("a", &json!({})).await;
    assert_eq!(first.seq(), 1);
    let deleted = database.request("DELETE", &format!("/a?rev={}", first.rev())).expect(200).await;
    assert_eq!(deleted.seq(), 2);
    let docs = json!({ "docs": [{ "_id": "b" }, { "_id": "c" }, { "_id": "b" }] });
    assert_eq!(database.post("/_bulk_docs").json(&docs).expect(201).await.seq(), 4, "the highest of the request");
    let known = json!({ "docs": [{ "_id": "a", "_rev": first.rev() }], "new_edits": false });
    assert_eq!(database.post("/_bulk_docs").json(&known).expect(201).await.seq(), 4, "the current one for no change");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_one_document_at_once_let_one_through() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({})).await.rev();
    let attempts = (0..20).map(|n| {
        let (database, rev) = (database.clone(), rev.clone());
        tokio::spawn(async move { put(&database, "/a", &json!({ "_rev": rev, "n": n })).await.status })
    });
    let mut statuses = Vec::new();
    for attempt in attempts.collect::<Vec<_>>() {
        statuses.push(attempt.await.expect("the attempt"));
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201], vec![409; 19]].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_if_match_that_is_no_rev_is_not_passed_over() {
    let (server, _database) = fresh().await;
    for if_match in ["", "*", "1-é"] {
        let head = format!("PUT /db/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIf-Match: {if_match}\r\n");
        let answer = exchange(server.address(), &format!("{head}Content-Length: 2\r\n\r\n{{}}")).await;
        assert_eq!(answer.status_line, "HTTP/1.1 400 Bad Request", "{if_match:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_writes_the_body_under_another_id() {
    let (_server, database) = fresh().await;
    let rev = database.put("a", &json!({ "x": 1 })).await.rev();
    let copy = |from: &str, to: &str| database.request("COPY", from).header("destination", to);
    let made = copy("/a", "b%2Fc").expect(201).await;
    assert_eq!(made.json(), json!({ "ok": true, "id": "b/c", "rev": rev }), "the same body makes the same revision");
    assert_eq!(made.header("etag"), Some(format!("\"{rev}\"").as_str()));
    copy("/a", "b%2Fc").expect(409).await;
    let second = database.put("a", &json!({ "_rev": rev, "x": 2 })).await.rev();
    let replaced = copy("/a", &format!("b%2Fc?rev={rev}")).expect(201).await.rev();
    assert_eq!(replaced, second);
    copy(&format!("/a?rev={rev}"), "old").expect(201).await;
    assert_eq!(database.get("/old").expect(200).await.json()["x"], json!(1));
    let old = copy("/a", "older").header("if-match", &format!("\"{rev}\"")).expect(201).await;
    assert_eq!(old.rev(), rev, "If-Match says which revision is copied, as `rev` does");
    copy("/a", "none").header("if-match", "9-abc").expect(404).await;
    copy(&format!("/a?rev={rev}"), "none").header("if-match", &second).expect(400).await;
    copy("/nowhere", "d").expect(404).await;
    copy("/a", "http://example.test/db/d").expect(400).await;
    copy("/a", "https://example.test/db/d").expect(400).await;
    assert_eq!(copy("/a", "of-http://x").expect(201).await.json()["id"], json!("of-http://x"));
    copy("/a", "_bad").expect(400).await;
    database.request("COPY", "/a").expect(400).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_whose_id_is_made_goes_on_from_nothing() {
    let (_server, database) = fresh().await;
    let hash = "0785e9eb543380151003dc452c3a001a";
    let copied = json!({ "_rev": format!("3-{hash}"), "_revisions": { "start": 3, "ids": [hash] }, "x": 1 });
    for query in ["", "?new_edits=false"] {
        let rev = database.post(query).json(&copied).expect(201).await.rev();
        assert!(rev.starts_with("1-"), "{query}: {rev}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_design_document_is_refused_and_blocks_no_write() {
    let (_server, database) = fresh().await;
    let design = json!({ "validate_doc_update": 7 });
    let reason = "`validate_doc_update` must be a string";
    assert_error(&put(&database, "/_design/d", &design).await, (400, "invalid_design_doc", reason));
    let results = database.bulk(&[json!({ "_id": "_design/d", "filters": { "f": 5 } }), json!({ "_id": "a" })]).await;
    assert_eq!(results[0]["error"], json!("invalid_design_doc"));
    assert_eq!(results[1]["ok"], json!(true));
    database.put("b", &json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_comes_with_attachments_in_parts_is_refused_as_such() {
    let (_server, database) = fresh().await;
    let put = database.request("PUT", "/a").header("content-type", "multipart/related; boundary=b").body("--b--");
    assert_eq!(put.send().await.status, 501);
}

/// A request of HTTP/1.0 need not say what the server is called; none should in letters beyond ASCII.
#[tokio::test(flavor = "multi_thread")]
async fn the_place_of_a_document_is_a_path_where_the_client_does_not_name_the_server() {
    let (server, _database) = fresh().await;
    for (id, host) in [("a", ""), ("b", "host: \r\n"), ("c", "host: ü\r\n")] {
        let request = format!("PUT /db/{id} HTTP/1.0\r\n{host}content-length: 2\r\n\r\n{{}}");
        let answer = exchange(server.address(), &request).await;
        assert!(answer.headers.contains(&format!("location: /db/{id}")), "{host:?}: {answer:?}");
    }
}

/// As it was read with `revs=true`, without its `_rev`.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_goes_on_from_the_newest_of_its_revisions() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({ "n": 1 })).await;
    let mut read = database.get("/a?revs=true").expect(200).await.json();
    read.as_object_mut().expect("a document").remove("_rev");
    read["n"] = json!(2);
    put(&database, "/a", &read).await.assert_status(201);
    assert_error(&put(&database, "/a", &read).await, CONFLICT);
    let bulk = database.post("/_bulk_docs").json(&json!({ "docs": [read] })).expect(201).await.json();
    assert_eq!(bulk[0]["error"], json!("conflict"));
    let new = json!({ "_revisions": { "start": 1, "ids": ["a"] } });
    assert_error(&put(&database, "/new", &new).await, CONFLICT);
    database.post("").json(&new).expect(201).await;
}

/// CouchDB's replicator leaves out a document that is answered with 415, and begins again where it is 501.
#[tokio::test(flavor = "multi_thread")]
async fn a_replicated_document_with_attachments_is_refused_for_good() {
    let (_server, database) = fresh().await;
    let inline = json!({ "_rev": "1-a", "_attachments": { "a": { "content_type": "text/plain", "data": "YQ==" } } });
    let replicated = put(&database, "/a?new_edits=false", &inline).await;
    replicated.assert_error(415, "not_implemented", "attachments are not supported yet");
    let parts = database.request("PUT", "/a?new_edits=false").header("content-type", "multipart/related; boundary=x");
    parts.body("--x--").send().await.assert_error(415, "not_implemented", "attachments are not supported yet");
}
