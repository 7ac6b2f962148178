//! What the server says about itself, and what browsers need.

use serde_json::json;

use seqtide_tests::{Api, Database, Server};

#[tokio::test(flavor = "multi_thread")]
async fn the_welcome_names_the_api_level_and_the_vendor() {
    let mut server = Server::start();
    let api = Api::new(&server);
    let welcome = api.get("/").expect(200).await.json();
    assert_eq!(welcome["couchdb"], json!("Welcome"));
    assert!(welcome["version"].as_str().is_some_and(|version| version.starts_with("3.")), "{welcome}");
    assert_eq!(welcome["vendor"]["name"], json!("Seqtide"));
    assert_eq!(welcome["vendor"]["version"], json!(env!("CARGO_PKG_VERSION")));
    assert_eq!(welcome["uuid"].as_str().map(str::len), Some(32), "{welcome}");
    assert_eq!(api.request("HEAD", "/").expect(200).await.text(), "");
    server.stop();
    server.restart_on_same_port_and_data();
    assert_eq!(api.get("/").expect(200).await.json()["uuid"], welcome["uuid"], "replication ids rest on it");
}

#[tokio::test(flavor = "multi_thread")]
async fn up_and_uuids() {
    let server = Server::start();
    let api = Api::new(&server);
    assert_eq!(api.get("/_up").expect(200).await.json()["status"], json!("ok"));
    let uuids = api.get("/_uuids?count=3").expect(200).await.json();
    let mut uuids: Vec<String> = serde_json::from_value(uuids["uuids"].clone()).expect("a list of text");
    assert!(uuids.iter().all(|uuid| uuid.len() == 32), "{uuids:?}");
    uuids.sort();
    uuids.dedup();
    assert_eq!(uuids.len(), 3);
    assert_eq!(api.get("/_uuids").expect(200).await.json()["uuids"].as_array().map(Vec::len), Some(1));
    for count in ["x", "-1", "100000000"] {
        api.get(&format!("/_uuids?count={count}")).send().await.assert_status(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_a_first_set() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    database.put("a", &json!({})).await;
    database.changes("").await;
    let metrics = database.api.get("/metrics").expect(200).await;
    assert!(metrics.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
    let samples: Vec<&str> = metrics.text().lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    let is_ours = |line: &&str| line.starts_with("seqtide_") || line.starts_with("process_");
    assert!(samples.iter().all(is_ours), "{samples:?}");
    for word in ["commit", "batch", "rows", "feeds_open", "bytes", "write_queue_edits", "write_queue_bytes"] {
        assert!(samples.iter().any(|line| line.contains(word)), "no sample about {word} in {samples:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_loopback_origins_may_read_and_write() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    for origin in ["http://localhost:3000", "http://127.0.0.1:8080", "http://[::1]:5173"] {
        let answer = database.get("").header("origin", origin).expect(200).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        let preflight = database.request("OPTIONS", "/a").header("origin", origin);
        let preflight = preflight.header("access-control-request-method", "PUT");
        let preflight = preflight.header("access-control-request-headers", "content-type,if-match").send().await;
        assert!((200..300).contains(&preflight.status), "{origin}: {}", preflight.status);
        assert_eq!(preflight.header("access-control-allow-origin"), Some(origin));
        let methods = preflight.header("access-control-allow-methods").unwrap_or_default();
        assert!(methods.contains("PUT"), "{methods:?}");
        let headers = preflight.header("access-control-allow-headers").unwrap_or_default().to_ascii_lowercase();
        assert!(headers.contains("content-type") && headers.contains("if-match"), "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_origins_may_not() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    for origin in ["http://example.test", "http://localhost.example.test", "http://127.0.0.1.example.test", "null"] {
        let answer = database.get("").header("origin", origin).send().await;
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
        let preflight = database.request("OPTIONS", "/a").header("origin", origin);
        let preflight = preflight.header("access-control-request-method", "PUT").send().await;
        assert_eq!(preflight.header("access-control-allow-origin"), None, "{origin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_can_be_read_by_a_page_too() {
    let server = Server::start();
    let origin = "http://localhost:3000";
    let answer = Api::new(&server).get("/nope/a").header("origin", origin).expect(404).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
}

#[tokio::test(flavor = "multi_thread")]
async fn options_is_answered_without_an_origin_too() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    for rest in ["", "/a", "/_changes", "/_bulk_docs", "/_feed"] {
        let answer = database.request("OPTIONS", rest).send().await;
        assert!((200..300).contains(&answer.status), "OPTIONS {rest}: {}", answer.status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_pages_read_is_sent_to_pages_only() {
    let server = Server::start();
    let api = Api::new(&server);
    let page = api.get("/").header("origin", "http://localhost:3000").expect(200).await;
    let other = api.get("/").expect(200).await;
    for name in ["access-control-expose-headers", "access-control-allow-credentials"] {
        assert!(page.header(name).is_some(), "{name}");
        assert_eq!(other.header(name), None);
    }
    assert!(other.header("vary").is_some_and(|vary| vary.contains("Origin")), "caches tell the two apart");
}

/// Where no WebSocket is, a library would wait for an answer to its handshake.
#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_where_none_is_is_refused() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    for path in ["/_changes?feed=continuous", "/_all_docs", "/a"] {
        let request = database.get(path).header("connection", "upgrade").header("upgrade", "websocket");
        let answer = request.expect(400).await.json();
        assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("/{db}/_feed")), "{path}: {answer}");
    }
    // What else a client offers to speak is its own affair.
    database.get("/_all_docs").header("connection", "upgrade").header("upgrade", "h2c").expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_built_yet_says_so() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    for (method, path) in [
        ("POST", "/_find"),
        ("GET", "/_purged_infos_limit"),
        ("PUT", "/_security"),
        ("GET", "/_design/d/_view/v"),
        ("POST", "/_design/d/_view/v"),
        ("GET", "/_design/d/_info"),
    ] {
        let answer = database.request(method, path).send().await;
        assert_eq!(answer.status, 501, "{method} {path}");
    }
    let api = Api::new(&server);
    api.get("/_session").expect(404).await;
    api.request("POST", "/_session").expect(404).await;
    for path in ["/_membership", "/_scheduler/jobs", "/_node/_local/_config"] {
        api.get(path).expect(501).await;
    }
    api.request("POST", "/_replicate").expect(501).await;
    assert_eq!(database.request("POST", "/_bogus").send().await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_s_endpoints_are_not_below_its_design_documents() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    let rev = database.put("a", &json!({})).await.rev();
    let purge = database.post("/_design/d/_purge").json(&json!({ "a": [rev] })).send().await;
    purge.assert_error(501, "not_implemented", "attachments are not supported yet");
    database.get("/a").expect(200).await;
    database.post("/_design/d/_bulk_docs").json(&json!({ "docs": [{ "_id": "b" }] })).expect(501).await;
    database.get("/b").expect(404).await;
    let changes = database.get("/_design/d/_changes").send().await;
    changes.assert_error(404, "not_found", "missing");
}
