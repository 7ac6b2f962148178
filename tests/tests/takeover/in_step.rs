//! Those who write keep step with those who read.

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use super::raw_feed::RawFeed;
use seqtide_tests::http::SOON;
use seqtide_tests::{Database, Server};

const READERS: usize = 200;
const WRITERS: usize = 16;
const HELD: &str = "seqtide_answers_held_back_seconds_count";

/// A server whose rounds may take so long, a database, and readers that have caught up.
async fn followed(round_ms: u32) -> (Server, Database, Vec<RawFeed>) {
    let server = Server::launch().arg(format!("--feeds-round-ms={round_ms}")).start();
    let database = Database::create(&server, "db").await;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = RawFeed::open(server.address(), "/db/_feed").await;
        reader.until(|feed| feed.text.contains("caught-up")).await;
        readers.push(reader);
    }
    (server, database, readers)
}

/// Has everyone write one document after the other until `enough` says so; gives how many there are.
async fn write_until(database: &Database, enough: impl AsyncFn(usize) -> bool) -> usize {
    let (mut written, deadline) = (0, Instant::now() + SOON);
    while !enough(written).await {
        assert!(Instant::now() < deadline, "not enough after {written} documents");
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let database = database.clone();
            writers.spawn(async move {
                for n in written..written + 10 {
                    database.put(&format!("{writer}-{n}"), &json!({})).await;
                }
            });
        }
        writers.join_all().await;
        written += 10;
    }
    written * WRITERS
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_wait_while_feeds_are_behind_and_every_row_comes() {
    let (_server, database, readers) = followed(1).await;
    let reading = readers.into_iter().map(|mut reader| async move {
        reader.until(|feed| feed.text.contains("\"id\":\"last\"") && feed.text.ends_with("\n\n")).await;
        reader.rows().len()
    });
    let reading: JoinSet<usize> = reading.collect();
    let was_held = async |_| database.api.metric(HELD).await > Some(0);
    let written = write_until(&database, was_held).await;
    database.put("last", &json!({})).await;
    assert_eq!(reading.join_all().await, [written + 1; READERS]);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_do_not_read_hold_nobody_back_for_long() {
    let (_server, database, _stalled) = followed(1).await;
    // More than fits into what the system keeps for each of them.
    let pad = "x".repeat(100_000);
    for n in 0..100 {
        let begin = Instant::now();
        database.put(&format!("{n}"), &json!({ "pad": pad })).await;
        assert!(begin.elapsed() < Duration::from_secs(5), "an answer takes {:?}", begin.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_where_rounds_have_no_length() {
    let (_server, database, _readers) = followed(0).await;
    write_until(&database, async |written| written == 50).await;
    assert_eq!(database.api.metric(HELD).await, None, "no answer was held back");
}
