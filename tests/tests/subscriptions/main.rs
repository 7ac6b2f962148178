//! Many subscriptions on one connection: `/_feed/many` over SSE, lines and WebSocket, and changes by
//! `/_feed/{connection}`.

mod bounds;
mod changes;
mod client;
mod draining;
mod forms;
mod page;
mod restarts;
mod server;
mod turns;
mod websocket;

use serde_json::{Value, json};

use seqtide_tests::database::fresh;
use seqtide_tests::{Api, Database, Server};

/// A server with two databases, `orders` and `people`.
async fn two() -> (Server, Api, [Database; 2]) {
    let server = Server::start();
    let databases = [Database::create(&server, "orders").await, Database::create(&server, "people").await];
    let api = Api::new(&server);
    (server, api, databases)
}

/// A subscription to all of a database under its own name, from the beginning.
fn all_of(db: &str) -> Value {
    json!({ "subscribe": db, "since": 0 })
}

/// What items say but for heartbeats: on a slow machine they come between any two.
fn said(items: &[Value]) -> Vec<String> {
    items.iter().filter(|item| item["event"] != "heartbeat").map(brief).collect()
}

/// What an item says without its revisions, which are long.
fn brief(item: &Value) -> String {
    let text = |name: &str| item[name].as_str().unwrap_or("-").to_owned();
    match item.get("event") {
        Some(_) => format!("{} {} {}", text("sub"), text("event"), item["seq"]),
        None => format!("{} {} {}", text("sub"), text("id"), item["seq"]),
    }
}
