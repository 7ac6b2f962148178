//! Readers that do not read: how far they are behind is told, and they can be ended all the same.

use std::net::SocketAddr;

use seqtide_tests::database::fresh;
use seqtide_tests::http::escaped;
use seqtide_tests::known_feeds::feeds_when;
use seqtide_tests::{Database, raw};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

/// Opens a feed in whose buffers little lies, and reads nothing of it.
async fn stalled(database: &Database, address: SocketAddr, query: &str) -> TcpStream {
    stalled_at(address, &format!("GET {}/_feed?{query} HTTP/1.1", database.path())).await
}

async fn stalled_at(address: SocketAddr, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut socket = socket.connect(address).await.expect("a connection");
    socket.write_all(format!("{request}\r\nHost: x\r\n\r\n").as_bytes()).await.expect("the request");
    socket
}

async fn write_large(database: &Database) {
    for number in 0..4 {
        database.put(&format!("large-{number}"), &json!({ "pad": "x".repeat(6_000_000) })).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn how_far_a_live_reader_is_behind_that_stalls_is_told_and_it_can_be_ended() {
    let (server, database) = fresh().await;
    let _stalled = stalled(&database, server.address(), "include_docs=true").await;
    feeds_when(&database.api, |feeds| feeds.len() == 1 && feeds[0]["state"] == "live").await;
    write_large(&database).await;
    let is_behind = |feeds: &[Value]| {
        feeds[0]["lag"]["rows"].as_u64() > Some(0) && feeds[0]["lag"]["seconds"].as_f64() >= Some(1.0)
    };
    let listed = feeds_when(&database.api, is_behind).await;
    assert_eq!(listed[0]["state"], "live", "it was told nothing else: {listed:#?}");
    assert!(listed[0]["seq"].as_u64() < Some(4), "{listed:#?}");
    let buckets = async |unit: &str, le: &str| {
        let sample = format!("seqtide_feeds_lag_{unit}_bucket{{kind=\"lines\",le=\"{le}\"}}");
        database.api.metric(&sample).await.unwrap_or_else(|| panic!("no {sample}"))
    };
    // The other one, which reads, has everything.
    let mut reads = database.get("/_feed").open().await;
    reads.until(|text| text.contains("caught-up")).await;
    feeds_when(&database.api, |feeds| feeds.len() == 2 && feeds[1]["state"] == "live").await;
    for (unit, le, feeds) in [("rows", "0", 1), ("rows", "10", 2), ("seconds", "0", 1), ("seconds", "+Inf", 2)] {
        assert_eq!(buckets(unit, le).await, feeds, "{unit} up to {le}");
    }
    database.api.request("DELETE", &format!("/_feeds/{}", listed[0]["id"])).expect(200).await;
    feeds_when(&database.api, |feeds| feeds.len() == 1).await;
    assert_eq!(buckets("rows", "+Inf").await, 1, "a feed that has ended lacks nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stalls_while_it_catches_up_is_told_of_and_can_be_ended() {
    let (server, database) = fresh().await;
    write_large(&database).await;
    let _stalled = stalled(&database, server.address(), "include_docs=true&since=0").await;
    let (_websocket, _head) = raw::upgraded(server.address(), "/db/_feed?include_docs=true&since=0", "").await;
    let listed = feeds_when(&database.api, |feeds| feeds.len() == 2).await;
    for feed in listed {
        assert_eq!(feed["state"], "catching-up");
        database.api.request("DELETE", &format!("/_feeds/{}", feed["id"])).expect(200).await;
    }
    feeds_when(&database.api, <[Value]>::is_empty).await;
}

/// Its connection cannot be taken over, and is cut all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_over_http_1_0_that_stalls_can_be_ended() {
    let (server, database) = fresh().await;
    write_large(&database).await;
    let subscription = json!({ "subscribe": "db", "since": 0, "include_docs": true }).to_string();
    let mut stalled = Vec::new();
    for path in [
        "/db/_feed?include_docs=true&since=0".to_owned(),
        "/db/_changes?feed=continuous&include_docs=true".to_owned(),
        format!("/_feed/many?subscriptions={}", escaped(&subscription)),
    ] {
        stalled.push(stalled_at(server.address(), &format!("GET {path} HTTP/1.0")).await);
    }
    for feed in feeds_when(&database.api, |feeds| feeds.len() == 3).await {
        database.api.request("DELETE", &format!("/_feeds/{}", feed["id"])).expect(200).await;
    }
    feeds_when(&database.api, <[Value]>::is_empty).await;
}
