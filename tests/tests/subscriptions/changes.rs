//! Subscribing and unsubscribing on a connection that is open.

use serde_json::json;

use super::client::{Client, is, url};
use super::{all_of, brief, two};
use seqtide_tests::Database;

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_comes_and_goes() {
    let (_server, api, [orders, people]) = two().await;
    orders.put("o-1", &json!({})).await;
    let mut client = Client::open(&api, &json!([all_of("people")])).await;
    let done = client.change(&json!({ "subscribe": "mine", "db": "orders", "since": 0 })).await;
    assert_eq!((done.status, done.json()), (200, json!({ "ok": true, "sub": "mine", "seq": 0 })));
    let items = client.until(|item| is(item, "caught-up", "mine")).await;
    let mine: Vec<String> = items.iter().filter(|item| item["sub"] == "mine").map(brief).collect();
    assert_eq!(mine, ["mine subscribed 0", "mine opened 0", "mine o-1 1", "mine caught-up 1"]);

    let done = client.change(&json!({ "unsubscribe": "mine" })).await;
    assert_eq!((done.status, done.json()), (200, json!({ "ok": true, "sub": "mine" })));
    client.until(|item| is(item, "unsubscribed", "mine")).await;
    orders.put("o-2", &json!({})).await;
    people.put("p-1", &json!({})).await;
    let items = client.until(|item| item["id"] == "p-1").await;
    assert!(items.iter().all(|item| item["sub"] != "mine"), "{items:?}");

    // The name is free, and may be of something else.
    client.change(&json!({ "subscribe": "mine", "db": "orders", "since": 1 })).await.assert_status(200);
    let items = client.until(|item| is(item, "caught-up", "mine")).await;
    let mine: Vec<String> = items.iter().filter(|item| item["sub"] == "mine").map(brief).collect();
    assert_eq!(mine, ["mine subscribed 1", "mine opened 1", "mine o-2 2", "mine caught-up 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_a_list_is_done_or_refused() {
    let (_server, api, _) = two().await;
    let mut client = Client::open(&api, &json!([all_of("people")])).await;
    let answer = client
        .change(&json!([
            { "subscribe": "a", "db": "orders" },
            { "subscribe": "a", "db": "orders" },
            { "subscribe": "b", "db": "none" },
            { "subscribe": "b", "db": "orders", "sinc": 0 },
            { "unsubscribe": "people" },
            { "unsubscribe": "people" }
        ]))
        .await;
    answer.assert_status(200);
    let told = answer.json();
    let told: Vec<_> =
        told.as_array().expect("a list").iter().map(|one| one["error"].as_str().unwrap_or("ok")).collect();
    assert_eq!(told, ["ok", "conflict", "not_found", "bad_request", "ok", "not_found"]);
    client.until(|item| is(item, "unsubscribed", "people")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_said_with_the_status_of_a_feed() {
    let (_server, api, _) = two().await;
    let client = Client::open(&api, &json!([all_of("people")])).await;
    for (change, status, word) in [
        (json!({ "subscribe": "people" }), 409, "conflict"),
        (json!({ "unsubscribe": "orders" }), 404, "not_found"),
        (json!({ "subscribe": "x", "db": "none" }), 404, "not_found"),
        (json!({ "subscribe": "x", "db": "No" }), 400, "illegal_database_name"),
        (json!({ "subscribe": "x", "db": "orders", "sinc": 0 }), 400, "bad_request"),
        (json!({ "subscribe": "x", "db": "orders", "heartbeat": 5 }), 400, "bad_request"),
        (json!({ "subscribe": "x", "db": "orders", "since": 9, "on_rewind": "error" }), 410, "gone"),
        (json!({ "subscribe": "", "db": "orders" }), 400, "bad_request"),
        (json!({ "subscribe": "x".repeat(101), "db": "orders" }), 400, "bad_request"),
        (json!({ "subscribe": 7, "db": "orders" }), 400, "bad_request"),
        (json!({ "unsubscribe": "people", "db": "people" }), 400, "bad_request"),
        (json!({ "db": "orders" }), 400, "bad_request"),
        (json!("subscribe"), 400, "bad_request"),
    ] {
        let answer = client.change(&change).await;
        assert_eq!((answer.status, answer.json()["error"].as_str()), (status, Some(word)), "{change}");
        assert!(answer.json()["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_changed_by_who_knows_its_id() {
    let (_server, api, _) = two().await;
    let one = Client::open(&api, &json!([all_of("people")])).await;
    let mut other = Client::open(&api, &json!([all_of("people")])).await;
    assert_ne!(one.connection, other.connection);
    assert!(one.connection.len() >= 22, "128 bits: {}", one.connection);
    for id in ["x", "", "many2", &one.connection[1..]] {
        let answer = api.post(&format!("/_feed/{id}")).json(&json!({ "unsubscribe": "people" })).send().await;
        assert!(answer.status == 404 || id.is_empty(), "{id:?}: {}", answer.status);
    }
    api.get(&format!("/_feed/{}", one.connection)).expect(405).await;
    api.post(&format!("/_feed/{}?since=0", one.connection)).json(&json!([])).expect(400).await;
    other.change(&json!({ "subscribe": "orders" })).await.assert_status(200);
    other.until(|item| is(item, "subscribed", "orders")).await;
    one.change(&json!({ "unsubscribe": "orders" })).await.assert_status(404);

    // A connection that is over is forgotten.
    let id = one.connection.clone();
    drop(one);
    let deadline = tokio::time::Instant::now() + seqtide_tests::http::SOON;
    loop {
        let answer = api.post(&format!("/_feed/{id}")).json(&json!([])).send().await;
        if answer.status == 404 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "it is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_is_so_for_who_comes_back() {
    let (mut server, api, [orders, people]) = two().await;
    let more = Database::create(&server, "more").await;
    let named = json!([all_of("orders"), all_of("people")]);
    let mut client = Client::open(&api, &named).await;
    client.change(&json!({ "unsubscribe": "orders" })).await.assert_status(200);
    client.change(&json!({ "subscribe": "later", "db": "more", "since": 0, "prefix": "m" })).await.assert_status(200);
    more.put("m-1", &json!({})).await;
    client.until(|item| item["id"] == "m-1").await;
    server.kill();
    while client.next().await.is_some() {}
    server.restart_on_same_port_and_data();

    for (database, id) in [(&orders, "o-1"), (&more, "x"), (&more, "m-2"), (&people, "p-1")] {
        database.put(id, &json!({})).await;
    }
    let mut client = Client::try_open(&api, &url(&named), client.last_event_id).await.expect("it is back");
    let mut items = client.until(|item| item["event"] == "caught-up").await;
    items.extend(client.until(|item| item["event"] == "caught-up").await);
    let ids: Vec<String> = items.iter().filter(|item| item.get("id").is_some()).map(brief).collect();
    assert_eq!(ids, ["people p-1 1", "later m-2 3"], "{items:?}");
    client.change(&json!({ "unsubscribe": "later" })).await.assert_status(200);
}
