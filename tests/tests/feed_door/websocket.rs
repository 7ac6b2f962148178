//! What is WebSocket's own: messages of many items, how a feed starts, how it closes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{caught_up, end, fresh, open as opening, write};
use seqtide_tests::doors::{FeedSocket, Item, feed_url};
use seqtide_tests::http::SOON;
use seqtide_tests::words::beating;
use seqtide_tests::{Database, Server, raw};

fn item(text: &str) -> Item {
    Item::from_json(serde_json::from_str(text).expect("JSON"))
}

async fn open(server: &Server, database: &Database, query: &str) -> FeedSocket {
    FeedSocket::open(&feed_url(server, database, query)).await.expect("a WebSocket")
}

#[tokio::test(flavor = "multi_thread")]
async fn options_in_the_url_start_the_feed_at_once() {
    let (server, database) = fresh().await;
    let rows = write(&database, &["a", "b"]).await;
    let mut socket = open(&server, &database, "since=0&live=false").await;
    let (items, code) = socket.to_close().await;
    assert_eq!(
        items,
        [item(&opening(0, 2)), item(&rows[0]), item(&rows[1]), item(&caught_up(2)), item(&end(2, "caught-up"))]
    );
    assert_eq!(code, CloseCode::Normal);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_message_carries_the_options_otherwise() {
    let (server, database) = fresh().await;
    let rows = write(&database, &["a", "b", "c"]).await;
    let mut socket = open(&server, &database, "").await;
    socket.send(&json!({ "since": 0, "doc_ids": ["b"], "limit": 1 }).to_string()).await;
    let (items, code) = socket.to_close().await;
    assert_eq!(items, [item(&opening(0, 3)), item(&rows[1]), item(&end(2, "limit"))]);
    assert_eq!(code, CloseCode::Normal);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_event_id_wins_over_since_here_too() {
    let (server, database) = fresh().await;
    let rows = write(&database, &["a", "b", "c"]).await;
    for query in ["?since=0&live=false", ""] {
        let (mut socket, _head) =
            raw::upgraded(server.address(), &format!("/db/_feed{query}"), "Last-Event-ID: 2\r\n").await;
        if query.is_empty() {
            socket.write_all(&raw::said(0x81, br#"{"since":0,"live":false}"#)).await.expect("the options");
        }
        let mut items = Vec::new();
        while items.len() < 4 {
            let (_, payload) = raw::read_frame(&mut socket).await;
            let said: Vec<Value> = serde_json::from_slice(&payload).expect("a list");
            items.extend(said.into_iter().map(Item::from_json));
        }
        let whole = [item(&opening(2, 3)), item(&rows[2]), item(&caught_up(3)), item(&end(3, "caught-up"))];
        assert_eq!(items, whole, "{query:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_is_none_is_told_what_would_be_one() {
    let (server, _database) = fresh().await;
    for (method, version, key, status, said) in [
        ("GET", "8", "dGhlIHNhbXBsZSBub25jZQ==", "400 Bad Request", "sec-websocket-version: 13"),
        ("GET", "13", "none", "400 Bad Request", "16 bytes in Base64"),
        ("POST", "13", "dGhlIHNhbXBsZSBub25jZQ==", "405 Method Not Allowed", "allow: GET"),
    ] {
        for path in ["/db/_feed", "/_feed", "/_feed/many"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: {version}\r\nSec-WebSocket-Key: {key}\r\n\r\n"
            );
            let (_socket, answer) = raw::open(server.address(), &request, |text| text.ends_with("}\n")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{path}: {answer}");
            assert!(answer.contains(said), "{path}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_options_or_message_it_starts_by_itself_after_a_while() {
    let server = Server::launch().arg("--feeds-websocket-start-ms=700").start();
    let database = Database::create(&server, "db").await;
    write(&database, &["a"]).await;
    let start = Instant::now();
    let mut socket = open(&server, &database, "").await;
    assert_eq!(socket.items().await, [item(&opening(1, 1))], "since is now by default");
    assert!(start.elapsed() >= Duration::from_millis(600), "it waits for a message first: {:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_share_messages() {
    let (server, database) = fresh().await;
    let docs: Vec<Value> = (0..2000).map(|number| json!({ "_id": format!("d{number}") })).collect();
    database.bulk(&docs).await;
    let mut socket = open(&server, &database, "since=0").await;
    let (mut rows, mut messages) = (0, 0);
    while rows < 2000 {
        rows += socket.items().await.iter().filter(|item| item.row().is_some()).count();
        messages += 1;
    }
    assert!(messages <= 500, "{messages} messages for 2000 rows: as many items as are ready go in one");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_heartbeats_arrive_live() {
    let (server, database) = fresh().await;
    let mut socket = open(&server, &database, "heartbeat=50").await;
    assert_eq!(socket.at_least(2).await, [item(&beating(0, 0, 50)), item(&caught_up(0))]);
    let row = write(&database, &["a"]).await;
    let mut seen = Vec::new();
    while !seen.contains(&item("{\"event\":\"heartbeat\",\"seq\":1,\"pending\":0}")) {
        seen.extend(socket.items().await);
    }
    assert!(seen.contains(&item(&row[0])), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_the_url_are_answered_instead_of_an_upgrade() {
    let (server, database) = fresh().await;
    let nope = Database::at(&server, "nope");
    for (database, query, status) in
        [(&database, "bogus=1", 400), (&database, "since=abc", 400), (&nope, "since=0", 404)]
    {
        match FeedSocket::open(&feed_url(&server, database, query)).await.map_err(|error| *error) {
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), status, "{query}"),
            Err(other) => panic!("{query}: {other}"),
            Ok(_) => panic!("{query} should be refused"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_the_first_message_close_with_policy() {
    let (server, database) = fresh().await;
    for message in ["{\"bogus\":1}", "[]", "{", "{\"since\":\"abc\"}"] {
        let mut socket = open(&server, &database, "").await;
        socket.send(message).await;
        let (_, code) = socket.to_close().await;
        assert_eq!(code, CloseCode::Policy, "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_message_too_big_closes_with_size() {
    let server = Server::launch().arg("--limits-feed-body-bytes-max=1000").start();
    let database = Database::create(&server, "db").await;
    let mut socket = open(&server, &database, "").await;
    socket.send(&json!({ "prefix": "x".repeat(2000) }).to_string()).await;
    assert_eq!(socket.to_close().await.1, CloseCode::Size);
}

/// CORS does not hold for WebSockets: without this any page could read what listens on the reader's own machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_strange_page_may_not_connect() {
    let (server, _database) = fresh().await;
    for (origin, status) in [
        ("Origin: http://evil.example\r\n", "403"),
        ("Origin: null\r\n", "403"),
        ("Origin: http://localhost:3000\r\n", "101"),
        ("", "101"),
    ] {
        let (_socket, head) = raw::upgraded(server.address(), "/db/_feed?since=0", origin).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{origin}{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_from_the_future_is_refused_if_asked_so() {
    let (server, database) = fresh().await;
    let mut socket = open(&server, &database, "since=99&on_rewind=error").await;
    let (items, code) = socket.to_close().await;
    assert_eq!((items.len(), code), (0, CloseCode::Policy));
}

/// Source: RFC 6455, 7.1.1: the server ends the connection first.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_behind_its_close_whether_or_not_the_client_answers() {
    let (server, _database) = fresh().await;
    for (path, said, code) in [
        ("/db/_feed?since=0&live=false", &[][..], 1000_u16),
        ("/db/_feed", b"\x81\x82\0\0\0\0[]", 1008),
        ("/_feed/many", b"\x82\x82\0\0\0\0{}", 1003),
    ] {
        let (mut socket, _head) = raw::upgraded(server.address(), path, "").await;
        socket.write_all(said).await.expect("a message");
        let mut rest = Vec::new();
        timeout(SOON, socket.read_to_end(&mut rest)).await.expect("an end in time").expect("an end");
        let close = rest.windows(4).rfind(|bytes| bytes[0] == 0x88).expect("a close frame");
        assert_eq!(close[2..], code.to_be_bytes(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_message_comes_in_fragments() {
    let (server, database) = fresh().await;
    let pad = "ü".repeat(100_000);
    database.put("large", &json!({ "pad": pad })).await;
    let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed?since=0&include_docs=true", "").await;
    let (first, _opening) = raw::read_frame(&mut socket).await;
    assert_eq!(first, 0x81, "a text in one frame");
    let (mut message, mut frames) = (Vec::new(), 0);
    loop {
        let (first, payload) = raw::read_frame(&mut socket).await;
        let (last, opcode) = (first & 0x80 != 0, first & 0x0f);
        assert_eq!(opcode, if frames == 0 { 1 } else { 0 }, "a text, then continuations");
        assert!(payload.len() <= 16 << 10, "{} bytes", payload.len());
        message.extend(payload);
        frames += 1;
        if last {
            break;
        }
    }
    let rows: serde_json::Value = serde_json::from_slice(&message).expect("a JSON message");
    assert_eq!(rows[0]["doc"]["pad"], json!(pad));
    assert!(frames > 10, "{frames} frames");
}
