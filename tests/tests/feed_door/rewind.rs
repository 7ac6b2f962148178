//! A `since` ahead of the database, which `_feed` never takes at its word.

use serde_json::{Value, json};

use super::{caught_up, end, fresh, lines, lines_behind, write};
use seqtide_tests::Server;
use seqtide_tests::sse::behind_retry;

#[tokio::test(flavor = "multi_thread")]
async fn since_ahead_rewinds_to_the_start_and_says_so_first() {
    let (_server, database) = fresh().await;
    let rows = write(&database, &["a", "b"]).await;
    let (rewind, found): (Value, _) = lines_behind(&database, "live=false&since=1337").await;
    assert_eq!((&rewind["event"], &rewind["seq"]), (&json!("rewind"), &json!(0)));
    assert_eq!((&rewind["oldest_seq"], &rewind["update_seq"]), (&json!(0), &json!(2)));
    assert_eq!(rewind["since"].to_string().trim_matches('"'), "1337", "{rewind}");
    assert!(rewind["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{rewind}");
    assert_eq!(found, [rows[0].clone(), rows[1].clone(), caught_up(2), end(2, "caught-up")]);

    let request = database.get("/_feed?live=false").header("accept", "text/event-stream");
    let answer = request.header("last-event-id", "1337").expect(200).await;
    let first = "event: rewind\ndata: {\"event\":\"rewind\",\"seq\":0,";
    assert!(behind_retry(answer.text()).starts_with(first), "{:?}", answer.text());
    assert!(answer.text().contains(&format!("}}\nid: 0\n\ndata: {}\nid: 1\n\n", rows[0])), "{:?}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn on_rewind_error_is_410_with_what_there_is() {
    let (_server, database) = fresh().await;
    write(&database, &["a", "b"]).await;
    let answer = database.get("/_feed?since=1337&on_rewind=error").send().await;
    answer.assert_status(410);
    let gone = answer.json();
    assert_eq!((&gone["error"], &gone["update_seq"]), (&json!("gone"), &json!(2)));
    assert!(gone["reason"].is_string() && gone["oldest_seq"].is_u64(), "{gone}");
    database.get("/_feed?since=2&on_rewind=error&live=false").expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_tokens_hide_nothing_after_the_database_was_made_again() {
    let (_server, database) = fresh().await;
    write(&database, &["a", "b", "c"]).await;
    database.request("DELETE", "").expect(200).await;
    database.request("PUT", "").expect(201).await;
    let rows = write(&database, &["new"]).await;
    let found = lines(&database, "live=false&since=3").await;
    let shown: Vec<&String> = found.iter().filter(|line| line.starts_with("{\"seq\"")).collect();
    assert_eq!(shown, [&rows[0]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_outlive_a_restart() {
    let mut server = Server::start();
    let database = seqtide_tests::Database::create(&server, "db").await;
    write(&database, &["a", "b"]).await;
    server.stop();
    server.restart_on_same_port_and_data();
    let rows = write(&database, &["c"]).await;
    assert_eq!(lines(&database, "live=false&since=2").await, [rows[0].clone(), caught_up(3), end(3, "caught-up")]);
}
