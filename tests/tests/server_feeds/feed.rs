//! The native door of the server, in its three forms.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{fresh, row, rows};
use seqtide_tests::doors::{FeedSocket, Item};
use seqtide_tests::sse::behind_retry;
use seqtide_tests::words::{beating, caught_up, end, open, without_heartbeats};
use seqtide_tests::{Api, Database, Server};

async fn lines(api: &Api, query: &str) -> Vec<String> {
    let answer = api.get(&format!("/_feed?{query}")).expect(200).await;
    answer.text().lines().map(str::to_owned).collect()
}

fn items(texts: &[String]) -> Vec<Item> {
    texts.iter().map(|text| Item::from_json(serde_json::from_str(text).expect("JSON"))).collect()
}

async fn socket(server: &Server, query: &str) -> FeedSocket {
    FeedSocket::open(&format!("ws://{}/_feed{query}", server.address())).await.expect("a WebSocket")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_three_forms_carry_the_same_rows_events_and_tokens() {
    let (server, api) = fresh().await;
    let [first, second, third] = rows();
    let expected = [open(0, 3), first.clone(), second, third, caught_up(3), end(3, "caught-up")];
    let answer = api.get("/_feed?since=0&live=false").expect(200).await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.text().lines().collect::<Vec<_>>(), expected);
    let posted = api.post("/_feed").json(&json!({ "since": 0, "live": false })).expect(200).await;
    assert_eq!(posted.text(), answer.text());

    let sse = api.get("/_feed?since=0&limit=1").header("accept", "text/event-stream").expect(200).await;
    let begun = |seq| format!("event: opened\ndata: {}\nid: {seq}\n\n", open(seq, 3));
    let ended = format!("event: end\ndata: {}\nid: 1\n\n", end(1, "limit"));
    assert_eq!(behind_retry(sse.text()), format!("{}data: {first}\nid: 1\n\n{ended}", begun(0)));
    let resumed = api.get("/_feed?live=false").header("accept", "text/event-stream").header("last-event-id", "2");
    let resumed = resumed.expect(200).await;
    let first = format!("{}data: {}\nid: 3\n\nevent: caught-up\n", begun(2), rows()[2]);
    assert!(behind_retry(resumed.text()).starts_with(&first), "{resumed:?}");

    let mut from_url = socket(&server, "?since=0&live=false").await;
    assert_eq!(from_url.to_close().await, (items(&expected), CloseCode::Normal));
    let mut from_message = socket(&server, "").await;
    from_message.send(&json!({ "since": 1, "prefix": "b", "limit": 1 }).to_string()).await;
    let expected = [open(1, 3), row("b", "created", 2), end(2, "limit")];
    assert_eq!(from_message.to_close().await, (items(&expected), CloseCode::Normal));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_feed_starts_now_and_is_told_of_what_happens() {
    let (mut server, api) = fresh().await;
    let mut feed = api.get("/_feed?heartbeat=50").open().await;
    let mut ws = socket(&server, "?since=now").await;
    assert_eq!(ws.at_least(2).await, items(&[open(3, 3), caught_up(3)]));
    feed.until(|text| text.contains("{\"event\":\"heartbeat\",\"seq\":3,\"pending\":0}\n")).await;
    Database::create(&server, "c").await;
    api.delete("/a").expect(200).await;
    let happened = [row("c", "created", 4), row("a", "deleted", 5)];
    let text = feed.until(|text| text.contains(&happened[1]) && text.ends_with('\n')).await;
    assert_eq!(without_heartbeats(&text), [&[beating(3, 3, 50), caught_up(3)], &happened[..]].concat());
    assert_eq!(ws.at_least(2).await, items(&happened));
    server.terminate();
    assert_eq!(ws.to_close().await, (items(&[end(5, "shutdown")]), CloseCode::Away));
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_chooses_databases_and_heartbeats_move_on_with_the_others() {
    let (server, api) = fresh().await;
    let found = lines(&api, "since=0&live=false&prefix=a").await;
    let of_a = [open(0, 3), row("a", "created", 1), row("a", "updated", 3), caught_up(3), end(3, "caught-up")];
    assert_eq!(found, of_a);
    let until = lines(&api, "since=0&until=2").await;
    assert_eq!(until, [open(0, 3), row("a", "created", 1), row("b", "created", 2), end(2, "until")]);
    let mut feed = api.get("/_feed?prefix=team%2F&heartbeat=50").open().await;
    feed.until(|text| text.contains("caught-up")).await;
    Database::create(&server, "other").await;
    let text = feed.until(|text| text.ends_with("{\"event\":\"heartbeat\",\"seq\":4,\"pending\":0}\n")).await;
    assert!(!text.contains("db_name"), "{text:?}");
    Database::create(&server, "team/one").await;
    feed.until(|text| text.contains(&row("team/one", "created", 5))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_from_ahead_is_rewound_or_refused() {
    let (server, api) = fresh().await;
    let found = lines(&api, "since=1337&live=false").await;
    let rewind: Value = serde_json::from_str(&found[0]).expect("an event");
    assert_eq!((&rewind["event"], &rewind["seq"], &rewind["since"]), (&json!("rewind"), &json!(0), &json!(1337)));
    assert_eq!(found[1..4], rows());
    let gone = api.get("/_feed?since=1337&on_rewind=error").expect(410).await.json();
    assert_eq!((&gone["error"], &gone["oldest_seq"], &gone["update_seq"]), (&json!("gone"), &json!(0), &json!(3)));
    let mut refused = socket(&server, "?since=1337&on_rewind=error").await;
    assert_eq!(refused.to_close().await, (Vec::new(), CloseCode::Policy));
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_documents_are_no_options_here() {
    let (server, api) = fresh().await;
    for option in ["include_docs", "style", "conflicts", "doc_ids", "feed", "bogus"] {
        let refused = api.get(&format!("/_feed?{option}=true")).expect(400).await.json();
        let reason = refused["reason"].as_str().expect("a reason");
        assert!(reason.contains(option) && reason.contains("on_rewind, prefix, since"), "{reason}");
    }
    for query in ["since=abc", "limit=-1", "live=maybe", "heartbeat=0", "on_rewind=perhaps"] {
        let reason = api.get(&format!("/_feed?{query}")).expect(400).await.json()["reason"].to_string();
        assert!(reason.contains(query.split('=').next().expect("a name")), "{query}: {reason}");
        assert!(!reason.contains("a time"), "none is taken here: {reason}");
    }
    api.request("PUT", "/_feed").expect(405).await;
    let mut wrong = socket(&server, "").await;
    wrong.send("{\"style\":\"all_docs\"}").await;
    assert_eq!(wrong.to_close().await.1, CloseCode::Policy);
    match FeedSocket::open(&format!("ws://{}/_feed?style=all_docs", server.address())).await.map_err(|error| *error) {
        Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), 400),
        other => panic!("it should be refused, not {:?}", other.map(drop)),
    }
}

/// CORS does not hold for WebSockets.
#[tokio::test(flavor = "multi_thread")]
async fn a_strange_page_may_not_connect() {
    let (_server, api) = fresh().await;
    for (origin, status) in [("http://evil.example", 403), ("http://localhost:3000", 101)] {
        let request = api.get("/_feed?since=0").header("origin", origin).header("connection", "Upgrade");
        let request = request.header("upgrade", "websocket").header("sec-websocket-version", "13");
        let answer = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==").open().await;
        assert_eq!(answer.status(), status, "{origin}");
    }
}
