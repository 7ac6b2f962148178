//! Subscribers over Server-Sent Events, as many as are asked for, all on one thread; and the load that they are sent.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use seqtide_tests::Server;
use seqtide_tests::bench::current_thread;
use seqtide_tests::http::escaped;
use seqtide_tests::raw;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// How long an event may take.
const SOON: Duration = Duration::from_secs(20);
/// Connections being opened at once: fewer than a listener lets wait.
const OPENING: usize = 64;
/// Longer than a bench takes: heartbeats are not what is measured.
const HEARTBEAT_MS: u64 = 3_600_000;

/// Open feeds that report their rows.
pub struct Subscribers {
    rows: Receiver<Row>,
}

/// A row that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The subscriber's number.
    pub subscriber: usize,
    /// The document's id.
    pub id: String,
}

impl Subscribers {
    /// Opens live feeds of the database `/db`; each waits for what its selector, by its number, asks for.
    pub fn open(server: &Server, count: usize, selector: impl Fn(usize) -> Value) -> Subscribers {
        let requests: Vec<String> = (0..count).map(|number| request(&selector(number))).collect();
        let address = server.address();
        let (sender, rows) = channel();
        let (opened, all_opened) = channel();
        // It ends with the feeds, when the server does.
        thread::spawn(move || {
            current_thread().block_on(async {
                let opening = requests.into_iter().map(|request| open(address, request));
                let feeds: Vec<_> = stream::iter(opening).buffered(OPENING).collect().await;
                let reading = feeds.into_iter().enumerate();
                let readers: Vec<_> =
                    reading.map(|(number, socket)| tokio::spawn(read(socket, number, sender.clone()))).collect();
                let _ = opened.send(());
                for reader in readers {
                    let _ = reader.await;
                }
            });
        });
        all_opened.recv().expect("all feeds are open");
        Subscribers { rows }
    }

    /// Waits for the next row.
    pub fn next(&self) -> Row {
        self.rows.recv_timeout(SOON).expect("a row should have come")
    }

    /// Asserts that nothing has come that was not waited for.
    pub fn assert_no_more(&self) {
        assert_eq!(self.rows.try_recv().ok(), None, "a row that nobody waits for");
    }
}

/// HTTP/1.0: the answer is not in chunks.
fn request(selector: &Value) -> String {
    let selector = escaped(&selector.to_string());
    format!(
        "GET /db/_feed?heartbeat={HEARTBEAT_MS}&selector={selector} HTTP/1.0\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
    )
}

/// Opens a feed and waits until it is live.
async fn open(address: SocketAddr, request: String) -> TcpStream {
    let live = |text: &str| text.split_once("event: caught-up\n").is_some_and(|(_, rest)| rest.ends_with("\n\n"));
    let (socket, text) = raw::open(address, &request, live).await;
    assert!(text.starts_with("HTTP/1.0 200"), "{text}");
    socket
}

async fn read(mut socket: TcpStream, subscriber: usize, rows: Sender<Row>) {
    let mut unread = String::new();
    let mut piece = [0; 1024];
    while let Ok(length @ 1..) = socket.read(&mut piece).await {
        unread.push_str(std::str::from_utf8(&piece[..length]).expect("ids here are ASCII"));
        while let Some(end) = unread.find("\n\n") {
            let event: String = unread.drain(..end + 2).collect();
            let Some(row) = event.strip_prefix("data: ").and_then(|data| data.lines().next()) else { continue };
            let row: Value = serde_json::from_str(row).expect("a row");
            let id = row["id"].as_str().expect("an id").to_owned();
            if rows.send(Row { subscriber, id }).is_err() {
                return;
            }
        }
    }
}
