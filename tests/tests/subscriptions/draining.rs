//! The end of a server in stages: who has many subscriptions is told when to come back, and nobody comes in meanwhile.

use serde_json::{Value, json};

use super::all_of;
use super::client::url;
use seqtide_tests::doors::FeedSocket;
use seqtide_tests::{Api, Database, Server};

const DRAIN_MS: u64 = 3000;

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_told_when_to_come_back_and_no_connection_is_opened() {
    let mut server = Server::launch().arg(format!("--feeds-drain-ms={DRAIN_MS}")).start();
    for db in ["orders", "people"] {
        Database::create(&server, db).await;
    }
    let api = Api::new(&server);
    // The drain goes on while it is asked for another: one of so many ends late.
    let many: Value = (0..20).map(|number| json!({ "subscribe": format!("s-{number}"), "db": "orders" })).collect();
    let mut feed = api.get(&url(&many)).header("accept", "text/event-stream").open().await;
    feed.until(|text| text.matches("caught-up").count() == 20 && text.ends_with("\n\n")).await;
    server.terminate();
    feed.until(|text| text.contains("draining") && text.ends_with("\n\n")).await;

    let asked = url(&json!([all_of("orders"), all_of("people")]));
    for accept in ["text/event-stream", "*/*"] {
        let refused = api.get(&asked).header("accept", accept).expect(503).await;
        let wait: u64 = refused.header("retry-after").expect("when to come back").parse().expect("seconds");
        assert!(wait <= DRAIN_MS / 1000 * 2, "{wait} s");
    }
    let socket = FeedSocket::open(&format!("ws://{}{asked}", server.address())).await;
    assert!(socket.is_err(), "no WebSocket either");

    let answer = feed.to_end().await;
    let (mut longest, mut told) = (0, 0);
    for event in answer.text().split_terminator("\n\n").filter(|event| event.starts_with("data: ")) {
        let lines: Vec<&str> = event.lines().collect();
        let items: Vec<Value> = serde_json::from_str(&lines[0]["data: ".len()..]).expect("a list");
        let waits: Vec<u64> = items.iter().filter_map(|item| item["retry"].as_u64()).collect();
        told += waits.len();
        longest = waits.iter().copied().fold(longest, u64::max);
        let retry = (!waits.is_empty()).then(|| format!("retry: {longest}"));
        assert_eq!(lines.get(2).map(|line| (*line).to_owned()), retry, "{event}");
    }
    assert_eq!(told, 20, "each is told: {}", answer.text());
    assert!(answer.text().contains("{\"event\":\"end\",\"reason\":\"shutdown\"}"), "{}", answer.text());
    assert_eq!(server.wait().code(), Some(0));
}
