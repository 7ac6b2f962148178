//! Feeds that give the same begin on one worker and are shared among all when it does not keep up: on the wire nothing
//! of that is to be noticed.

use seqtide_tests::http::SOON;
use seqtide_tests::{Database, Server};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::raw_feed::RawFeed;
use super::until_open;

/// More than can be given a page in the time of a short round.
const READERS: usize = 400;
/// Documents written at once: many pages of a feed, each of which is there before the one before it was given to all.
const AT_ONCE: usize = 3_000;
/// Others are written one after the other meanwhile.
const WRITERS: usize = 4;
const BY_EACH: usize = 20;

/// Writes until the feeds were shared, and as much again; how many documents.
async fn write_until_shared(server: &Server, database: &Database) -> usize {
    let (mut rounds, mut left, deadline) = (0, None, Instant::now() + SOON);
    while left != Some(0) {
        assert!(left.is_some() || Instant::now() < deadline, "not shared: {}", server.stderr());
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let database = database.clone();
            writers.spawn(async move {
                for n in 0..BY_EACH {
                    database.put(&format!("{rounds}-{writer}-{n}"), &json!({})).await;
                }
            });
        }
        let docs: Vec<_> = (0..AT_ONCE).map(|n| json!({ "_id": format!("{rounds}-{n}") })).collect();
        database.bulk(&docs).await;
        writers.join_all().await;
        rounds += 1;
        left = match left {
            Some(left) => Some(left - 1),
            None => server.stderr().contains("shared among the workers").then_some(rounds),
        };
    }
    rounds * (AT_ONCE + WRITERS * BY_EACH)
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_are_moved_to_a_worker_without_feeds_get_every_row_once_and_in_order() {
    // Connections are dealt out in turn: each feed's comes to the same worker.
    every_row_comes_once_and_in_order_from(2, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_are_moved_to_another_worker_get_every_row_once_and_in_order() {
    every_row_comes_once_and_in_order_from(4, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_are_too_few_for_all_workers_get_every_row_once_and_in_order_from_some() {
    every_row_comes_once_and_in_order_from(READERS / 4, 0).await;
}

/// With so many web threads, and so many other connections, which end at once, behind that of each feed.
async fn every_row_comes_once_and_in_order_from(web_threads: usize, others: usize) {
    let server = Server::launch().arg(format!("--workers={web_threads}")).env("SEQTIDE_LOG", "debug").start();
    let database = Database::create(&server, "db").await;
    let mut reading = JoinSet::new();
    for _ in 0..READERS {
        let mut reader = RawFeed::open(server.address(), "/db/_feed").await;
        reader.until(|feed| feed.text.contains("caught-up")).await;
        for _ in 0..others {
            TcpStream::connect(server.address()).await.expect("a connection");
        }
        reading.spawn(async move {
            reader.until(|feed| feed.text.contains("\"id\":\"last\"") && feed.text.ends_with("\n\n")).await;
            let seqs: Vec<u64> = reader.rows().iter().map(|row| row["seq"].as_u64().expect("a seq")).collect();
            (reader, seqs)
        });
    }
    let written = write_until_shared(&server, &database).await as u64;
    // Who comes now is served like those who were there.
    let mut late = RawFeed::open(server.address(), "/db/_feed?since=0").await;
    database.put("last", &json!({})).await;
    let expected: Vec<u64> = (1..=written + 1).collect();
    let readers: Vec<RawFeed> = reading
        .join_all()
        .await
        .into_iter()
        .map(|(reader, seqs)| {
            assert!(seqs == expected, "{} rows of {}", seqs.len(), expected.len());
            reader
        })
        .collect();
    late.until(|feed| feed.text.contains("\"id\":\"last\"") && feed.text.ends_with("\n\n")).await;
    assert_eq!(late.rows().len() as u64, written + 1);
    until_open(&database.api, "sse", READERS as u64 + 1).await;
    drop((readers, late));
    until_open(&database.api, "sse", 0).await;
}
