//! The bytes of each form, and how one is chosen.

use serde_json::{Value, json};

use super::{caught_up, end, fresh, lines, live, open, write};
use seqtide_tests::http::Answer;
use seqtide_tests::sse::behind_retry;
use seqtide_tests::words::beating;
use seqtide_tests::{Database, Server};

const ROWS_BY_OPTION: [&str; 5] =
    ["", "style=all_docs", "include_docs=true", "include_docs=true&conflicts=true", "style=all_docs&include_docs=true"];

fn assert_waiting_headers(answer: &Answer, content_type: &str) {
    assert_eq!(answer.header("content-type"), Some(content_type));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_one_json_each() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b"]).await;
    let answer = database.get("/_feed?since=0&live=false").expect(200).await;
    assert_waiting_headers(&answer, "application/x-ndjson");
    let expected =
        [&open(0, 2), &rows[0], &rows[1], &caught_up(2), &end(2, "caught-up")].map(|line| format!("{line}\n")).concat();
    assert_eq!(answer.text(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn sse_rows_are_unnamed_and_everything_has_an_id() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b"]).await;
    let request = database.get("/_feed?since=0&live=false").header("accept", "text/event-stream");
    let answer = request.expect(200).await;
    assert_waiting_headers(&answer, "text/event-stream");
    let expected = format!(
        "event: opened\ndata: {}\nid: 0\n\ndata: {}\nid: 1\n\ndata: {}\nid: 2\n\n\
         event: caught-up\ndata: {}\nid: 2\n\nevent: end\ndata: {}\nid: 2\n\n",
        open(0, 2),
        rows[0],
        rows[1],
        caught_up(2),
        end(2, "caught-up")
    );
    assert_eq!(behind_retry(answer.text()), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_event_stream_accept_gives_sse() {
    let (_server, database) = fresh().await;
    for (accept, content_type) in [
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, */*;q=0.1", "text/event-stream"),
        ("*/*", "application/x-ndjson"),
        ("application/json", "application/x-ndjson"),
        ("text/event-stream;q=0", "application/x-ndjson"),
        ("application/x-ndjson, text/event-stream;q=0.1", "application/x-ndjson"),
        ("application/x-ndjson", "application/x-ndjson"),
    ] {
        let answer = database.get("/_feed?live=false").header("accept", accept).expect(200).await;
        assert_eq!(answer.header("content-type"), Some(content_type), "Accept: {accept}");
    }
    let without = database.get("/_feed?live=false").expect(200).await;
    assert_eq!(without.header("content-type"), Some("application/x-ndjson"));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_the_rows_of_changes() {
    let (_server, database) = fresh().await;
    database
        .push(&[
            json!({ "_id": "a", "_rev": "1-a", "v": 1 }),
            json!({ "_id": "gone", "_rev": "1-a", "_deleted": true }),
        ])
        .await;
    database.push(&[json!({ "_id": "a", "_rev": "1-b", "v": [1.0, { "é": null }] })]).await;
    for options in ROWS_BY_OPTION {
        let changes = database.get(&format!("/_changes?feed=continuous&timeout=0&{options}")).expect(200).await;
        let expected: Vec<&str> = changes.text().lines().filter(|line| line.starts_with("{\"seq\"")).collect();
        assert_eq!(expected.len(), 2);
        let found = lines(&database, &format!("since=0&live=false&{options}")).await;
        assert_eq!(found[..2], expected, "{options}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_leaves_at_once_and_caught_up_says_where_it_stands() {
    let (_server, database) = fresh().await;
    let feed = live(&database, "").await;
    assert_eq!(feed.so_far(), format!("{}\n{}\n", open(0, 0), caught_up(0)));
    write(&database, &["a"]).await;
    let feed = live(&database, "").await;
    assert_eq!(feed.so_far(), format!("{}\n{}\n", open(1, 1), caught_up(1)), "since is now by default");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_feed_goes_on_after_it_has_caught_up() {
    let (_server, database) = fresh().await;
    let first = write(&database, &["a"]).await;
    let mut feed = live(&database, "since=0").await;
    let second = write(&database, &["b"]).await;
    let text = feed.until(|text| text.matches('\n').count() >= 4).await;
    assert_eq!(text, format!("{}\n{}\n{}\n{}\n", open(0, 1), first[0], caught_up(1), second[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_tell_seq_and_pending_on_each_form() {
    let (_server, database) = fresh().await;
    write(&database, &["a"]).await;
    let beat = "{\"event\":\"heartbeat\",\"seq\":1,\"pending\":0}";
    let mut feed = live(&database, "heartbeat=50").await;
    let text = feed.until(|text| text.matches(beat).count() >= 2 && text.ends_with('\n')).await;
    let rest = text.replace(&format!("{beat}\n"), "");
    assert_eq!(rest, format!("{}\n{}\n", beating(1, 1, 50), caught_up(1)));
    let mut feed = database.get("/_feed?heartbeat=50").header("accept", "text/event-stream").open().await;
    let event = format!("event: heartbeat\ndata: {beat}\nid: 1\n\n");
    let text = feed.until(|text| text.matches(&event).count() >= 2 && text.ends_with("\n\n")).await;
    assert!(!text.replace(&event, "").contains("event: heartbeat"), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_asks_for_no_heartbeat_has_the_configured_one() {
    let server = Server::launch().arg("--feeds-heartbeat-ms=50").start();
    let database = Database::create(&server, "db").await;
    let mut feed = live(&database, "").await;
    let text = feed.until(|text| text.matches("\"event\":\"heartbeat\"").count() >= 2).await;
    assert!(text.starts_with(&beating(0, 0, 50)), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_feed_too_many_is_a_clear_error() {
    let server = Server::launch().arg("--limits-feeds-max=2").start();
    let database = Database::create(&server, "db").await;
    let open = [live(&database, "").await, live(&database, "").await];
    for path in ["/_feed", "/_changes?feed=continuous"] {
        let refused = database.get(path).send().await;
        assert_eq!(refused.status, 503, "{path}");
        assert!(refused.json()["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{path}");
    }
    drop(open);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_feed_s_heartbeats_move_on_with_what_it_rejects() {
    let (_server, database) = fresh().await;
    let mut feed = live(&database, "since=0&heartbeat=50&prefix=wanted").await;
    let docs: Vec<Value> = (0..50).map(|number| json!({ "_id": format!("other-{number}") })).collect();
    database.bulk(&docs).await;
    let text = feed.until(|text| text.ends_with("{\"event\":\"heartbeat\",\"seq\":50,\"pending\":0}\n")).await;
    assert!(!text.contains("\"id\""), "no row passes: {text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_feed_beats_under_steady_writes() {
    let (_server, database) = fresh().await;
    let mut feed = live(&database, "heartbeat=100&prefix=wanted").await;
    let writers = database.clone();
    let writing = tokio::spawn(async move {
        for number in 0_u64.. {
            write(&writers, &[&format!("other-{number}")]).await;
        }
    });
    let text = feed.until(|text| text.matches("\"event\":\"heartbeat\"").count() >= 4 && text.ends_with('\n')).await;
    writing.abort();
    let seqs =
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].as_u64().expect("a number"));
    assert!(seqs.is_sorted(), "{text}");
}
