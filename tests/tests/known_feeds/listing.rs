//! What is told of feeds.

use std::collections::BTreeSet;

use seqtide_tests::database::fresh;
use seqtide_tests::http::{Opened, escaped};
use seqtide_tests::known_feeds::{feeds, feeds_when};
use seqtide_tests::{Database, raw};
use serde_json::{Value, json};

const KINDS: [&str; 6] = ["continuous", "eventsource", "lines", "longpoll", "sse", "websocket"];

/// A feed of each kind that stays open, and one of all databases.
async fn open_all(database: &Database) -> Vec<Opened> {
    let mut open = Vec::new();
    for path in ["longpoll", "continuous", "eventsource"] {
        open.push(database.get(&format!("/_changes?feed={path}&since=now&heartbeat=60000")).open().await);
    }
    open.push(database.get("/_feed?prefix=order-").header("accept", "text/event-stream").open().await);
    let selector = escaped(r#"{"type":"order"}"#);
    open.push(database.get(&format!("/_feed?selector={selector}")).open().await);
    open.push(database.api.get("/_feed?prefix=d").open().await);
    open
}

fn of_kind<'a>(feeds: &'a [Value], kind: &str) -> &'a Value {
    let found = feeds.iter().find(|feed| feed["kind"] == kind && feed["database"] == "db");
    found.unwrap_or_else(|| panic!("no {kind} in {feeds:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_feed_is_listed_with_what_it_is_and_how_it_stands() {
    let (server, database) = fresh().await;
    let open = open_all(&database).await;
    let (socket, _head) = raw::upgraded(server.address(), "/db/_feed?since=0&heartbeat=60000", "").await;
    let all_live = |feeds: &[Value]| feeds.len() == 7 && feeds.iter().all(|feed| feed["state"] == "live");
    let listed = feeds_when(&database.api, all_live).await;
    let kinds: BTreeSet<&str> = listed.iter().filter_map(|feed| feed["kind"].as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(KINDS));
    let ids: Vec<u64> = listed.iter().map(|feed| feed["id"].as_u64().expect("a number")).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");

    let websocket = of_kind(&listed, "websocket");
    assert_eq!(websocket["client"], socket.local_addr().expect("an address").to_string());
    assert_eq!((&websocket["filter"], &websocket["seq"]), (&Value::Null, &json!(0)));
    assert!(websocket["opened_on"].as_u64().is_some_and(|secs| secs > 1_700_000_000), "{websocket}");
    assert_eq!(of_kind(&listed, "sse")["filter"], r#"prefix: "order-""#);
    assert_eq!(of_kind(&listed, "lines")["filter"], r#"selector: {"type":"order"}"#);
    let of_server = listed.iter().find(|feed| feed["database"].is_null()).expect("the feed of all databases");
    assert_eq!((&of_server["kind"], &of_server["filter"]), (&json!("lines"), &json!(r#"prefix: "d""#)));

    database.put("order-1", &json!({ "type": "order" })).await;
    let one_row =
        |feeds: &[Value]| feeds.len() == 6 && feeds.iter().all(|feed| feed["sent"]["rows"].as_u64() > Some(0));
    let listed = feeds_when(&database.api, one_row).await;
    assert!(listed.iter().all(|feed| feed["kind"] != "longpoll"), "it is answered: {listed:#?}");
    for feed in &listed {
        assert_eq!(feed["lag"], json!({ "rows": 0, "seconds": 0.0 }), "{feed}");
        let row = r#"{"seq":1,"id":"order-1","changes":[{"rev":"1-x"}]}"#;
        let at_least = if feed["database"].is_null() { 20 } else { row.len() as u64 };
        assert!(feed["sent"]["bytes"].as_u64() > Some(at_least), "{feed}");
        if feed["database"] == "db" {
            assert_eq!(feed["seq"], 1, "{feed}");
        }
        let one = database.api.get(&format!("/_feeds/{}", feed["id"])).expect(200).await.json();
        assert_eq!((&one["id"], &one["sent"]), (&feed["id"], &feed["sent"]));
    }
    drop((open, socket));
    feeds_when(&database.api, <[Value]>::is_empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_read_in_parts_and_bounded() {
    let (_server, database) = fresh().await;
    let _open = open_all(&database).await;
    let ids: Vec<Value> = feeds(&database.api).await.iter().map(|feed| feed["id"].clone()).collect();
    assert_eq!(ids.len(), 6);
    let (mut parts, mut after) = (Vec::new(), json!(0));
    loop {
        let part = database.api.get(&format!("/_feeds?limit=4&after={after}")).expect(200).await.json();
        assert_eq!(part["open"], 6);
        let Some(feeds) = part["feeds"].as_array().filter(|feeds| !feeds.is_empty()) else { break };
        parts.extend(feeds.iter().map(|feed| feed["id"].clone()));
        after = parts.last().expect("one at least").clone();
    }
    assert_eq!(parts, ids);
    for (path, status) in
        [("/_feeds?limit=1001", 400), ("/_feeds?after=x", 400), ("/_feeds/1", 404), ("/_feeds/x", 404)]
    {
        database.api.get(path).expect(status).await;
    }
    for (method, path) in [("PUT", "/_feeds/1"), ("DELETE", "/_feeds")] {
        database.api.request(method, path).expect(405).await;
    }
}
