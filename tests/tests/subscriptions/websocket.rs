//! Over WebSocket messages say what is wanted.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{said, two};
use seqtide_tests::Server;
use seqtide_tests::doors::FeedSocket;
use seqtide_tests::http::escaped;

pub async fn open(server: &Server, query: &str) -> FeedSocket {
    FeedSocket::open(&format!("ws://{}/_feed/many{query}", server.address())).await.expect("a WebSocket")
}

/// Reads up to the item that `is_last` names, and gives all.
pub async fn until(socket: &mut FeedSocket, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let Some(Message::Text(text)) = socket.next().await else { panic!("it is over after {all:?}") };
        all.extend(serde_json::from_str::<Vec<Value>>(&text).expect("a list"));
        if all.iter().any(&is_last) {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_subscribe_and_unsubscribe() {
    let (server, _, [orders, people]) = two().await;
    orders.put("o-1", &json!({})).await;
    let mut socket = open(&server, "").await;
    let first = until(&mut socket, |item| item["event"] == "connection").await;
    assert_eq!(said(&first), ["- connection null"]);
    socket.send(&json!({ "subscribe": "orders", "since": 0 }).to_string()).await;
    let items = until(&mut socket, |item| item["event"] == "caught-up").await;
    assert_eq!(said(&items), ["orders subscribed 0", "orders opened 0", "orders o-1 1", "orders caught-up 1"]);
    socket.send(&json!([{ "unsubscribe": "orders" }, { "subscribe": "p", "db": "people" }]).to_string()).await;
    let items = until(&mut socket, |item| item["event"] == "caught-up").await;
    assert_eq!(said(&items), ["orders unsubscribed null", "p subscribed 0", "p opened 0", "p caught-up 0"]);
    orders.put("o-2", &json!({})).await;
    people.put("p-1", &json!({})).await;
    let items = until(&mut socket, |item| item["id"] == "p-1").await;
    assert_eq!(said(&items), ["p p-1 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_refused_and_nothing_else_happens() {
    let (server, _, _) = two().await;
    let subscriptions = escaped(&json!({ "subscribe": "orders" }).to_string());
    let mut socket = open(&server, &format!("?subscriptions={subscriptions}")).await;
    until(&mut socket, |item| item["event"] == "caught-up").await;
    for (message, sub, error) in [
        ("hello".to_owned(), None, "bad_request"),
        (json!({ "subscribe": "orders" }).to_string(), Some("orders"), "conflict"),
        (json!({ "subscribe": "x", "db": "none" }).to_string(), Some("x"), "not_found"),
        (json!({ "unsubscribe": "x" }).to_string(), Some("x"), "not_found"),
        (json!([{ "subscribe": "y", "bogus": 1 }]).to_string(), Some("y"), "bad_request"),
    ] {
        socket.send(&message).await;
        let refused = until(&mut socket, |item| item["event"] == "refused").await.pop().expect("it is refused");
        assert_eq!((refused["sub"].as_str(), refused["error"].as_str()), (sub, Some(error)), "{message}");
    }
    socket.send(&json!({ "subscribe": "people" }).to_string()).await;
    until(&mut socket, |item| item["event"] == "subscribed" && item["sub"] == "people").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_heard_while_rows_are_not_taken() {
    let (server, _, [orders, people]) = two().await;
    let docs: Vec<Value> = (0..3000).map(|n| json!({ "_id": format!("o-{n}"), "pad": "x".repeat(5000) })).collect();
    for part in docs.chunks(500) {
        orders.bulk(part).await;
    }
    let mut socket = open(&server, "").await;
    socket.send(&json!({ "subscribe": "orders", "since": 0, "include_docs": true }).to_string()).await;
    // More than the system's buffers take, so the server waits for this reader by the time it is heard.
    for number in 0..40 {
        socket.send(&json!({ "subscribe": format!("p-{number}"), "db": "people" }).to_string()).await;
    }
    people.put("p", &json!({})).await;
    let items = until(&mut socket, |item| item["event"] == "caught-up" && item["sub"] == "orders").await;
    assert_eq!(items.iter().filter(|item| item["sub"] == "orders" && item.get("id").is_some()).count(), 3000);
    let subscribed = items.iter().filter(|item| item["event"] == "subscribed").count();
    assert_eq!(subscribed, 41, "every message was heard");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_the_end_of_the_whole() {
    let (server, _, _) = two().await;
    let subscriptions = escaped(&json!([{ "subscribe": "orders" }, { "subscribe": "people" }]).to_string());
    let mut socket = open(&server, &format!("?subscriptions={subscriptions}")).await;
    let idle = open(&server, "").await;
    until(&mut socket, |item| item["event"] == "caught-up").await;
    server.terminate();
    for mut socket in [socket, idle] {
        let mut items = Vec::new();
        let code = loop {
            match socket.next().await {
                Some(Message::Text(text)) => items.extend(serde_json::from_str::<Vec<Value>>(&text).expect("a list")),
                Some(Message::Close(Some(frame))) => break frame.code,
                other => panic!("{other:?} after {items:?}"),
            }
        };
        assert_eq!(items.last(), Some(&json!({ "event": "end", "reason": "shutdown" })), "{items:?}");
        assert!(items.iter().all(|item| item["event"] != "end" || item["reason"] == "shutdown"), "{items:?}");
        assert_eq!(code, CloseCode::Away);
    }
}
