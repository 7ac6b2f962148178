//! Readers that read late or little at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::raw_feed::RawFeed;
use seqtide_tests::database::fresh;
use seqtide_tests::known_feeds::feeds_when;
use seqtide_tests::states::{assert_in_order, events_of};
use seqtide_tests::{Database, Server};

const ROUNDS: usize = 40;
const DOCS: usize = 200;

async fn write_round(database: &Database, revs: &mut BTreeMap<String, String>, pad: usize) {
    let docs: Vec<Value> = (0..DOCS)
        .map(|n| {
            let id = format!("d{n:04}");
            let mut doc = json!({ "_id": id, "pad": "x".repeat(pad) });
            if let Some(rev) = revs.get(&id) {
                doc["_rev"] = json!(rev);
            }
            doc
        })
        .collect();
    for result in database.bulk(&docs).await.as_array().expect("results") {
        revs.insert(
            result["id"].as_str().expect("an id").to_owned(),
            result["rev"].as_str().expect("a rev").to_owned(),
        );
    }
}

fn newest(rows: &[Value]) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    rows.iter().map(|row| (text(&row["id"]), text(&row["changes"][0]["rev"]))).collect()
}

fn reaches(feed: &RawFeed, seq: usize) -> bool {
    feed.text.ends_with(&format!("\nid: {seq}\n\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stalls_keeps_nobody_waiting_and_misses_nothing_when_it_reads_again() {
    let (server, database) = fresh().await;
    let path = "/db/_feed?include_docs=true&since=0";
    let mut stalled = Vec::new();
    for _ in 0..5 {
        let mut feed = RawFeed::open_narrow(server.address(), path).await;
        feed.until(|feed| feed.text.contains("caught-up")).await;
        stalled.push(feed);
    }
    let mut healthy = RawFeed::open(server.address(), path).await;
    let mut revs = BTreeMap::new();
    // 8 MB each: more than the system's buffers and what a group keeps.
    for round in 1..=ROUNDS {
        write_round(&database, &mut revs, 1000).await;
        healthy.until(|feed| reaches(feed, round * DOCS)).await;
    }
    let rows = healthy.rows();
    assert_eq!(rows.len(), ROUNDS * DOCS, "who reads gets every row");
    for feed in &mut stalled {
        feed.until(|feed| reaches(feed, ROUNDS * DOCS)).await;
        let rows = feed.rows();
        assert!(rows.is_sorted_by(|one, next| one["seq"].as_u64() < next["seq"].as_u64()), "rows out of order");
        assert!(rows.len() < ROUNDS * DOCS, "what was superseded is skipped");
        assert_eq!(newest(&rows), revs);
    }
    // They read along with the others again.
    database.put("last", &json!({})).await;
    for feed in stalled.iter_mut().chain([&mut healthy]) {
        feed.until(|feed| feed.text.contains("\"id\":\"last\"") && feed.text.ends_with("\n\n")).await;
        assert_eq!(feed.rows().last().expect("a row")["seq"], ROUNDS * DOCS + 1);
    }
    for feed in stalled.iter().chain([&healthy]) {
        assert_in_order(events_of(&feed.text));
        assert!(!feed.text.contains("event: lagging"), "all that they lacked was in memory");
    }
}

/// Whether an event is among what came lately.
fn says(feed: &RawFeed, event: &str) -> bool {
    let lately = feed.text.as_bytes();
    let lately = &lately[lately.len().saturating_sub(200_000)..];
    String::from_utf8_lossy(lately).contains(&format!("event: {event}\n"))
}

/// A server of so small a memory that who stalls has to read the disk, and a feed of it that has and one that has not.
async fn far_behind(server: &Server, database: &Database) -> (RawFeed, RawFeed, usize) {
    let path = "/db/_feed?include_docs=true&since=0";
    let mut stalled = RawFeed::open_narrow(server.address(), path).await;
    stalled.until(|feed| feed.text.contains("caught-up")).await;
    let mut healthy = RawFeed::open(server.address(), path).await;
    healthy.until(|feed| feed.text.contains("caught-up")).await;
    let mut last = 0;
    for _ in 0..ROUNDS {
        let docs: Vec<Value> = (0..DOCS).map(|_| json!({ "pad": "x".repeat(3000) })).collect();
        database.bulk(&docs).await;
        last += DOCS;
        healthy.until(|feed| reaches(feed, last)).await;
    }
    (stalled, healthy, last)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_to_read_the_disk_again_lags_says_how_far_and_is_live_when_it_is_back() {
    let server = Server::launch().arg("--storage-tail-bytes-max=4000000").start();
    let database = Database::create(&server, "db").await;
    let (mut stalled, healthy, last) = far_behind(&server, &database).await;
    stalled.until(|feed| says(feed, "lagging")).await;
    feeds_when(&database.api, |feeds| feeds[0]["state"] == "lagging" && feeds[1]["state"] == "live").await;
    stalled.until(|feed| reaches(feed, last)).await;
    let first = stalled.text.lines().find(|line| line.contains("\"lagging\"")).expect("who stalls lags");
    let first: Value = serde_json::from_str(first.strip_prefix("data: ").expect("data")).expect("JSON");
    let position = first["seq"].as_u64().expect("a number");
    assert!((1..=last as u64 - position).contains(&first["rows"].as_u64().expect("a number")), "{first}");
    assert!(first["seconds"].is_u64(), "{first}");
    feeds_when(&database.api, |feeds| feeds.iter().all(|feed| feed["state"] == "live")).await;
    for feed in [&stalled, &healthy] {
        assert_in_order(events_of(&feed.text));
    }
    assert!(!healthy.text.contains("lagging"), "a first catch-up is no lagging, nor is reading along");
    assert_eq!(stalled.rows().len(), last);
}

/// One that is told that it ends shortly while it lags says nothing more of how it stands: it is not live for long.
#[tokio::test(flavor = "multi_thread")]
async fn who_lags_while_the_server_is_drained_is_told_so_and_ends() {
    let server = Server::launch().arg("--storage-tail-bytes-max=4000000").arg("--feeds-drain-ms=3000");
    let mut server = server.start();
    let database = Database::create(&server, "db").await;
    let (mut stalled, mut healthy, _) = far_behind(&server, &database).await;
    stalled.until(|feed| says(feed, "lagging")).await;
    server.terminate();
    for feed in [&mut stalled, &mut healthy] {
        let text = feed.read_to_end().await;
        assert_in_order(events_of(text));
        assert_eq!(text.matches("event: draining\n").count(), 1, "{:?}", events_of(text).collect::<Vec<_>>());
        assert!(text.contains("event: end\n"));
    }
    assert_eq!(server.wait().code(), Some(0));
}

/// What a group has read is forgotten when something is purged: who did not have it yet reads for itself, from memory.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_to_read_for_itself_after_a_purge_does_not_lag() {
    let (server, database) = fresh().await;
    let mut stalled = RawFeed::open_narrow(server.address(), "/db/_feed?include_docs=true").await;
    stalled.until(|feed| feed.text.contains("caught-up")).await;
    for number in 0..3 {
        database.put(&format!("large-{number}"), &json!({ "pad": "x".repeat(6_000_000) })).await;
    }
    let rev = database.put("secret", &json!({})).await.rev();
    feeds_when(&database.api, |feeds| feeds[0]["lag"]["rows"].as_u64() > Some(0)).await;
    database.purge(&json!({ "secret": [rev] })).await;
    let last = database.put("last", &json!({})).await.seq();
    stalled.until(|feed| reaches(feed, last as usize)).await;
    assert_eq!(
        events_of(&stalled.text).collect::<Vec<_>>(),
        ["opened", "caught-up"],
        "all that it lacked was in memory"
    );
    assert_eq!(stalled.rows().len(), 4);
}

/// How many pages of feeds were read from memory so that each of these feeds got a document more.
async fn pages_for_one_more(database: &Database, feeds: &mut [RawFeed], id: &str) -> u64 {
    let pages = async || {
        let read = database.api.metric("seqtide_feed_pages_total{source=\"memory\"}").await;
        read.expect("it is there from the start")
    };
    let before = pages().await;
    database.put(id, &json!({})).await;
    for feed in feeds {
        feed.until(|feed| feed.text.contains(&format!("\"id\":\"{id}\"")) && feed.text.ends_with("\n\n")).await;
    }
    pages().await - before
}

/// The first row behind a purge sent every feed of the database to read for itself: it was taken for one that had been
/// read before.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_everything_reads_along_with_the_others_after_a_purge() {
    const FEEDS: u64 = 40;
    let (server, database) = fresh().await;
    let rev = database.put("secret", &json!({})).await.rev();
    let mut feeds = Vec::new();
    for _ in 0..FEEDS {
        feeds.push(RawFeed::open(server.address(), "/db/_feed?since=0").await);
    }
    let mut tries = (0..100).map(|number| format!("try-{number}"));
    // Until they read together.
    while pages_for_one_more(&database, &mut feeds, &tries.next().expect("they read together soon")).await >= FEEDS {}
    database.purge(&json!({ "secret": [rev] })).await;
    let pages = pages_for_one_more(&database, &mut feeds, "after").await;
    assert!(pages < FEEDS / 2, "{pages} pages for {FEEDS} feeds");
}

/// A member of a group that is in the middle of a row when the server is drained was told nothing before its end.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_the_middle_of_a_row_when_the_server_is_drained_is_told_behind_it() {
    let mut server = Server::launch().arg("--feeds-drain-ms=3000").start();
    let database = Database::create(&server, "db").await;
    let path = "/db/_feed?include_docs=true&since=0";
    let mut stalled = RawFeed::open_narrow(server.address(), path).await;
    let mut healthy = RawFeed::open(server.address(), path).await;
    for feed in [&mut stalled, &mut healthy] {
        feed.until(|feed| feed.text.contains("caught-up") && feed.text.ends_with("\n\n")).await;
    }
    database.put("large", &json!({ "pad": "x".repeat(7_000_000) })).await;
    healthy.until(|feed| feed.rows().len() == 1 && feed.text.ends_with("\n\n")).await;
    server.terminate();
    healthy.until(|feed| feed.text.contains("event: draining")).await;
    for feed in [&mut stalled, &mut healthy] {
        let text = feed.read_to_end().await;
        assert_eq!(events_of(text).collect::<Vec<_>>(), ["opened", "caught-up", "draining", "end"]);
        let draining = text.split("\n\n").find(|event| event.starts_with("event: draining\n")).expect("it is there");
        assert!(draining.contains("\nid: 1\nretry: "), "{draining}");
        assert_eq!(feed.rows().len(), 1);
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_stay_whole_for_who_reads_a_little_at_a_time() {
    let (server, database) = fresh().await;
    let mut feed = RawFeed::open_narrow(server.address(), "/db/_feed?include_docs=true&since=0&heartbeat=20").await;
    feed.until(|feed| feed.text.contains("caught-up")).await;
    let large = "l".repeat(3_000_000);
    database.put("large", &json!({ "pad": large })).await;
    let mut revs = BTreeMap::new();
    for _ in 0..3 {
        write_round(&database, &mut revs, 2000).await;
        // Heartbeats become due while nothing can be written.
        sleep(Duration::from_millis(30)).await;
    }
    feed.until(|feed| reaches(feed, 3 * DOCS + 1)).await;
    let rows = feed.rows();
    assert_eq!(rows[0]["doc"]["pad"].as_str().map(str::len), Some(large.len()), "the large document is whole");
    revs.insert("large".to_owned(), rows[0]["doc"]["_rev"].as_str().expect("a rev").to_owned());
    assert_eq!(newest(&rows), revs);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_purged_is_not_given_to_who_comes_later() {
    let (server, database) = fresh().await;
    let mut healthy = RawFeed::open(server.address(), "/db/_feed").await;
    healthy.until(|feed| feed.text.contains("caught-up")).await;
    database.put("kept", &json!({})).await;
    let rev = database.put("secret", &json!({})).await.rev();
    healthy.until(|feed| feed.text.contains("secret") && feed.text.ends_with("\n\n")).await;
    database.purge(&json!({ "secret": [rev] })).await;
    let mut late = RawFeed::open(server.address(), "/db/_feed?since=0").await;
    late.until(|feed| feed.text.contains("caught-up")).await;
    database.put("after", &json!({})).await;
    late.until(|feed| feed.text.contains("after")).await;
    assert!(late.text.contains("kept") && !late.text.contains("secret"), "{}", late.text);
}
