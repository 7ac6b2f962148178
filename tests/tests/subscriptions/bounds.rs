//! What a connection may have.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{Client, is, url};
use super::{all_of, fresh};
use seqtide_tests::http::{SOON, escaped};
use seqtide_tests::{Api, Database, Server};

fn numbered(count: usize) -> Value {
    (0..count).map(|number| json!({ "subscribe": format!("s-{number}"), "db": "db" })).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_subscriptions_and_no_more() {
    let server = Server::launch().arg("--limits-subscriptions-max=3").start();
    Database::create(&server, "db").await;
    let api = Api::new(&server);
    let refused = api.get(&url(&numbered(4))).send().await;
    assert_eq!((refused.status, refused.json()["error"].as_str()), (413, Some("too_large")));
    let mut client = Client::open(&api, &numbered(3)).await;
    let more = client.change(&json!({ "subscribe": "more", "db": "db" })).await;
    assert_eq!((more.status, more.json()["error"].as_str()), (413, Some("too_many_subscriptions")));
    client.change(&json!({ "unsubscribe": "s-1" })).await.assert_status(200);
    client.until(|item| is(item, "unsubscribed", "s-1")).await;
    client.change(&json!({ "subscribe": "more", "db": "db" })).await.assert_status(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_subscription_counts_as_a_feed() {
    let server = Server::launch().arg("--limits-feeds-max=2").start();
    Database::create(&server, "db").await;
    let api = Api::new(&server);
    let mut client = Client::open(&api, &numbered(3)).await;
    let refused = client.until(|item| item["event"] == "refused").await.pop().expect("one too many");
    assert_eq!((refused["sub"].as_str(), refused["error"].as_str()), (Some("s-2"), Some("service unavailable")));
    client.change(&json!({ "subscribe": "more", "db": "db" })).await.assert_status(503);
    // One that waits for changes gives its place back at once.
    client.until(|item| is(item, "caught-up", "s-1")).await;
    client.change(&json!({ "unsubscribe": "s-0" })).await.assert_status(200);
    client.until(|item| is(item, "unsubscribed", "s-0")).await;
    client.change(&json!({ "subscribe": "more", "db": "db" })).await.assert_status(200);
}

/// The place of one that is refused is another's, and the client comes back for both.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_for_more_than_there_may_be_is_refused_what_is_too_much_and_no_more() {
    let server = Server::launch().arg("--limits-subscriptions-max=2").start();
    let database = Database::create(&server, "db").await;
    let api = Api::new(&server);
    let named = json!([all_of("none-yet")]);
    let mut client = Client::open(&api, &named).await;
    client.until(|item| is(item, "refused", "none-yet")).await;
    for name in ["one", "two"] {
        client.change(&json!({ "subscribe": name, "db": "db" })).await.assert_status(200);
        client.until(|item| is(item, "caught-up", name)).await;
    }
    Database::create(&server, "none-yet").await;
    let id = client.last_event_id.take();
    let mut client = Client::try_open(&api, &url(&named), id).await.expect("what there may be");
    let items = client.until(|item| is(item, "refused", "two")).await;
    assert_eq!(items.last().map(|refused| &refused["error"]), Some(&json!("too_many_subscriptions")));
    for name in ["none-yet", "one"] {
        assert!(items.iter().any(|item| is(item, "subscribed", name)), "{items:?}");
    }

    // It comes when there is a place for it, with what was written meanwhile.
    database.put("a", &json!({})).await;
    client.change(&json!({ "unsubscribe": "none-yet" })).await.assert_status(200);
    client.until(|item| is(item, "unsubscribed", "none-yet")).await;
    let id = client.last_event_id.take();
    let mut client = Client::try_open(&api, &url(&named), id).await.expect("both");
    client.until(|item| item["sub"] == "two" && item["id"] == "a").await;
}

/// What is looked for in vain takes no place meanwhile from what is there.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_is_refused_what_is_not_there_and_no_more() {
    let server = Server::launch().arg("--limits-subscriptions-max=2").start();
    Database::create(&server, "db").await;
    let api = Api::new(&server);
    let named = json!([{ "subscribe": "vain", "db": "db", "filter": "not/there" }]);
    let mut client = Client::open(&api, &named).await;
    client.until(|item| is(item, "refused", "vain")).await;
    for name in ["one", "two"] {
        client.change(&json!({ "subscribe": name, "db": "db" })).await.assert_status(200);
        client.until(|item| is(item, "caught-up", name)).await;
    }
    let id = client.last_event_id.take();
    let mut client = Client::try_open(&api, &url(&named), id).await.expect("what there may be");
    let items = client.until(|item| item["sub"] == "two").await;
    let refused: Vec<_> = items.iter().filter(|item| item["event"] == "refused").map(|item| &item["sub"]).collect();
    assert_eq!(refused, ["vain"], "{items:?}");
}

/// Those that are refused whenever their client comes back do not pile up in what it comes back with.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_of_those_that_came_later_leaves_room_for_others() {
    let server = Server::launch().arg("--limits-subscriptions-max=1").start();
    let api = Api::new(&server);
    let mut id = None;
    for db in ["a", "b", "c", "d"] {
        let mut client = Client::try_open(&api, &url(&json!([])), id).await.expect("an id that is taken again");
        let database = Database::create(&server, db).await;
        client.change(&json!({ "subscribe": db })).await.assert_status(200);
        client.until(|item| is(item, "caught-up", db)).await;
        id = client.last_event_id.take();
        // Gone while nobody is told of it.
        drop(client);
        database.request("DELETE", "").expect(200).await;
    }
    let mut client = Client::try_open(&api, &url(&json!([])), id).await.expect("an id that is taken again");
    client.until(|item| is(item, "refused", "d")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_makes_no_sense_is_refused_whole() {
    let (server, _) = fresh().await;
    let api = Api::new(&server);
    for subscriptions in [
        json!(7),
        json!([7]),
        json!([{ "db": "db" }]),
        json!([all_of("db"), all_of("db")]),
        json!([{ "subscribe": "db", "sinc": 0 }]),
        json!([{ "subscribe": "db", "limit": "x" }]),
        json!([{ "unsubscribe": "db" }]),
    ] {
        let answer = api.get(&url(&subscriptions)).send().await;
        assert_eq!((answer.status, answer.json()["error"].as_str()), (400, Some("bad_request")), "{subscriptions}");
    }
    for (bad, said) in [
        (json!({ "subscribe": "b", "since": "yesterday" }), "subscription \"b\": `since` is "),
        (json!({ "subscribe": "b", "sinc": 0 }), "subscription \"b\": unknown feed option `sinc` (is it `since`?)"),
        (json!({ "db": "db" }), "subscription 2 of the list: `subscribe` is "),
        (json!(7), "subscription 2 of the list: a subscription is a JSON object"),
    ] {
        let refused = api.get(&url(&json!([all_of("db"), bad]))).expect(400).await.json();
        assert!(refused["reason"].as_str().is_some_and(|reason| reason.starts_with(said)), "{said}: {refused}");
    }
    let no_json = api.get("/_feed/many?subscriptions=[").expect(400).await.json();
    assert_eq!(no_json["reason"], json!("a subscription is a JSON object, and several are a list of them"));
    api.get("/_feed/many?since=0").expect(400).await;
    api.request("PUT", "/_feed/many").expect(405).await;
    let misplaced = api.get("/db/_feed/many").expect(404).await.json();
    assert!(misplaced["reason"].as_str().is_some_and(|reason| reason.contains("root, /_feed/many")), "{misplaced}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_of_what_was_asked_for() {
    let (server, _) = fresh().await;
    let api = Api::new(&server);
    let client = Client::open(&api, &json!([all_of("db")])).await;
    let id = client.last_event_id.expect("an id");
    for (subscriptions, id) in [
        (json!([all_of("db"), { "subscribe": "x", "db": "db" }]), &*id),
        (json!([{ "subscribe": "x", "db": "db" }]), &*id),
        (json!([{ "subscribe": "db", "since": 0, "prefix": "a" }]), &*id),
        (json!([{ "subscribe": "db", "since": 0, "limit": 3 }]), &*id),
        (json!([all_of("db")]), "1AAAA"),
        (json!([all_of("db")]), "17"),
        (json!([all_of("db")]), "no id"),
    ] {
        let request = api.get(&url(&subscriptions)).header("accept", "text/event-stream").header("last-event-id", id);
        let answer = request.send().await;
        assert_eq!(answer.status, 400, "{subscriptions} {id}");
        assert!(answer.text().contains("last-event-id"), "{}", answer.text());
    }
}

/// What the id knows better may differ, and how it is written.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_taken_with_another_beginning() {
    let (server, database) = fresh().await;
    let api = Api::new(&server);
    let asked = json!([{ "subscribe": "db", "since": 0, "prefix": "a", "include_docs": true }]);
    let mut client = Client::open(&api, &asked).await;
    client.until(|item| is(item, "caught-up", "db")).await;
    let id = client.last_event_id.take();
    database.put("a", &json!({})).await;
    let subscriptions =
        "[{\"include_docs\": true, \"prefix\":\"a\",\"db\":\"db\",\"subscribe\":\"db\",\"since\":\"now\"}]";
    let url = format!("/_feed/many?heartbeat=1000&subscriptions={}", escaped(subscriptions));
    let mut client = Client::try_open(&api, &url, id).await.expect("the same subscription");
    client.until(|item| item["id"] == "a").await;
}

/// Each connection gave as many rows as `limit` says.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_goes_on_with_its_subscription() {
    let (server, database) = fresh().await;
    let api = Api::new(&server);
    let limited = |name: &str| json!({ "subscribe": name, "db": "db", "since": 0, "limit": 3 });
    let asked = json!([limited("named"), all_of("db")]);
    let mut client = Client::open(&api, &asked).await;
    client.change(&limited("later")).await.assert_status(200);
    client.until(|item| is(item, "caught-up", "later")).await;
    for id in ["a", "b"] {
        database.put(id, &json!({})).await;
    }
    let mut given = BTreeSet::new();
    while given.len() < 6 {
        given.extend(row(&client.next().await.expect("it goes on")));
    }

    let mut client = Client::try_open(&api, &url(&asked), client.last_event_id).await.expect("the same request");
    for id in ["c", "d"] {
        database.put(id, &json!({})).await;
    }
    let mut awaited = BTreeSet::from(["end of later", "end of named", "db d"].map(str::to_owned));
    let deadline = Instant::now() + SOON;
    while !awaited.is_empty() {
        assert!(Instant::now() < deadline, "there is no {awaited:?} behind {given:?}");
        let item = client.next().await.expect("it goes on");
        if let Some(row) = row(&item) {
            assert!(given.insert(row.clone()), "{row} comes twice");
            awaited.remove(&row);
        }
        if item["event"] == "end" {
            assert_eq!((&item["reason"], &item["seq"]), (&json!("limit"), &json!(3)));
            awaited.remove(&format!("end of {}", item["sub"].as_str().expect("a name")));
        }
    }
    let expected = ["db a", "db b", "db c", "db d", "later a", "later b", "later c", "named a", "named b", "named c"];
    assert_eq!(given.iter().collect::<Vec<_>>(), expected);

    // They are over, and stay so.
    let mut client = Client::try_open(&api, &url(&asked), client.last_event_id).await.expect("the same request");
    database.put("e", &json!({})).await;
    let items = client.until(|item| row(item).is_some()).await;
    assert!(items.iter().all(|item| item["sub"].is_null() || item["sub"] == "db"), "{items:?}");
}

/// Whose row of which document an item is, if it is one.
fn row(item: &Value) -> Option<String> {
    let id = item["id"].as_str().filter(|_| item.get("event").is_none())?;
    Some(format!("{} {id}", item["sub"].as_str().expect("every row says whose it is")))
}

/// A subscription that came later and was refused came back beside the one that took its name, and before it.
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_the_name_of_one_that_was_refused_is_the_one_that_comes_back() {
    let server = Server::start();
    let api = Api::new(&server);
    let old = Database::create(&server, "old").await;
    Database::create(&server, "new").await;
    let asked = json!([{ "subscribe": "x", "db": "none" }]);
    let mut client = Client::open(&api, &asked).await;
    client.until(|item| is(item, "refused", "x")).await;
    client.change(&json!({ "subscribe": "x", "db": "old" })).await.assert_status(200);
    client.until(|item| is(item, "caught-up", "x")).await;
    let id = client.last_event_id.take();
    drop(client);
    old.request("DELETE", "").expect(200).await;
    let mut client = Client::try_open(&api, &url(&asked), id).await.expect("the same request");
    client.until(|item| is(item, "refused", "x")).await;
    client.change(&json!({ "subscribe": "x", "db": "new" })).await.assert_status(200);
    client.until(|item| is(item, "caught-up", "x")).await;
    let id = client.last_event_id.take();
    drop(client);
    let old = Database::create(&server, "old").await;
    let mut client = Client::try_open(&api, &url(&asked), id).await.expect("the same request");
    let items = client.until(|item| is(item, "caught-up", "x")).await;
    assert!(!items.iter().any(|item| item["event"] == "refused"), "{items:?}");
    old.put("of-old", &json!({})).await;
    Database::at(&server, "new").put("of-new", &json!({})).await;
    let items = client.until(|item| row(item).is_some()).await;
    assert_eq!(items.last().and_then(row).as_deref(), Some("x of-new"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_later_fits_into_an_id() {
    let (server, _) = fresh().await;
    let api = Api::new(&server);
    let client = Client::open(&api, &json!([all_of("db")])).await;
    // What nothing makes shorter: digits of a row of fractions.
    let ids: Vec<String> = (1..400).map(|number| format!("{:.17}", f64::from(number).sqrt())).collect();
    let large = client.change(&json!({ "subscribe": "large", "db": "db", "doc_ids": ids })).await;
    assert_eq!((large.status, large.json()["error"].as_str()), (413, Some("too_large")));
    client.change(&json!({ "subscribe": "large", "db": "db", "doc_ids": ids[..10] })).await.assert_status(200);
}
