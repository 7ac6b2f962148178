//! Request bodies: JSON kept as it was written, reserved members, gzip, limits.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::fresh;
use seqtide_tests::{Database, Server, raw};

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("gzip into memory")
}

/// The stored text of a body, without `_id` and `_rev`.
async fn kept(database: &Database, id: &str, body: &str) -> String {
    let rev = database.request("PUT", &format!("/{id}")).body(body.to_owned()).expect(201).await.rev();
    let text = database.get(&format!("/{id}")).expect(200).await.text().to_owned();
    let prefix = format!("{{\"_id\":\"{id}\",\"_rev\":\"{rev}\",");
    format!(
        "{{{}",
        text.strip_prefix(&prefix).unwrap_or_else(|| panic!("{text:?} should begin with {prefix:?}")).trim_end()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_keep_their_text_and_white_space_goes() {
    let (_server, database) = fresh().await;
    for (id, body, expected) in [
        ("float", "{ \"n\" : 1.0 }", "{\"n\":1.0}"),
        ("big", "{\"n\":12345678901234567890123}", "{\"n\":12345678901234567890123}"),
        ("pretty", "{\r\n\t\"a\": [ 1,\n 2 ],\n\n\"b\": \" kept  \"\n}\n", "{\"a\":[1,2],\"b\":\" kept  \"}"),
        ("twice", "{\"a\":1,\"b\":2,\"a\":3}", "{\"b\":2,\"a\":3}"),
        ("inner", "{\"o\":{\"a\":1,\"b\":2,\"a\":3}}", "{\"o\":{\"b\":2,\"a\":3}}"),
        ("text", "{\"t\":\"é😀/\\n\"}", "{\"t\":\"é😀/\\n\"}"),
    ] {
        assert_eq!(kept(&database, id, body).await, expected, "{body:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_json_or_not_a_document_is_refused() {
    let (_server, database) = fresh().await;
    for body in ["", "{", "{\"a\":}", "{\"a\":1e999}", "{\"a\":\"\\ud800\"}", "{\"a\":1} x", "nonsense"] {
        let answer = database.request("PUT", "/a").body(body).send().await;
        answer.assert_error(400, "bad_request", "invalid UTF-8 JSON");
    }
    let answer = database.request("PUT", "/a").body(b"{\"a\":\"\xff\"}".to_vec()).send().await;
    answer.assert_error(400, "bad_request", "invalid UTF-8 JSON");
    for body in ["[1,2]", "1", "null", "\"a\""] {
        let answer = database.request("PUT", "/a").body(body).send().await;
        answer.assert_error(400, "bad_request", "Document must be a JSON object");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_an_underscore_are_read_kept_dropped_or_refused() {
    let (_server, database) = fresh().await;
    for (name, value) in [("_x", json!(1)), ("_deleted", json!("yes")), ("_attachments", json!([])), ("_", json!(1))] {
        let answer = database.request("PUT", "/a").json(&json!({ name: value })).send().await;
        answer.assert_error(400, "doc_validation", &format!("Bad special document member: {name}"));
    }
    let dropped = json!({ "_revs_info": 1, "_local_seq": 1, "_conflicts": 1, "_deleted_conflicts": 1, "v": 1 });
    let rev = database.put("dropped", &dropped).await.rev();
    assert_eq!(database.get("/dropped").expect(200).await.json(), json!({ "_id": "dropped", "_rev": rev, "v": 1 }));
    database.put("kept", &json!({ "_replication_id": "r", "_replication_state": "completed" })).await;
    assert_eq!(database.get("/kept").expect(200).await.json()["_replication_id"], json!("r"));
}

#[tokio::test(flavor = "multi_thread")]
async fn gzip_bodies_are_read() {
    let (_server, database) = fresh().await;
    let body = gzipped(br#"{"x":1}"#);
    let put = database.request("PUT", "/a").header("content-encoding", "gzip").body(body).expect(201).await;
    assert_eq!(put.rev(), "1-0785e9eb543380151003dc452c3a001a");
    let bulk = gzipped(br#"{"docs":[{"_id":"b"}]}"#);
    let request = database.post("/_bulk_docs").header("content-type", "application/json");
    request.header("content-encoding", "gzip").body(bulk).expect(201).await;
    assert_eq!(database.info().await["doc_count"], json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_gzip_and_other_encodings_are_refused() {
    let (_server, database) = fresh().await;
    let whole = gzipped(br#"{"x":1}"#);
    for broken in [b"{\"x\":1}".to_vec(), whole[..whole.len() / 2].to_vec()] {
        let answer = database.request("PUT", "/a").header("content-encoding", "gzip").body(broken).send().await;
        answer.assert_status(400);
        assert_eq!(answer.json()["error"], json!("bad_request"));
    }
    for encoding in ["br", "deflate", "zstd"] {
        let answer = database.request("PUT", "/a").header("content-encoding", encoding).body("{}").send().await;
        answer.assert_status(415);
        assert!(answer.json()["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    }
    assert_eq!(database.info().await["update_seq"], json!(0));
}

/// The body was taken in first, as far as it may be long.
#[tokio::test(flavor = "multi_thread")]
async fn a_length_that_is_too_large_is_413_before_anything_of_the_body_has_come() {
    let server = Server::launch().arg("--limits-request-bytes-max=8000000").start();
    Database::create(&server, "db").await;
    let request = "PUT /db/a HTTP/1.1\r\nHost: seqtide\r\nContent-Length: 8000001\r\n\r\n";
    let (_socket, head) = raw::open(server.address(), request, |text| text.ends_with("}\n")).await;
    assert!(head.starts_with("HTTP/1.1 413 ") && head.contains("at most 8000000 bytes"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_is_413_unpacked_too() {
    let (_server, database) = fresh().await;
    let large = json!({ "pad": "x".repeat(8_100_000) });
    let answer = database.request("PUT", "/a").json(&large).send().await;
    answer.assert_status(413);
    assert_eq!(answer.json()["error"], json!("document_too_large"));
    let bomb = gzipped(&vec![b' '; 80_000_000]);
    let request = database.post("/_bulk_docs").header("content-type", "application/json");
    request.header("content-encoding", "gzip").body(bomb).send().await.assert_status(413);
    let fits = json!({ "pad": "x".repeat(7_900_000) });
    let rev = database.put("a", &fits).await.rev();
    assert_eq!(database.get("/a").expect(200).await.json(), json!({ "_id": "a", "_rev": rev, "pad": fits["pad"] }));
}

/// A gzipped text of about 60 MB, the part in the middle of it repeated.
fn bomb(start: &str, part: &str, end: &str) -> Vec<u8> {
    gzipped(format!("{start}{}{end}", part.repeat(60_000_000 / part.len())).as_bytes())
}

/// The most memory the server has had, in MiB.
fn peak_mib(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("its status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|kib| kib.parse::<usize>().ok()).expect("its peak") / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn short_parts_without_number_are_refused_in_little_memory() {
    let (server, database) = fresh().await;
    database.put("x", &json!({})).await;
    let revisions = |count: usize| {
        let ids = vec!["\"\""; count].join(",");
        format!("{{\"_id\":\"x\",\"_revisions\":{{\"start\":30000000,\"ids\":[{ids}]}}}}")
    };
    let replicated = "{\"new_edits\":false,\"docs\":[";
    let many = "has too many revisions: at most";
    for (method, path, body, reason, mib_max) in [
        (
            "PUT",
            "/x?new_edits=false",
            bomb("{\"_revisions\":{\"start\":30000000,\"ids\":[", "\"\",", "\"\"]}}"),
            format!("the document {many} 100000 are accepted"),
            600,
        ),
        (
            "POST",
            "/_bulk_docs",
            gzipped(format!("{replicated}{}]}}", revisions(100_001)).as_bytes()),
            format!("the document `x` {many} 100000 are accepted"),
            600,
        ),
        (
            "POST",
            "/_bulk_docs",
            bomb(replicated, &format!("{},", revisions(100_000)), "{}]}"),
            format!("`docs` {many} 2000000 are accepted"),
            600,
        ),
        (
            "PUT",
            "/y",
            bomb("{", "\"\":0,", "\"a\":1}"),
            "the document has too many members: at most 1601000 are accepted".to_owned(),
            600,
        ),
        (
            "POST",
            "/_bulk_get",
            bomb("{\"docs\":[{\"id\":[", "[],", "1]}]}"),
            // The answer repeats the text, twice.
            "Document id must be a string".to_owned(),
            900,
        ),
    ] {
        let request = database.request(method, path).header("content-type", "application/json");
        let answer = request.header("content-encoding", "gzip").body(body).send().await;
        answer.assert_status(if path == "/_bulk_get" { 200 } else { 413 });
        assert!(answer.text().contains(&format!("\"reason\":\"{reason}\"")), "{path} should say {reason}");
        let peak = peak_mib(&server);
        assert!(peak < mib_max, "{path}: {peak} MiB for {reason}");
    }
    assert_eq!(database.info().await["update_seq"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_has_a_limit() {
    let (_server, database) = fresh().await;
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    database.request("PUT", "/fits").body(nested(500)).expect(201).await;
    for depth in [600, 100_000] {
        let answer = database.request("PUT", "/deep").body(nested(depth)).send().await;
        answer.assert_status(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_request_has_a_limit_of_documents() {
    let server = Server::launch().arg("--limits-bulk-docs-max=2").start();
    let database = Database::create(&server, "db").await;
    for endpoint in ["/_bulk_docs", "/_bulk_get"] {
        let many = json!({ "docs": [{ "id": "a" }, { "id": "b" }, { "id": "c" }] });
        let reason = "`docs` has too many documents: at most 2 are accepted";
        database.post(endpoint).json(&many).send().await.assert_error(413, "too_large", reason);
        let most = json!({ "docs": [{ "id": "a" }, { "id": "b" }] });
        assert!(database.post(endpoint).json(&most).send().await.status < 300, "{endpoint}");
    }
    assert_eq!(database.info().await["update_seq"], json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_a_request_asks_about_have_a_limit() {
    let server = Server::launch().arg("--limits-bulk-docs-max=2").start();
    let database = Database::create(&server, "db").await;
    let keys = "`keys` has too many documents: at most 2 are accepted";
    let revs = |endpoint: &str, what: &str| format!("`{endpoint}` names too many {what}: at most 2 are accepted");
    for (endpoint, too_many, reason) in [
        ("/_all_docs", json!({ "keys": ["a", "b", "c"] }), keys.to_owned()),
        ("/_local_docs", json!({ "keys": ["a", "b", "c"] }), keys.to_owned()),
        ("/_all_docs?keys=%5B%22a%22,%22b%22,%22c%22%5D", json!({}), keys.to_owned()),
        ("/_all_docs/queries", json!({ "queries": [{ "keys": ["a", "b"] }, { "keys": ["a"] }] }), keys.to_owned()),
        ("/_all_docs/queries?keys=%5B%22a%22%5D", json!({ "queries": [{}, {}, {}] }), keys.to_owned()),
        ("/_revs_diff", json!({ "a": [], "b": [], "c": [] }), revs("_revs_diff", "documents")),
        ("/_revs_diff", json!({ "a": ["1-a"], "b": ["1-a", "1-b"] }), revs("_revs_diff", "revisions")),
        ("/_missing_revs", json!({ "a": ["1-a", "1-b", "1-c"] }), revs("_missing_revs", "revisions")),
    ] {
        database.post(endpoint).json(&too_many).send().await.assert_error(413, "too_large", &reason);
    }
    for (endpoint, most) in [
        ("/_all_docs", json!({ "keys": ["a", "b"] })),
        ("/_all_docs/queries", json!({ "queries": [{ "keys": ["a"] }, {}, { "keys": ["b"] }] })),
        ("/_revs_diff", json!({ "a": ["1-a"], "b": ["1-a"] })),
    ] {
        database.post(endpoint).json(&most).expect(200).await;
    }
    let options = (0..101).map(|n| (format!("o{n}"), json!(n))).collect::<serde_json::Map<_, _>>();
    let reason = "an object of options has too many members: at most 100 are accepted";
    for endpoint in ["/_all_docs", "/_changes", "/_feed?live=false"] {
        database.post(endpoint).json(&options.clone().into()).send().await.assert_error(413, "too_large", reason);
    }
}
