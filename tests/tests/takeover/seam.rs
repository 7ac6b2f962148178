//! Feeds that come while others read and everyone writes: each gets every row behind its place once, in order.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::raw_feed::RawFeed;
use seqtide_tests::database::fresh;
use seqtide_tests::{Database, Server, raw};

const WRITERS: u64 = 4;
const ROWS_EACH: u64 = 600;
const READERS: u64 = 60;

/// Where a reader begins and what it asks for.
fn path(number: u64, written: u64) -> (String, u64) {
    let since = match number % 3 {
        0 => 0,
        1 => written,
        _ => written / 2,
    };
    let door = match number % 4 {
        0 | 1 => "_feed?heartbeat=30000",
        2 => "_feed?heartbeat=30000&include_docs=true",
        _ => "_changes?feed=eventsource&heartbeat=30000",
    };
    (format!("/db/{door}&since={since}"), since)
}

async fn write(database: Database, writer: u64, written: watch::Sender<u64>) {
    let mut number = 0;
    while number < ROWS_EACH {
        // Of one size and another: a commit may lie across any boundary.
        let batch = (1 + (writer + number) % 7).min(ROWS_EACH - number);
        let docs: Vec<Value> = (number..number + batch)
            .map(|n| json!({ "_id": format!("w{writer}-{n:04}"), "pad": "x".repeat(100) }))
            .collect();
        database.bulk(&docs).await;
        number += batch;
        written.send_modify(|rows| *rows += batch);
    }
}

async fn follow(address: SocketAddr, number: u64, mut written: watch::Receiver<u64>) {
    // They come one after the other, while writes go on.
    let begin = number * WRITERS * ROWS_EACH / READERS;
    let written = *written.wait_for(|rows| *rows >= begin).await.expect("writers");
    let (path, since) = path(number, written);
    let rows =
        if number % 5 == 4 { rows_of_messages(address, &path).await } else { rows_of_events(address, &path).await };
    let seqs: Vec<u64> = rows.iter().map(|row| row["seq"].as_u64().expect("a number")).collect();
    let expected: Vec<u64> = (since + 1..=WRITERS * ROWS_EACH).collect();
    assert_eq!(seqs, expected, "{path}");
}

async fn rows_of_events(address: SocketAddr, path: &str) -> Vec<Value> {
    let mut feed = RawFeed::open(address, path).await;
    let last = format!("\nid: {}\n", WRITERS * ROWS_EACH);
    feed.until(|feed| feed.text.contains(&last)).await;
    feed.rows()
}

async fn rows_of_messages(address: SocketAddr, path: &str) -> Vec<Value> {
    let (mut socket, head) = raw::upgraded(address, &path.replace("_changes?feed=eventsource&", "_feed?"), "").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let mut rows: Vec<Value> = Vec::new();
    while rows.last().is_none_or(|row| row["seq"] != WRITERS * ROWS_EACH) {
        let message = read_message(&mut socket).await;
        let items: Vec<Value> = serde_json::from_slice(&message).expect("a JSON array");
        rows.extend(items.into_iter().filter(|item| item.get("id").is_some()));
    }
    rows
}

/// Reads a message, in one frame or several.
async fn read_message(socket: &mut TcpStream) -> Vec<u8> {
    let mut message = Vec::new();
    loop {
        let (first, part) = raw::read_frame(socket).await;
        message.extend(part);
        if first & 0x80 != 0 {
            return message;
        }
    }
}

async fn lose_nothing(server: &Server, database: &Database) {
    let written = watch::Sender::new(0);
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(write(database.clone(), writer, written.clone()));
    }
    for number in 0..READERS {
        tasks.spawn(follow(server.address(), number, written.subscribe()));
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task that ends");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_while_writes_go_on_gets_every_row_once_and_in_order() {
    let (server, database) = fresh().await;
    lose_nothing(&server, &database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_read_ahead_while_a_feed_leaves_the_framework_is_not_lost() {
    let server = Server::launch().arg("--storage-tail-bytes-max=1").start();
    let database = Database::create(&server, "db").await;
    // From a place that has not come: the feed waits before it has read anything, and is live behind its first page.
    let mut feed = RawFeed::open(server.address(), "/db/_changes?feed=eventsource&heartbeat=60000&since=1").await;
    let docs: Vec<Value> = (0..3000).map(|n| json!({ "_id": format!("d{n:04}") })).collect();
    database.bulk(&docs).await;
    feed.until(|feed| feed.text.contains("\nid: 3000\n")).await;
    let seqs: Vec<u64> = feed.rows().iter().map(|row| row["seq"].as_u64().expect("a number")).collect();
    assert!(seqs == (2..=3000).collect::<Vec<_>>(), "{} rows from {:?} on", seqs.len(), seqs.first());
}

#[tokio::test(flavor = "multi_thread")]
async fn also_where_the_tail_forgets_before_they_have_caught_up() {
    let server = Server::launch().arg("--storage-tail-bytes-max=20000").arg("--workers=1").start();
    let database = Database::create(&server, "db").await;
    lose_nothing(&server, &database).await;
}
