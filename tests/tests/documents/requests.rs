//! What holds for every request, whatever it is for.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::fresh;
use seqtide_tests::http::SOON;
use seqtide_tests::raw::{dechunked, exchange, open};
use seqtide_tests::{Database, Server};

#[tokio::test(flavor = "multi_thread")]
async fn a_post_may_stand_for_another_method() {
    let (_server, database) = fresh().await;
    let post = |rest: &str, method: &str| database.post(rest).header("x-http-method-override", method);
    let rev = post("/a", "PUT").json(&json!({ "n": 1 })).expect(201).await.rev();
    assert_eq!(post("/a", "GET").expect(200).await.json()["n"], json!(1));
    assert_eq!(post("/a", "HEAD").expect(200).await.json()["n"], json!(1), "a POST has a body");
    post("/a", "COPY").header("destination", "b").expect(201).await;
    post(&format!("/a?rev={rev}"), "DELETE").expect(200).await;
    post("", "POST").json(&json!({ "_id": "c" })).expect(201).await;
    assert_eq!(database.info().await["doc_count"], json!(2));
    for method in ["PATCH", "put", "OPTIONS", "nonsense"] {
        let reason = "X-HTTP-Method-Override is one of GET, HEAD, POST, PUT, DELETE, COPY";
        post("/b", method).json(&json!({})).send().await.assert_error(400, "bad_request", reason);
    }
    let get = database.get("/b").header("x-http-method-override", "DELETE").expect(200).await;
    assert_eq!(get.json()["_id"], json!("b"), "on anything but a POST it means nothing");
}

