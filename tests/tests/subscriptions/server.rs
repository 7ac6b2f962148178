//! A subscription with `"db": null` follows all databases of the server, beside those that follow one.

use serde_json::{Value, json};

use super::client::{Client, is, url};
use super::{all_of, brief, two, websocket};
use seqtide_tests::{Api, Database, Server};

fn all() -> Value {
    json!([{ "subscribe": "all", "db": null, "since": 0 }, all_of("orders")])
}

/// What is told of the databases.
fn updates(items: &[Value]) -> Vec<String> {
    let of_all = items.iter().filter(|item| item["sub"] == "all" && item.get("event").is_none());
    of_all.map(|row| format!("{} {}", row["db_name"], row["type"]).replace('"', "")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_databases_are_one_of_many_on_every_form() {
    let (server, api, [orders, people]) = two().await;
    orders.put("o-1", &json!({})).await;
    people.put("p-1", &json!({})).await;
    let expected = ["orders created", "people created", "orders updated", "people updated"];

    let mut client = Client::open(&api, &all()).await;
    let mut items = client.until(|item| is(item, "caught-up", "all")).await;
    assert_eq!(updates(&items), expected);
    if !items.iter().any(|item| is(item, "caught-up", "orders")) {
        items.extend(client.until(|item| is(item, "caught-up", "orders")).await);
    }
    let rows: Vec<String> = items.iter().filter(|item| item["id"].is_string()).map(brief).collect();
    assert_eq!(rows, ["orders o-1 1"], "rows of documents are those of their subscription");

    let mut lines = api.post("/_feed/many").json(&json!({ "subscriptions": all() })).open().await;
    let text = lines.until(|text| text.matches("caught-up").count() == 2 && text.ends_with('\n')).await;
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(updates(&told), expected);

    let mut socket = websocket::open(&server, "").await;
    socket.send(&json!({ "subscribe": "all", "db": null, "since": 0, "prefix": "peo" }).to_string()).await;
    let told = websocket::until(&mut socket, |item| is(item, "caught-up", "all")).await;
    assert_eq!(updates(&told), ["people created", "people updated"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_behind_the_last_id_after_a_restart() {
    let (mut server, api, _) = two().await;
    let asked = json!([all_of("orders")]);
    let mut client = Client::open(&api, &asked).await;
    client.until(|item| is(item, "caught-up", "orders")).await;
    let subscribed = client.change(&json!({ "subscribe": "all", "db": null, "since": 0 })).await;
    assert_eq!((subscribed.status, &subscribed.json()["seq"]), (200, &json!(0)));
    let items = client.until(|item| is(item, "caught-up", "all")).await;
    assert_eq!(updates(&items), ["orders created", "people created"]);
    server.stop();
    server.restart_on_same_port_and_data();
    Database::create(&server, "third").await;
    let mut back = Client::try_open(&api, &url(&asked), client.last_event_id).await.expect("it is back");
    let items = back.until(|item| is(item, "caught-up", "all")).await;
    assert_eq!(updates(&items), ["third created"]);
    let gone = back.change(&json!({ "unsubscribe": "all" })).await;
    assert_eq!(gone.status, 200);
    back.until(|item| is(item, "unsubscribed", "all")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_feed_of_databases_has_not_is_refused_by_name() {
    let server = Server::start();
    let api = Api::new(&server);
    for (option, value) in [("include_docs", json!(true)), ("selector", json!({})), ("heartbeat", json!(5))] {
        let mut subscription = json!({ "subscribe": "all", "db": null });
        subscription[option] = value;
        let refused = api.post("/_feed/many").json(&json!({ "subscriptions": subscription })).expect(400).await.json();
        let reason = refused["reason"].as_str().expect("a reason");
        assert!(reason.contains(&format!("`{option}`")) && reason.contains("prefix"), "{reason}");
    }
    let timed = json!({ "subscribe": "all", "db": null, "since": "2026-03-01T12:00:00Z" });
    let refused = api.post("/_feed/many").json(&json!({ "subscriptions": timed })).expect(400).await.json();
    assert!(refused["reason"].as_str().is_some_and(|reason| reason.contains("`since`")), "{refused}");
}
