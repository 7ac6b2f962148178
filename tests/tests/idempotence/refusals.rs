//! Keys that are none, or another request's.

use serde_json::json;

use super::{fresh, is_replay, put, rows, update_seq};
use seqtide_tests::raw::exchange;

const REUSED: (u16, &str, &str) = (422, "idempotency_key_reused", "The key was used for a different request.");

#[tokio::test(flavor = "multi_thread")]
async fn f14_a_key_with_another_request_is_refused() {
    let (_server, database) = fresh().await;
    let first = put(&database, "a", "k", &json!({ "n": 1 })).expect(201).await;
    let keyed = |method: &str, rest: &str| database.request(method, rest).header("idempotency-key", "k");
    for (what, request) in [
        ("body", put(&database, "a", "k", &json!({ "n": 2 }))),
        ("path", put(&database, "b", "k", &json!({ "n": 1 }))),
        ("query", put(&database, "a?new_edits=false", "k", &json!({ "n": 1 }))),
        ("If-Match", put(&database, "a", "k", &json!({ "n": 1 })).header("if-match", &first.rev())),
        ("method", keyed("DELETE", &format!("/a?rev={}", first.rev()))),
        ("endpoint", keyed("POST", "/_bulk_docs").json(&json!({ "docs": [{ "_id": "a" }] }))),
        ("endpoint", keyed("PUT", "/_revs_limit").body("5")),
        ("local", keyed("PUT", "/_local/a").json(&json!({ "n": 1 }))),
        ("copy", keyed("COPY", "/a").header("destination", "c")),
    ] {
        let refused = request.send().await;
        assert_eq!(refused.status, REUSED.0, "another {what}: {refused:?}");
        refused.assert_error(REUSED.0, REUSED.1, REUSED.2);
    }
    let copy = |to: &str| database.request("COPY", "/a").header("destination", to).header("idempotency-key", "copy");
    copy("c").expect(201).await;
    copy("d").expect(422).await;
    assert_eq!(rows(&database).await, [("a".to_owned(), 1), ("c".to_owned(), 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_key_is_refused_with_what_is_right() {
    let (server, database) = fresh().await;
    let put = |headers: &str| {
        let head = format!("PUT /db/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}");
        format!("{head}Content-Length: 2\r\n\r\n{{}}")
    };
    let long = format!("Idempotency-Key: {}\r\n", "k".repeat(256));
    for (headers, why) in [
        ("Idempotency-Key:\r\n", "and this one is empty"),
        (long.as_str(), "and this one has 256 bytes"),
        ("Idempotency-Key: caf\u{e9}\r\n", "and this one has others"),
        ("Idempotency-Key: a\tb\r\n", "and this one has others"),
        ("Idempotency-Key: a\r\nIdempotency-Key: b\r\n", "it is given more than once, with different values"),
    ] {
        let answer = exchange(server.address(), &put(headers)).await;
        assert_eq!(answer.status_line, "HTTP/1.1 400 Bad Request", "{headers:?}");
        assert!(answer.body.contains("Invalid Idempotency-Key header: ") && answer.body.contains(why), "{answer:?}");
    }
    assert_eq!(update_seq(&database).await, json!(0));
    let longest = format!("Idempotency-Key: {}\r\n", "k".repeat(255));
    assert_eq!(exchange(server.address(), &put(&longest)).await.status_line, "HTTP/1.1 201 Created");
    let twice = "Idempotency-Key: same\r\nIdempotency-Key: same\r\n";
    assert_eq!(exchange(server.address(), &put(twice)).await.status_line, "HTTP/1.1 409 Conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_ok_cannot_be_had_with_a_key() {
    let (_server, database) = fresh().await;
    let refused = put(&database, "a?batch=ok", "k", &json!({})).expect(400).await;
    assert!(refused.text().contains("leave one of them out"), "{refused:?}");
    database.request("PUT", "/a?batch=ok").json(&json!({})).expect(202).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_answered_anew_each_time() {
    let (_server, database) = fresh().await;
    let keyed = |method: &str, rest: &str| database.request(method, rest).header("idempotency-key", "k");
    for _ in 0..2 {
        assert!(!is_replay(&keyed("DELETE", "/never").expect(404).await));
        assert!(!is_replay(&keyed("PUT", "/a").body("no json").expect(400).await));
        assert!(!is_replay(&keyed("POST", "/_bulk_docs").json(&json!({})).expect(400).await));
    }
    let nowhere = database.api.put("/nowhere/a").header("idempotency-key", "k").json(&json!({})).send().await;
    nowhere.assert_error(404, "not_found", "Database does not exist.");
    put(&database, "a", "k", &json!({})).expect(201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_pass_a_key_over() {
    let (_server, database) = fresh().await;
    put(&database, "a", "k", &json!({})).expect(201).await;
    for (method, rest) in [("GET", "/a"), ("GET", ""), ("GET", "/_changes"), ("POST", "/_all_docs")] {
        let read = database.request(method, rest).header("idempotency-key", "k").json(&json!({})).expect(200).await;
        assert!(!is_replay(&read), "{method} {rest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_may_send_keys_and_see_replays() {
    let (_server, database) = fresh().await;
    let preflight = database.request("OPTIONS", "/a").header("origin", "http://localhost:3000");
    let preflight = preflight.header("access-control-request-method", "PUT");
    let allowed = preflight.header("access-control-request-headers", "idempotency-key").send().await;
    let headers = allowed.header("access-control-allow-headers").unwrap_or_default().to_ascii_lowercase();
    assert!(headers.contains("idempotency-key"), "{allowed:?}");
    let from_page = put(&database, "a", "k", &json!({})).header("origin", "http://localhost:3000").expect(201).await;
    let exposed = from_page.header("access-control-expose-headers").unwrap_or_default().to_ascii_lowercase();
    assert!(exposed.contains("idempotency-replayed"), "{exposed}");
}