/// CouchDB's documentation and its users have such requests for `curl`.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_may_have_what_it_should_have_escaped() {
    let (server, database) = fresh().await;
    for id in ["a", "b", "ä"] {
        database.put(id, &json!({})).await;
    }
    for (query, expected) in
        [(r#"startkey="b""#, "b ä"), (r#"keys=["ä","a"]"#, "ä a"), (r#"startkey="<`"&limit=1"#, "a")]
    {
        let path = database.path();
        let request = format!("GET {path}/_all_docs?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = exchange(server.address(), &request).await;
        assert_eq!(answer.status_line, "HTTP/1.1 200 OK", "{query}");
        let listing: Value = serde_json::from_str(&dechunked(&answer.body)).expect("JSON");
        let rows = listing["rows"].as_array().expect("rows").iter();
        let ids: Vec<_> = rows.filter_map(|row| row["id"].as_str()).collect();
        assert_eq!(ids.join(" "), expected, "{query}");
    }
}

/// Java's client makes such an offer with each request, and sends the next one on the same connection.
#[tokio::test(flavor = "multi_thread")]
async fn who_offers_to_go_on_in_http_2_goes_on_as_it_is() {
    let (server, database) = fresh().await;
    let put = |id: &str, more: &str| {
        let path = database.path();
        format!("PUT {path}/{id} HTTP/1.1\r\n{more}Host: localhost\r\nContent-Length: 2\r\n\r\n{{}}")
    };
    let offer = "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\nUpgrade: h2c\r\n";
    let answered = |text: &str| text.contains("\"ok\":true");
    let (mut socket, first) = open(server.address(), &put("a", offer), answered).await;
    assert!(!first.to_lowercase().contains("upgrade"), "{first}");
    socket.write_all(put("b", "Connection: close\r\n").as_bytes()).await.expect("the same connection");
    let mut second = String::new();
    socket.read_to_string(&mut second).await.expect("the answer");
    assert!(second.starts_with("HTTP/1.1 201"), "{second}");
    assert_eq!(database.info().await["doc_count"], json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_slashes_are_one() {
    let (_server, database) = fresh().await;
    database.put("a", &json!({})).await;
    for rest in ["//a", "//_all_docs", "//_changes", "///"] {
        database.get(rest).expect(200).await;
    }
}

/// Every acknowledged write is committed, by the one server there is.
#[tokio::test(flavor = "multi_thread")]
async fn what_asks_for_a_kind_of_commit_is_accepted() {
    let (_server, database) = fresh().await;
    for (id, full) in [("a", "true"), ("b", "false")] {
        let put = database.request("PUT", &format!("/{id}?w=1")).header("x-couch-full-commit", full);
        put.json(&json!({})).expect(201).await;
        let bulk = database.post("/_bulk_docs").header("x-couch-full-commit", full);
        let docs = json!({ "docs": [{ "_id": format!("{id}-bulk") }], "w": 1 });
        assert_eq!(bulk.json(&docs).expect(201).await.json()[0]["ok"], json!(true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_a_name_of_its_own() {
    let (_server, database) = fresh().await;
    let mut ids = Vec::new();
    for (method, rest, status) in [
        ("GET", "", 200),
        ("HEAD", "", 200),
        ("GET", "/nope", 404),
        ("PATCH", "", 405),
        ("GET", "/_changes", 200),
        ("OPTIONS", "", 204),
        ("POST", "/_find", 501),
    ] {
        let answer = database.request(method, rest).expect(status).await;
        let id = answer.header("x-couch-request-id").unwrap_or_default().to_owned();
        let is_hex = id.len() == 10 && id.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
        assert!(is_hex, "{method} {rest}: {id:?}");
        ids.push(id);
    }
    let preflight = database.request("OPTIONS", "/a").header("origin", "http://localhost:3000");
    let preflight = preflight.header("access-control-request-method", "PUT").send().await;
    ids.push(preflight.header("x-couch-request-id").expect("preflights too").to_owned());
    let different: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_request_is_in_the_log_under_its_name() {
    // What is not built is no failure to warn of.
    let mut server = Server::launch().arg("--log=info,seqtide_server=debug").start();
    let database = Database::create(&server, "db").await;
    let failed = database.post("/_find").expect(501).await;
    let name = failed.header("x-couch-request-id").expect("a name").to_owned();
    let fine = database.get("").expect(200).await.header("x-couch-request-id").expect("a name").to_owned();
    // All of standard error is there once the process has ended.
    server.stop();
    let log = server.stderr();
    assert!(log.lines().any(|line| line.contains(&name) && line.contains("/db/_find")), "{name} is not in {log}");
    assert!(!log.contains(&fine), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_expects_to_be_asked_for_its_body_is_asked() {
    let (server, _database) = fresh().await;
    let head = "PUT /db/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close";
    let answer = exchange(server.address(), &format!("{head}\r\nExpect: 100-continue\r\n\r\n{{}}")).await;
    assert_eq!(answer.status_line, "HTTP/1.1 100 Continue");
    assert!(answer.body.starts_with("HTTP/1.1 201 Created\r\n"), "{}", answer.body);
}

/// What the HTTP library itself refuses has a status and no body.
#[tokio::test(flavor = "multi_thread")]
async fn a_url_beyond_all_bounds_is_refused() {
    let (server, _database) = fresh().await;
    let request = format!("GET /db?x={} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(66_000));
    let answer = exchange(server.address(), &request).await;
    assert_eq!((answer.status_line.as_str(), answer.body.as_str()), ("HTTP/1.1 400 Bad Request", ""));
}

/// What slow clients have sent so far takes memory that others are not given.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_come_slowly_take_so_much_together_and_no_more() {
    const BYTES: &str = "seqtide_request_bodies_bytes";
    let limits = ["document", "request", "bodies"].map(|what| format!("--limits-{what}-bytes-max"));
    let server = limits.iter().zip(["1000000", "1000000", "2000000"]);
    let server = server.fold(Server::launch(), |launch, (limit, bytes)| launch.arg(format!("{limit}={bytes}"))).start();
    let database = Database::create(&server, "db").await;
    let text = "a".repeat(900_000);
    let held = async |least: u64| {
        while database.api.metric(BYTES).await.expect("a gauge") < least {
            tokio::task::yield_now().await;
        }
    };
    let mut slow = Vec::new();
    for id in ["slow0", "slow1"] {
        let head = format!("PUT /db/{id} HTTP/1.1\r\nHost: seqtide\r\nContent-Length: {}\r\n\r\n", text.len() + 8);
        let (socket, _) = open(server.address(), &format!("{head}{{\"a\":\"{text}"), |_| true).await;
        slow.push(socket);
        timeout(SOON, held(slow.len() as u64 * 900_000)).await.expect("all of it has come");
    }
    let refused = database.request("PUT", "/third").json(&json!({ "a": text })).send().await;
    let reason = "the bodies of requests take all of the 2000000 bytes that they may take together";
    refused.assert_error(503, "service unavailable", reason);
    assert_eq!(refused.header("retry-after"), Some("1"));
    database.put("small", &json!({})).await;
    for (place, socket) in slow.iter_mut().enumerate() {
        socket.write_all(b"\"}").await.expect("the rest");
        let mut line = [0; 12];
        timeout(SOON, socket.read_exact(&mut line)).await.expect("an answer in time").expect("an answer");
        assert_eq!(&line, b"HTTP/1.1 201", "{place}");
    }
    database.put("third", &json!({ "a": text })).await;
    assert_eq!(database.api.metric(BYTES).await, Some(0), "nobody needs them any more");
}
