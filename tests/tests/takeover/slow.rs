//! Readers that read late or little at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::raw_feed::RawFeed;
use seqtide_tests::database::fresh;

const ROUNDS: usize = 40;
const DOCS: usize = 200;

async fn write_round(database: &seqtide_tests::Database, revs: &mut BTreeMap<String, String>, pad: usize) {
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
    let said = |feed: &RawFeed, event: &str| feed.text.matches(&format!("event: {event}\n")).count();
    for feed in &mut stalled {
        feed.until(|feed| said(feed, "lagging") == said(feed, "live")).await;
        let first = feed.text.lines().find(|line| line.contains("\"lagging\"")).expect("who stalls lags");
        let first: Value = serde_json::from_str(first.strip_prefix("data: ").expect("data")).expect("JSON");
        let rows = first["rows"].as_u64().expect("a number");
        assert!((1..=DOCS as u64).contains(&rows), "each document has one row: {first}");
        assert!(first["seconds"].is_u64(), "{first}");
        let states: Vec<&str> = feed.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        let states: Vec<&&str> = states.iter().filter(|event| ["lagging", "live"].contains(event)).collect();
        assert!(states.iter().zip(["lagging", "live"].iter().cycle()).all(|(is, ought)| *is == ought), "{states:?}");
    }
    assert_eq!(said(&healthy, "lagging"), 0, "a first catch-up is no lagging, nor is reading along");
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
