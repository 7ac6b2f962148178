//! `/{db}/_feed`, the native door: the same rows, events and tokens over SSE, lines and WebSocket.

mod ends;
mod filters;
mod forms;
mod index;
mod leave;
mod options;
mod rewind;
mod snapshot;
mod times;
mod websocket;

use serde_json::{Value, json};

use seqtide_tests::Database;
use seqtide_tests::database::fresh;
use seqtide_tests::http::{Answer, Opened};
use seqtide_tests::words::{caught_up, end, open};

/// Writes `{}` at each of these ids and returns their rows as text.
async fn write(database: &Database, ids: &[&str]) -> Vec<String> {
    let mut rows = Vec::new();
    for id in ids {
        let written = database.put(id, &json!({})).await;
        rows.push(row(&json!(id), &written));
    }
    rows
}

fn row(id: &Value, written: &Answer) -> String {
    format!("{{\"seq\":{},\"id\":{id},\"changes\":[{{\"rev\":\"{}\"}}]}}", written.seq(), written.rev())
}

/// What a feed over lines that ends by itself gives, whose `opened` says where it begins.
async fn lines_behind(database: &Database, query: &str) -> (Value, Vec<String>) {
    let answer = database.get(&format!("/_feed?{query}")).expect(200).await;
    let (first, rest) = answer.text().split_once('\n').expect("a feed says at once where it begins");
    let opening: Value = serde_json::from_str(first).expect("an event");
    assert!(["opened", "rewind"].map(|name| json!(name)).contains(&opening["event"]), "{query}: {opening}");
    assert!(rest.is_empty() || rest.ends_with('\n'), "{rest:?}");
    (opening, rest.lines().map(str::to_owned).collect())
}

/// The same without what it says first.
async fn lines(database: &Database, query: &str) -> Vec<String> {
    lines_behind(database, query).await.1
}

/// Opens a live feed over lines and waits until it has caught up.
async fn live(database: &Database, query: &str) -> Opened {
    let mut feed = database.get(&format!("/_feed?{query}")).open().await;
    assert_eq!(feed.status(), 200, "{query}");
    feed.until(|text| text.contains("\"caught-up\"") && text.ends_with('\n')).await;
    feed
}
