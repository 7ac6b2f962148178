//! Subscriptions take turns.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::client::{Client, is, url, url_with};
use super::{all_of, two};
use seqtide_tests::doors::FeedSocket;
use seqtide_tests::http::SOON;
use seqtide_tests::{Api, Database, Server};

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

/// A connection with a subscription to orders by a function, which is being asked about a document that it hangs at,
/// and one to people.
async fn hanging(server: &Server) -> (Client, [Database; 2]) {
    let api = Api::new(server);
    let [orders, people] = [Database::create(server, "orders").await, Database::create(server, "people").await];
    let hangs = "function (doc) { while (doc.hangs); return true; }";
    orders.request("PUT", "/_design/d").json(&json!({ "filters": { "f": hangs } })).expect(201).await;
    let subscriptions = json!([{ "subscribe": "orders", "filter": "d/f" }, { "subscribe": "people" }]);
    let mut client = Client::try_open(&api, &url_with(60_000, &subscriptions), None).await.expect("a connection");
    for _ in subscriptions.as_array().expect("a list") {
        client.until(|item| item["event"] == "caught-up").await;
    }
    let asked = async || api.metric("seqtide_filter_evaluations_total").await;
    let before = asked().await;
    orders.put("o-1", &json!({ "hangs": true })).await;
    let deadline = Instant::now() + SOON;
    while asked().await == before {
        assert!(Instant::now() < deadline, "the function is not asked");
        sleep(Duration::from_millis(5)).await;
    }
    (client, [orders, people])
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_function_does_not_answer_is_over_and_its_name_is_free() {
    let server = Server::launch().arg("--functions-batch-timeout-ms=2000").start();
    let (mut client, [orders, _]) = hanging(&server).await;
    let error = client.until(|item| item["event"] == "error").await.pop().expect("an error");
    assert_eq!(error["sub"], "orders");
    client.change(&json!({ "subscribe": "orders" })).await.assert_status(200);
    orders.put("o-2", &json!({})).await;
    client.until(|item| item["id"] == "o-2").await;
}

/// They were opened one after the other: with a few slow functions a client gave up before the connection was there.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_opened_with_a_slow_function_keeps_no_other_from_being_opened() {
    let server = Server::launch().arg("--functions-batch-timeout-ms=60000").start();
    let api = Api::new(&server);
    let [orders, _people] = [Database::create(&server, "orders").await, Database::create(&server, "people").await];
    let hangs = "function () { while (true); }";
    orders.request("PUT", "/_design/d").json(&json!({ "filters": { "f": hangs } })).expect(201).await;
    let slow = json!({ "subscribe": "orders", "since": 0, "filter": "d/f" });
    let url = url_with(60_000, &json!([slow, { "subscribe": "people" }]));
    let opening = {
        let api = Api::new(&server);
        tokio::spawn(async move { Client::try_open(&api, &url, None).await.is_ok() })
    };
    let deadline = Instant::now() + SOON;
    while feeds(&api, "people").await.is_empty() {
        assert!(Instant::now() < deadline, "the other one is not opened");
        sleep(Duration::from_millis(5)).await;
    }
    assert!(!opening.is_finished(), "the slow one is still being opened");
    opening.abort();
}

/// One whose function did not answer kept the others from being heard for as long, a heartbeat at most.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_for_its_function_keeps_no_other_waiting_and_is_given_up_at_once() {
    let server = Server::launch().arg("--functions-batch-timeout-ms=60000").start();
    let (mut client, [_, people]) = hanging(&server).await;
    people.put("p-1", &json!({})).await;
    client.until(|item| item["id"] == "p-1").await;
    client.change(&json!({ "unsubscribe": "orders" })).await.assert_status(200);
    client.until(|item| is(item, "unsubscribed", "orders")).await;
    let (api, deadline) = (Api::new(&server), Instant::now() + SOON);
    while !feeds(&api, "orders").await.is_empty() {
        assert!(Instant::now() < deadline, "it holds its place");
        sleep(Duration::from_millis(10)).await;
    }
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
        if answer.status == 503 {
            assert!(answer.json()["reason"].as_str().is_some_and(|why| why.contains("is read")), "{}", answer.text());
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

/// What its subscriptions hold is given back.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_not_read_is_cut_when_one_of_its_subscriptions_is_ended() {
    let (server, api, [orders, _]) = two().await;
    let docs: Vec<Value> = (0..2000).map(|n| json!({ "_id": format!("o-{n}"), "pad": "x".repeat(10_000) })).collect();
    for part in docs.chunks(500) {
        orders.bulk(part).await;
    }
    // More than the system's buffers take.
    let large = json!([{ "subscribe": "orders", "since": 0, "include_docs": true }, all_of("people")]);
    let stalled = Client::open(&api, &large).await;
    let socket = FeedSocket::open(&format!("ws://{}{}", server.address(), url(&large))).await.expect("a WebSocket");
    let listed = stalled_feeds(&api).await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    for feed in &listed {
        api.request("DELETE", &format!("/_feeds/{}", feed["id"])).expect(200).await;
    }
    let deadline = Instant::now() + SOON;
    while !feeds(&api, "orders").await.is_empty() {
        assert!(Instant::now() < deadline, "they hold their places");
        sleep(Duration::from_millis(50)).await;
    }
    drop((stalled, socket));
}

/// The feeds of a database that are open.
async fn feeds(api: &Api, database: &str) -> Vec<Value> {
    let answer = api.get("/_feeds").expect(200).await.json();
    let all = answer["feeds"].as_array().expect("a list");
    all.iter().filter(|feed| feed["database"] == database).cloned().collect()
}

/// The same when each has given something, and none has given more for a while: nobody takes it.
async fn stalled_feeds(api: &Api) -> Vec<Value> {
    let deadline = Instant::now() + SOON;
    let (mut last, mut unchanged) = (Vec::new(), 0);
    while unchanged < 20 {
        assert!(Instant::now() < deadline, "they go on and on: {last:?}");
        sleep(Duration::from_millis(20)).await;
        let now = feeds(api, "orders").await;
        let rows = |feeds: &[Value]| feeds.iter().map(|feed| feed["sent"]["rows"].as_u64()).collect::<Vec<_>>();
        let is_same = rows(&now) == rows(&last) && rows(&now).iter().all(|rows| *rows > Some(0));
        unchanged = if is_same { unchanged + 1 } else { 0 };
        last = now;
    }
    last
}
