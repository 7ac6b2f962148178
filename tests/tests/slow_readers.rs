//! Readers that do not read: what they cost the server is bounded, they cost others nothing, and when they read again
//! they get every document's latest row.
//!
//! `SEQTIDE_STALLED_READERS` and `SEQTIDE_STALLED_ROWS` set how many there are and how much is written meanwhile.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use seqtide_bench::process::Process;
use seqtide_tests::doors::{Door, FeedSocket, HttpDoor, Item, feed_url};
use seqtide_tests::http::SOON;
use seqtide_tests::known_feeds::feeds_when;
use seqtide_tests::sse::SseParser;
use seqtide_tests::{Database, Server};

/// So many that what one costs too much shows beside chance.
const READERS: usize = 400;
const ROWS: usize = 20_000;
const BATCH: usize = 500;

/// What docs/limits.md says a reader that does not read costs at most.
const BYTES_A_READER: u64 = 128 << 10;
/// What two runs of the same load may differ by: how the allocator happens to keep what was freed.
const BYTES_OF_CHANCE: u64 = 16 << 20;

/// One at a time: what a server's memory comes to depends on how busy the machine is.
static ALONE: Mutex<()> = Mutex::const_new(());

fn number(variable: &str, default: usize) -> usize {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// What is no reader's cost is kept away: there is no log, of which rows wait for LMDB, and the allocator gives back at
/// once what was freed.
fn launch(tail_bytes_max: u64) -> Server {
    let tail = format!("--storage-tail-bytes-max={tail_bytes_max}");
    // Two heartbeats are how long a reader may take nothing.
    let launch = Server::launch().arg("--durability=relaxed").arg(tail).arg("--feeds-heartbeat-ms=150000");
    launch.env("MIMALLOC_PURGE_DELAY", "0").env("MIMALLOC_ABANDONED_PAGE_PURGE", "1").start()
}

/// A reader that has opened a feed of documents and read no more than its head.
enum Stalled {
    Sse(TcpStream),
    Lines(TcpStream),
    WebSocket(Box<FeedSocket>),
}

/// A connection of which little lies in the system's own buffers.
async fn narrow(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    socket.connect(server.address()).await.expect("a connection")
}

impl Stalled {
    async fn open(server: &Server, database: &Database, number: usize) -> Stalled {
        let mut socket = narrow(server).await;
        let query = "since=0&include_docs=true";
        // HTTP/1.0: the answer is not in chunks.
        let path = match number % 3 {
            0 => format!("/db/_feed?{query}"),
            1 => format!("/db/_changes?feed=continuous&heartbeat=30000&{query}"),
            _ => {
                let opened = FeedSocket::over(socket, &feed_url(server, database, query)).await;
                return Stalled::WebSocket(Box::new(opened.expect("a WebSocket")));
            }
        };
        let request = format!("GET {path} HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("the request");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(SOON, socket.read_u8()).await.expect("a head in time").expect("a head"));
        }
        assert!(head.starts_with(b"HTTP/1.0 200") || head.starts_with(b"HTTP/1.1 200"));
        if number.is_multiple_of(3) { Stalled::Sse(socket) } else { Stalled::Lines(socket) }
    }

    /// Reads after all, up to a sequence: the rows.
    async fn read_to(self, last: u64) -> Vec<Value> {
        let mut rows = Vec::new();
        let reached = |rows: &[Value]| rows.last().is_some_and(|row: &Value| row["seq"].as_u64() == Some(last));
        match self {
            Stalled::Sse(mut socket) => {
                let mut parser = SseParser::default();
                while !reached(&rows) {
                    let events = parser.push(&read_some(&mut socket).await);
                    let changes = events.iter().filter(|event| event.name == "message");
                    rows.extend(changes.map(|event| serde_json::from_str::<Value>(&event.data).expect("JSON")));
                }
            }
            Stalled::Lines(mut socket) => {
                let mut unread = Vec::new();
                while !reached(&rows) {
                    unread.extend(read_some(&mut socket).await);
                    let Some(end) = unread.iter().rposition(|byte| *byte == b'\n') else { continue };
                    let whole: Vec<u8> = unread.drain(..=end).collect();
                    let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                    rows.extend(lines.map(|line| serde_json::from_slice::<Value>(line).expect("JSON")));
                }
            }
            Stalled::WebSocket(mut socket) => {
                while !reached(&rows) {
                    rows.extend(socket.items().await.iter().filter_map(Item::row).cloned());
                }
            }
        }
        rows
    }
}

async fn read_some(socket: &mut TcpStream) -> Vec<u8> {
    let mut piece = vec![0; 64 << 10];
    let length = timeout(SOON, socket.read(&mut piece)).await.expect("more in time").expect("a feed that goes on");
    assert!(length > 0, "the feed ended");
    piece.truncate(length);
    piece
}

async fn open_stalled(server: &Server, database: &Database, readers: usize) -> Vec<Stalled> {
    let mut stalled = Vec::with_capacity(readers);
    for number in 0..readers {
        stalled.push(Stalled::open(server, database, number).await);
    }
    stalled
}

/// Anonymous memory of the server, in bytes.
fn anonymous_bytes(server: &Server) -> u64 {
    Process(server.pid()).anonymous_bytes().expect("a process")
}

/// The anonymous memory that stays: the least of a second in which it falls no more.
async fn settled_bytes(server: &Server) -> u64 {
    let (mut least, mut falls) = (u64::MAX, true);
    while std::mem::take(&mut falls) {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = anonymous_bytes(server);
            falls = falls || now < least;
            least = least.min(now);
        }
    }
    least
}

