//! The server's end: feeds get their last words and the last chunk, and nobody can hold it up for long.

use serde_json::json;

use super::raw_feed::RawFeed;
use seqtide_tests::{Database, Server};

#[tokio::test(flavor = "multi_thread")]
async fn every_feed_ends_with_its_last_words_and_the_last_chunk() {
    let mut server = Server::start();
    let database = Database::create(&server, "db").await;
    let end = "event: end\ndata: {\"event\":\"end\",\"seq\":1,\"reason\":\"shutdown\"}\nid: 1\n\n";
    let mut feeds = Vec::new();
    for (path, last) in [
        ("/db/_feed?since=0", end),
        ("/db/_changes?feed=continuous&heartbeat=60000", "}]}\n"),
        ("/db/_changes?feed=eventsource&heartbeat=60000", "\n\n\n"),
    ] {
        for _ in 0..100 {
            feeds.push((RawFeed::open(server.address(), path).await, last));
        }
    }
    database.put("a", &json!({})).await;
    for (feed, _) in &mut feeds {
        feed.until(|feed| feed.text.contains("\"id\":\"a\"") && feed.text.ends_with('\n')).await;
    }
    server.terminate();
    for (feed, last) in &mut feeds {
        let text = feed.read_to_end().await;
        assert!(text.ends_with(*last), "{last:?} ends {text:?}");
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_holds_it_up_no_longer_than_it_may() {
    let mut server = Server::launch().arg("--shutdown-timeout-ms=1000").start();
    let database = Database::create(&server, "db").await;
    let mut stalled = RawFeed::open_narrow(server.address(), "/db/_feed?include_docs=true").await;
    stalled.until(|feed| feed.text.contains("caught-up")).await;
    let mut healthy = RawFeed::open(server.address(), "/db/_feed").await;
    healthy.until(|feed| feed.text.contains("caught-up")).await;
    for number in 0..4 {
        database.put(&format!("large-{number}"), &json!({ "pad": "x".repeat(6_000_000) })).await;
    }
    healthy.until(|feed| feed.rows().len() == 4).await;
    server.terminate();
    assert!(healthy.read_to_end().await.contains("shutdown"));
    assert_eq!(server.wait().code(), Some(0));
    drop(stalled);
}
