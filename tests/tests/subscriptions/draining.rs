//! The end of a server in stages: who has many subscriptions is told when to come back, and nobody comes in meanwhile.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::all_of;
use super::client::{Client, url};
use seqtide_tests::doors::FeedSocket;
use seqtide_tests::{Api, Database, Server};

/// Nobody waits for its end: told again, a server ends all at once.
const DRAIN_MS: u64 = 3_600_000;
const SUBSCRIPTIONS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_told_when_to_come_back_and_no_connection_is_opened() {
    let mut server = Server::launch().arg(format!("--feeds-drain-ms={DRAIN_MS}")).start();
    for db in ["orders", "people"] {
        Database::create(&server, db).await;
    }
    let api = Api::new(&server);
    let many: Value =
        (0..SUBSCRIPTIONS).map(|number| json!({ "subscribe": format!("s-{number}"), "db": "orders" })).collect();
    let mut feed = api.get(&url(&many)).header("accept", "text/event-stream").open().await;
    feed.until(|text| text.matches("caught-up").count() == SUBSCRIPTIONS && text.ends_with("\n\n")).await;
    server.terminate();
    feed.until(|text| text.matches("draining").count() == SUBSCRIPTIONS && text.ends_with("\n\n")).await;

    let asked = url(&json!([all_of("orders"), all_of("people")]));
    let refused = api.get(&asked).expect(503).await;
    let wait: u64 = refused.header("retry-after").expect("when to come back").parse().expect("seconds");
    assert!(wait <= DRAIN_MS / 1000 * 2 + 2, "{wait} s");
    let socket = FeedSocket::open(&format!("ws://{}{asked}", server.address())).await;
    assert!(socket.is_err(), "no WebSocket either");

    server.terminate();
    let answer = feed.to_end().await;
    let (mut longest, mut told) = (0, 0);
    for event in answer.text().split_terminator("\n\n").filter(|event| event.starts_with("data: ")) {
        let lines: Vec<&str> = event.lines().collect();
        let items: Vec<Value> = serde_json::from_str(&lines[0]["data: ".len()..]).expect("a list");
        let draining = items.iter().filter(|item| item["event"] == "draining");
        let waits: Vec<u64> = draining.filter_map(|item| item["retry"].as_u64()).collect();
        told += waits.len();
        longest = waits.iter().copied().fold(longest, u64::max);
        let retry = (!waits.is_empty()).then(|| format!("retry: {longest}"));
        assert_eq!(lines.get(2).map(|line| (*line).to_owned()), retry, "{event}");
    }
    assert_eq!(told, SUBSCRIPTIONS, "each is told: {}", answer.text());
    assert!(answer.text().contains("{\"event\":\"end\",\"reason\":\"shutdown\"}"), "{}", answer.text());
    assert_eq!(server.wait().code(), Some(0));
}

/// One that ends with the server ends the connection, though the others have not said so: they go on for who comes
/// back.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_ends_with_the_server_ends_the_connection_and_all_go_on_behind_its_last_id() {
    let mut server = Server::launch().arg("--feeds-drain-ms=0").start();
    let orders = Database::create(&server, "orders").await;
    orders.put("before", &json!({})).await;
    let many: Value = (0..SUBSCRIPTIONS)
        .map(|number| json!({ "subscribe": format!("s-{number}"), "db": "orders", "since": 0 }))
        .collect();
    let mut client = Client::open(&orders.api, &many).await;
    for _ in 0..SUBSCRIPTIONS {
        client.until(|item| item["event"] == "caught-up").await;
    }
    server.terminate();
    let mut last = Vec::new();
    while let Some(item) = client.next().await {
        last.push(item);
    }
    assert_eq!(last.pop(), Some(json!({ "event": "end", "reason": "shutdown" })), "{last:?}");
    let ends: Vec<&Value> = last.iter().filter(|item| item["event"] == "end").collect();
    assert!(ends.len() == 1 && ends[0]["reason"] == "shutdown" && ends[0]["sub"].is_string(), "{last:?}");
    assert_eq!(server.wait().code(), Some(0));

    server.restart_on_same_port_and_data();
    orders.put("after", &json!({})).await;
    let mut back = Client::try_open(&orders.api, &url(&many), client.last_event_id).await.expect("it is back");
    let mut given = Vec::new();
    for _ in 0..SUBSCRIPTIONS {
        given.extend(back.until(|item| item["event"] == "caught-up").await);
    }
    let rows: Vec<&Value> = given.iter().filter(|item| item.get("id").is_some()).collect();
    assert!(rows.iter().all(|row| row["id"] == "after"), "what was given is not given again: {rows:?}");
    let subs: BTreeSet<&str> = rows.iter().filter_map(|row| row["sub"].as_str()).collect();
    assert_eq!((rows.len(), subs.len()), (SUBSCRIPTIONS, SUBSCRIPTIONS), "each is given the row, once");
}