fn file_bytes(server: &Server) -> u64 {
    server.data_dir().join("databases/db/data.mdb").metadata().expect("a database").len()
}

/// Writes `rows` rows: each document twice.
async fn write(database: &Database, rows: usize) -> BTreeMap<String, String> {
    let mut revs: BTreeMap<String, String> = BTreeMap::new();
    for round in 0..2 {
        for batch in 0..rows / 2 / BATCH {
            let docs: Vec<Value> = (0..BATCH)
                .map(|n| {
                    let id = format!("d{:06}", batch * BATCH + n);
                    let mut doc = json!({ "_id": id, "round": round, "pad": "x".repeat(500) });
                    if let Some(rev) = revs.get(&id) {
                        doc["_rev"] = json!(rev);
                    }
                    doc
                })
                .collect();
            for result in database.bulk(&docs).await.as_array().expect("results") {
                let text =
                    |name: &str| result[name].as_str().unwrap_or_else(|| panic!("{name} in {result}")).to_owned();
                revs.insert(text("id"), text("rev"));
            }
        }
    }
    revs
}

/// What a run of the load ended with.
struct Run {
    server: Server,
    anonymous: u64,
    file: u64,
    stalled: Vec<Stalled>,
    revs: BTreeMap<String, String>,
}

async fn run(readers: usize, rows: usize) -> Run {
    let server = launch(8 << 20);
    let database = Database::create(&server, "db").await;
    let stalled = open_stalled(&server, &database, readers).await;
    let healthy = follow(&database, rows as u64);
    let revs = write(&database, rows).await;
    healthy.await.expect("a reader that reads gets every row");
    Run { anonymous: settled_bytes(&server).await, file: file_bytes(&server), server, stalled, revs }
}

