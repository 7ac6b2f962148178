//! Feeds behind proxies with default settings: what the server says comes through at once, one by one, and who leaves
//! is gone on both sides.

use std::net::SocketAddr;
use std::time::Duration;

use seqtide_tests::database::fresh;
use seqtide_tests::http::SOON;
use seqtide_tests::proxy::Proxy;
use seqtide_tests::{Api, Database, Server, raw};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// A feed through a proxy, as bytes.
struct Through {
    what: String,
    socket: TcpStream,
    text: String,
}

impl Through {
    async fn open(proxy: SocketAddr, path: &str, accept: &str) -> Through {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
        let (socket, text) = raw::open(proxy, &request, |text| text.contains("\r\n\r\n")).await;
        assert!(text.starts_with("HTTP/1.1 200 "), "{path}: {text}");
        Through { what: format!("{path} as {accept}"), socket, text }
    }

    async fn open_websocket(proxy: SocketAddr, path: &str) -> Through {
        let (socket, head) = raw::upgraded(proxy, path, "").await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{path}: {head}");
        Through { what: format!("{path} as a WebSocket"), socket, text: String::new() }
    }

    /// Reads until so much of this has come in all.
    async fn until(&mut self, what: &str, times: usize) {
        while self.text.matches(what).count() < times {
            let mut piece = [0; 4096];
            match timeout(SOON, self.socket.read(&mut piece)).await {
                Ok(Ok(length @ 1..)) => self.text.push_str(&String::from_utf8_lossy(&piece[..length])),
                other => panic!("{}: waiting for {times} of {what:?}, got {other:?} after {:?}", self.what, self.text),
            }
        }
    }
}

async fn until_no_feed_is_open(api: &Api) {
    let deadline = Instant::now() + SOON;
    while api.get("/_feeds").expect(200).await.json()["open"] != 0 {
        assert!(Instant::now() < deadline, "who has left is listened to");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn passes_everything_at_once(server: &Server, database: &Database, proxy: &Proxy) {
    let address = proxy.address();
    for (path, accept) in
        [("_feed?heartbeat=300", "text/event-stream"), ("_feed?heartbeat=300", "application/x-ndjson")]
    {
        let mut feed = Through::open(address, &format!("/db/{path}"), accept).await;
        // On an empty database too: nothing waits for a first row.
        feed.until("caught-up\"", 1).await;
        rows_and_heartbeats(database, &mut feed, "\"event\":\"heartbeat\"").await;
    }
    for (form, heartbeat) in [("eventsource", "event: heartbeat"), ("continuous", "\n\r\n")] {
        let path = format!("/db/_changes?feed={form}&since=now&heartbeat=300");
        let mut feed = Through::open(address, &path, "*/*").await;
        rows_and_heartbeats(database, &mut feed, heartbeat).await;
    }
    let mut feed = Through::open_websocket(address, "/db/_feed?heartbeat=300").await;
    feed.until("caught-up\"", 1).await;
    rows_and_heartbeats(database, &mut feed, "\"event\":\"heartbeat\"").await;
    drop(feed);
    until_no_feed_is_open(&Api::new(server)).await;
}

/// Each row comes before the next is written, and heartbeats come while none is.
async fn rows_and_heartbeats(database: &Database, feed: &mut Through, heartbeat: &str) {
    for number in 0..5 {
        let id = format!("d{number}-{}", feed.what.len());
        let id = format!("{id}-{}", database.info().await["update_seq"]);
        database.put(&id, &json!({})).await;
        feed.until(&format!("\"id\":\"{id}\""), 1).await;
    }
    let so_far = feed.text.matches(heartbeat).count();
    feed.until(heartbeat, so_far + 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_on_what_comes_when_it_comes() {
    let (server, database) = fresh().await;
    passes_everything_at_once(&server, &database, &Proxy::nginx(server.address())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_passes_on_what_comes_when_it_comes() {
    let (server, database) = fresh().await;
    passes_everything_at_once(&server, &database, &Proxy::haproxy(server.address())).await;
}
