//! A connection's end: what was said last arrives, whatever the client says meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::raw_feed::RawFeed;
use super::until_open;
use super::websocket::{TEXT, closed_behind};
use seqtide_tests::database::fresh;
use seqtide_tests::http::SOON;
use seqtide_tests::{Database, raw};

const FEEDS: usize = 60;

async fn end_all(database: &Database) {
    let listed: Value = database.api.get("/_feeds?limit=1000").expect(200).await.json();
    let feeds = listed["feeds"].as_array().expect("a list");
    assert_eq!(feeds.len(), FEEDS);
    for feed in feeds {
        database.api.request("DELETE", &format!("/_feeds/{}", feed["id"])).expect(200).await;
    }
}

/// Goes on saying something until the server ends the connection, and reads what it says meanwhile; how that ended.
async fn talk(socket: TcpStream, word: Vec<u8>) -> (Vec<u8>, std::io::Result<usize>) {
    let (mut reader, mut writer) = socket.into_split();
    let talking = tokio::spawn(async move {
        while writer.write_all(&word).await.is_ok() {
            sleep(Duration::from_micros(200)).await;
        }
    });
    let mut text = Vec::new();
    let ended = timeout(SOON, reader.read_to_end(&mut text)).await.expect("an end in time");
    talking.abort();
    (text, ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_words_reach_a_client_that_talks() {
    let (server, database) = fresh().await;
    let mut clients = Vec::new();
    for _ in 0..FEEDS {
        let mut feed = RawFeed::open(server.address(), "/db/_feed?heartbeat=60000").await;
        feed.until(|feed| feed.text.contains("caught-up")).await;
        clients.push(tokio::spawn(talk(feed.socket, b"GET ".to_vec())));
    }
    until_open(&database.api, "sse", FEEDS as u64).await;
    end_all(&database).await;
    for client in clients {
        let (text, ended) = client.await.expect("a client");
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("\"reason\":\"revoked\"") && text.ends_with("0\r\n\r\n"), "{text:?}");
        assert!(ended.is_ok(), "the connection ends, it is not reset: {ended:?}");
    }
    until_open(&database.api, "sse", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_close_reaches_a_websocket_that_talks() {
    let (server, database) = fresh().await;
    let mut clients = Vec::new();
    for _ in 0..FEEDS {
        let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed?since=0&heartbeat=60000", "").await;
        assert_eq!(raw::read_frame(&mut socket).await.0, TEXT, "caught up");
        clients.push(tokio::spawn(talk(socket, raw::said(0x8a, b"pong"))));
    }
    until_open(&database.api, "websocket", FEEDS as u64).await;
    end_all(&database).await;
    for client in clients {
        let (text, ended) = client.await.expect("a client");
        let close = [&[0x88, 9][..], &1000_u16.to_be_bytes(), b"revoked"].concat();
        assert!(text.ends_with(&close), "{:?}", String::from_utf8_lossy(&text));
        assert!(ended.is_ok(), "the connection ends, it is not reset: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_that_is_behind_closes_with_a_close_frame_too() {
    let (server, database) = fresh().await;
    for (word, code) in [(raw::said(0x88, &1000_u16.to_be_bytes()), 1000), (raw::said(0x81, b"{}"), 1008)] {
        let path = "/db/_feed?since=now&include_docs=true&heartbeat=60000";
        let (mut socket, _head) = raw::upgraded(server.address(), path, "").await;
        assert_eq!(raw::read_frame(&mut socket).await.0, TEXT, "caught up");
        // More than the system's buffers hold and a group keeps: it has to read for itself.
        for number in 0..30 {
            let docs: Vec<Value> =
                (0..10).map(|n| json!({ "_id": format!("{code}-{number}-{n}"), "pad": "x".repeat(100_000) })).collect();
            database.bulk(&docs).await;
        }
        socket.write_all(&word).await.expect("what the client says");
        assert_eq!(closed_behind(&mut socket).await, code);
    }
}