/// A reader that reads: it gets every row, in order. It is never far behind, so nothing is superseded before it comes.
fn follow(database: &Database, rows: u64) -> JoinHandle<()> {
    let door = HttpDoor::sse(database, "include_docs=true");
    tokio::spawn(async move {
        let mut items = door.open(None, usize::MAX).await;
        let mut last = 0;
        while last < rows {
            let item = timeout(SOON, items.next()).await.expect("a row in time").expect("a feed that goes on");
            if let Some(row) = item.row() {
                let seq = row["seq"].as_u64().expect("a number");
                assert!(seq > last, "{seq} after {last}");
                last = seq;
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_do_not_read_cost_little_and_miss_nothing() {
    let _alone = ALONE.lock().await;
    let (readers, rows) = (number("SEQTIDE_STALLED_READERS", READERS), number("SEQTIDE_STALLED_ROWS", ROWS));
    let Run { anonymous: before, file: file_before, .. } = run(0, rows).await;
    let Run { server, anonymous, file, mut stalled, revs } = run(readers, rows).await;
    let each = anonymous.saturating_sub(before) / readers as u64;
    println!(
        "{readers} readers: {before} bytes without, {anonymous} with, {each} each; files {file_before} and {file}"
    );
    let bound = before + readers as u64 * BYTES_A_READER + BYTES_OF_CHANCE;
    assert!(anonymous <= bound, "{anonymous} bytes with {readers} readers, {before} without: {each} each");
    // It varies with when LMDB gets which rows; a reader that pinned its pages would have it grow with every commit.
    assert!(file <= file_before + file_before / 2, "the file grew to {file} bytes, without them to {file_before}");
    for reader in stalled.drain(..3) {
        let given = reader.read_to(rows as u64).await;
        assert!(given.is_sorted_by(|one, next| one["seq"].as_u64() < next["seq"].as_u64()), "rows out of order");
        assert!(given.len() < rows * 3 / 4, "{} rows of {rows}: what was superseded is skipped", given.len());
        let newest: BTreeMap<String, String> = given.iter().map(id_and_rev).collect();
        assert_eq!(newest, revs);
    }
    drop(server);
}

fn id_and_rev(row: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&row["id"]), text(&row["changes"][0]["rev"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_stalled_in_a_large_document_share_it() {
    const LARGE_READERS: usize = 100;
    const LARGE_BYTES: usize = 2_000_000;
    const DOCUMENTS: u64 = 10;
    let _alone = ALONE.lock().await;
    let anonymous = async |readers: usize| {
        // The tail holds all of them, in both runs.
        let server = launch(64 << 20);
        let database = Database::create(&server, "db").await;
        let stalled = open_stalled(&server, &database, readers).await;
        let healthy = follow(&database, DOCUMENTS);
        for number in 0..DOCUMENTS {
            database.put(&format!("large-{number}"), &json!({ "pad": "x".repeat(LARGE_BYTES) })).await;
        }
        healthy.await.expect("a reader that reads gets every row");
        let anonymous = settled_bytes(&server).await;
        drop(stalled);
        anonymous
    };
    let (without, with) = (anonymous(0).await, anonymous(LARGE_READERS).await);
    println!("{without} bytes without, {with} with {LARGE_READERS} readers");
    let bound = without + LARGE_READERS as u64 * BYTES_A_READER + BYTES_OF_CHANCE;
    assert!(with <= bound, "{with} bytes with {LARGE_READERS} readers, {without} without");
}

/// Writes more than lies in a connection's buffers, of documents that do.
async fn write_much(database: &Database) {
    for batch in 0..3 {
        let docs: Vec<Value> =
            (0..BATCH).map(|n| json!({ "_id": format!("d{batch}-{n}"), "pad": "x".repeat(20_000) })).collect();
        database.bulk(&docs).await;
    }
}

/// Waits until the server has so many feeds of which nothing more is taken: the anonymous memory that stays.
async fn when_stalled(server: &Server, database: &Database, count: usize) -> u64 {
    let mut sent = Vec::new();
    loop {
        let bytes = settled_bytes(server).await;
        let feeds = feeds_when(&database.api, |feeds| feeds.len() == count).await;
        let now: Vec<Value> = feeds.iter().map(|feed| feed["sent"].clone()).collect();
        if now == sent {
            return bytes;
        }
        sent = now;
    }
}

/// Whether the server's end of this connection is open.
fn is_open(server: &Server, client: SocketAddr) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the system's connections");
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next().expect("a port"), 16).ok();
    let ports = (Some(server.address().port()), Some(client.port()));
    let ends: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    // Its own address is the second column, the other end's the third; the tenth names the socket.
    let Some(end) = ends.iter().find(|end| (port(end[1]), port(end[2])) == ports) else { return false };
    let socket = format!("socket:[{}]", end[9]);
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("its descriptors");
    descriptors.flatten().any(|one| std::fs::read_link(one.path()).is_ok_and(|to| to.to_str() == Some(&socket)))
}

/// A text as a client sends it.
fn text_frame(text: &str) -> Vec<u8> {
    let length = u64::try_from(text.len()).expect("a length");
    [&[0x81, 0xff][..], &length.to_be_bytes(), &[0; 4], text.as_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_that_is_given_up_is_not_kept_for_a_client_that_does_not_read() {
    let _alone = ALONE.lock().await;
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    write_much(&database).await;
    let mut client = narrow(&server).await;
    let address = client.local_addr().expect("an address");
    let upgrade = "GET /db/_feed?since=0&include_docs=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(upgrade.as_bytes()).await.expect("the request");
    when_stalled(&server, &database, 1).await;
    assert!(is_open(&server, address));
    client.write_all(&text_frame("{}")).await.expect("options that come too late");
    feeds_when(&database.api, <[Value]>::is_empty).await;
    let deadline = Instant::now() + SOON;
    while is_open(&server, address) {
        assert!(Instant::now() < deadline, "its connection is kept");
        sleep(Duration::from_millis(20)).await;
    }
}

/// What a client says while it does not read is kept in part: it is not listened to any more then.
#[tokio::test(flavor = "multi_thread")]
async fn long_texts_of_readers_that_do_not_read_are_not_all_kept() {
    const TALKERS: usize = 10;
    const TEXTS: usize = 16;
    let _alone = ALONE.lock().await;
    let server = launch(8 << 20);
    let database = Database::create(&server, "db").await;
    write_much(&database).await;
    let mut talkers = Vec::new();
    for _ in 0..TALKERS {
        let url = format!("ws://{}/_feed/many", server.address());
        let mut socket = FeedSocket::over(narrow(&server).await, &url).await.expect("a WebSocket");
        socket.send(&json!({ "subscribe": "db", "since": 0, "include_docs": true }).to_string()).await;
        talkers.push(socket);
    }
    let before = when_stalled(&server, &database, TALKERS).await;
    let said = Arc::new(AtomicUsize::new(0));
    let mut talking = JoinSet::new();
    for mut socket in talkers {
        let said = Arc::clone(&said);
        talking.spawn(async move {
            for _ in 0..TEXTS {
                socket.send(&" ".repeat(900_000)).await;
                said.fetch_add(1, Ordering::Relaxed);
            }
            socket
        });
    }
    // No more is taken of anybody, or there is nothing more to be said.
    let (mut heard, mut now) = (usize::MAX, before);
    while heard != said.load(Ordering::Relaxed) {
        heard = said.load(Ordering::Relaxed);
        now = settled_bytes(&server).await;
    }
    println!("{before} bytes before, {now} when {TALKERS} have said {heard} texts");
    // One that waits, and what it came in, where 16 were kept.
    let bound = before + TALKERS as u64 * 4_000_000 + BYTES_OF_CHANCE;
    assert!(now <= bound, "{now} bytes with {TALKERS} who talk and do not read, {before} before");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_subscription_was_given_is_not_kept_where_nothing_asks_for_it() {
    const SUBSCRIPTIONS: u64 = 40;
    const BYTES: usize = 900_000;
    let _alone = ALONE.lock().await;
    let server = launch(8 << 20);
    Database::create(&server, "db").await;
    let mut socket = FeedSocket::open(&format!("ws://{}/_feed/many", server.address())).await.expect("a WebSocket");
    let before = settled_bytes(&server).await;
    for number in 0..SUBSCRIPTIONS {
        let blanks = " ".repeat(BYTES);
        socket.send(&format!("{{\"subscribe\":\"s-{number}\",\"db\":\"db\"{blanks}}}")).await;
        let is_there = |item: &Value| item["event"] == "subscribed" && item["sub"] == format!("s-{number}");
        loop {
            let Some(Message::Text(text)) = socket.next().await else { panic!("it is over") };
            if serde_json::from_str::<Vec<Value>>(&text).expect("a list").iter().any(is_there) {
                break;
            }
        }
    }
    let now = settled_bytes(&server).await;
    println!("{before} bytes without, {now} with {SUBSCRIPTIONS} subscriptions");
    assert!(now <= before + BYTES_OF_CHANCE, "{now} bytes with {SUBSCRIPTIONS} subscriptions, {before} without");
}
