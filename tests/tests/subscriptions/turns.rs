//! Subscriptions take turns.

use serde_json::{Value, json};

use super::client::{Client, is};
use super::{all_of, two};

#[tokio::test(flavor = "multi_thread")]
async fn a_large_backlog_starves_nobody() {
    let (_server, api, [orders, people]) = two().await;
    let docs: Vec<Value> = (0..5000).map(|n| json!({ "_id": format!("o-{n}"), "pad": "x".repeat(200) })).collect();
    orders.bulk(&docs).await;
    people.put("p-1", &json!({})).await;
    let large = json!({ "subscribe": "orders", "since": 0, "include_docs": true });
    let mut client = Client::open(&api, &json!([large, all_of("people")])).await;
    let before = client.until(|item| is(item, "caught-up", "people")).await;
    assert!(before.iter().any(|item| item["id"] == "p-1"));
    let rows = before.iter().filter(|item| item["sub"] == "orders" && item.get("id").is_some()).count();
    assert!(rows < 2000, "{rows} rows of the large one came before the small one was heard");
    let rest = client.until(|item| is(item, "caught-up", "orders")).await;
    let seqs: Vec<u64> = before
        .iter()
        .chain(&rest)
        .filter(|item| item["sub"] == "orders" && item.get("id").is_some())
        .map(|row| row["seq"].as_u64().expect("a number"))
        .collect();
    assert_eq!(seqs, (1..=5000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_not_read_is_changed_all_the_same() {
    let (_server, api, [orders, _]) = two().await;
    let docs: Vec<Value> = (0..2000).map(|n| json!({ "_id": format!("o-{n}"), "pad": "x".repeat(10_000) })).collect();
    for part in docs.chunks(500) {
        orders.bulk(part).await;
    }
    // More than the system's buffers take.
    let mut client = Client::open(&api, &json!([{ "subscribe": "orders", "since": 0, "include_docs": true }])).await;
    let mut done = 0;
    loop {
        let answer = client.change(&json!({ "subscribe": "people" })).await;
        if answer.status == 413 {
            break;
        }
        answer.assert_status(200);
        client.change(&json!({ "unsubscribe": "people" })).await.assert_status(200);
        done += 1;
        assert!(done <= 200, "what it is not told of piles up");
    }
    let items = client.until(|item| is(item, "caught-up", "orders")).await;
    assert_eq!(items.iter().filter(|item| item["sub"] == "orders" && item.get("id").is_some()).count(), 2000);
}
