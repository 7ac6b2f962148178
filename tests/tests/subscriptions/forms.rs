//! The same rows and events in each form.

use serde_json::{Value, json};

use super::client::{Client, is, url};
use super::{all_of, brief, said, two};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_sse_is_a_list_of_rows_and_events_with_an_id() {
    let (_server, api, [orders, people]) = two().await;
    let written = orders.put("o-1", &json!({})).await;
    people.put("p-1", &json!({})).await;
    let subscriptions = json!([{ "subscribe": "all", "db": "orders", "since": 0 }, all_of("people")]);
    let mut feed = api.get(&url(&subscriptions)).header("accept", "text/event-stream").open().await;
    assert_eq!(feed.header("cache-control"), Some("no-cache"));
    assert_eq!(feed.header("x-accel-buffering"), Some("no"));
    let text = feed.until(|text| text.ends_with("\n\n") && text.matches("caught-up").count() == 2).await;
    let mut items = Vec::new();
    let (retry, events) = text.split_once('\n').expect("a first event");
    let retry: u64 = retry.strip_prefix("retry: ").and_then(|millis| millis.parse().ok()).expect("when to come back");
    for event in events.split_terminator("\n\n") {
        let (data, id) = event.strip_prefix("data: ").and_then(|rest| rest.split_once("\nid: ")).expect("data and id");
        assert!(!id.is_empty() && !id.contains('\n'), "{id:?}");
        items.extend(serde_json::from_str::<Vec<Value>>(data).expect("a list"));
    }
    let row = json!({ "sub": "all", "seq": 1, "id": "o-1", "changes": [{ "rev": written.rev() }] });
    assert!(items.contains(&row), "{text}");
    assert_eq!(items[0]["event"], "connection");
    assert_eq!(items[0]["heartbeat"], 1000);
    assert_eq!(items[0]["retry"], retry);
    let of = |sub: &str| -> Vec<String> { items.iter().filter(|item| item["sub"] == sub).map(brief).collect() };
    assert_eq!(of("all"), ["all subscribed 0", "all opened 0", "all o-1 1", "all caught-up 1"]);
    assert_eq!(of("people"), ["people subscribed 0", "people opened 0", "people p-1 1", "people caught-up 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_brings_the_same_as_a_url_and_lines_are_an_item_each() {
    let (_server, api, [orders, _]) = two().await;
    orders.put("o-1", &json!({ "v": 1 })).await;
    let asked =
        json!({ "heartbeat": 50, "subscriptions": { "subscribe": "orders", "since": 0, "include_docs": true } });
    let mut feed = api.post("/_feed/many").json(&asked).open().await;
    assert_eq!(feed.header("content-type"), Some("application/x-ndjson"));
    let beats = |text: &str| text.contains("\"event\":\"heartbeat\"");
    let text = feed.until(|text| text.contains("caught-up") && beats(text) && text.ends_with('\n')).await;
    let items: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&items[0]["event"], &items[0]["heartbeat"]), (&json!("connection"), &json!(50)));
    let retry = items[0]["retry"].as_u64().expect("when to come back");
    assert!((1000..=2000).contains(&retry), "no sooner than a second, and not all at once: {retry}");
    let expected = ["orders subscribed 0", "orders opened 0", "orders o-1 1", "orders caught-up 1"];
    assert_eq!(said(&items[1..]), expected);
    assert!(items.iter().any(|item| item["id"] == "o-1" && item["doc"]["v"] == 1), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_those_of_a_feed_and_each_subscription_has_its_own() {
    let (_server, api, [orders, _]) = two().await;
    for id in ["a-1", "b-1", "a-2"] {
        orders.put(id, &json!({ "kind": id[..1] })).await;
    }
    let mut client = Client::open(
        &api,
        &json!([
            { "subscribe": "prefix", "db": "orders", "since": 0, "prefix": "a-" },
            { "subscribe": "ids", "db": "orders", "since": 0, "doc_ids": ["b-1"] },
            { "subscribe": "selector", "db": "orders", "since": "1", "selector": { "kind": "a" }, "include_docs": true },
            { "subscribe": "one", "db": "orders", "since": 0, "limit": 1 },
            { "subscribe": "ahead", "db": "orders", "since": 99, "on_rewind": "error" },
            { "subscribe": "rewound", "db": "orders", "since": 99, "limit": 1 }
        ]),
    )
    .await;
    let mut items = Vec::new();
    let is_all = |item: &Value| ["caught-up", "end", "refused"].iter().any(|event| item["event"] == *event);
    for _each in 0..6 {
        items.extend(client.until(is_all).await);
    }
    items.extend(client.until(|item| item["event"] == "heartbeat").await);
    let of = |sub: &str| -> Vec<String> { items.iter().filter(|item| item["sub"] == sub).map(brief).collect() };
    assert_eq!(
        of("prefix"),
        ["prefix subscribed 0", "prefix opened 0", "prefix a-1 1", "prefix a-2 3", "prefix caught-up 3"]
    );
    assert_eq!(of("ids"), ["ids subscribed 0", "ids opened 0", "ids b-1 2", "ids caught-up 3"]);
    assert_eq!(
        of("selector"),
        ["selector subscribed 1", "selector opened 1", "selector a-2 3", "selector caught-up 3"]
    );
    assert_eq!(of("one"), ["one subscribed 0", "one opened 0", "one a-1 1", "one end 1"]);
    assert_eq!(of("rewound"), ["rewound subscribed 99", "rewound rewind 0", "rewound a-1 1", "rewound end 1"]);
    let refused = items.iter().find(|item| is(item, "refused", "ahead")).expect("it is refused");
    assert_eq!(refused["error"], "gone");
    assert!(items.iter().any(|item| item["sub"] == "selector" && item["doc"]["kind"] == "a"), "{items:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_names_the_places_that_moved_without_a_word() {
    let (_server, api, [orders, _]) = two().await;
    let subscriptions =
        json!([{ "subscribe": "none", "db": "orders", "since": 0, "prefix": "never" }, all_of("people")]);
    let mut client = Client::open(&api, &subscriptions).await;
    client.until(|item| is(item, "caught-up", "none")).await;
    // All at once: a heartbeat between two of them would name a place on the way.
    orders.bulk(&["a", "b", "c"].map(|id| json!({ "_id": id }))).await;
    let beat = client.until(|item| item["event"] == "heartbeat" && item["seqs"] != json!({})).await.pop();
    assert_eq!(beat.expect("a heartbeat")["seqs"], json!({ "none": 3 }));
    let next = client.until(|item| item["event"] == "heartbeat").await.pop();
    assert_eq!(next.expect("a heartbeat")["seqs"], json!({}), "nothing has moved since");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_one_leaves_the_others_alone() {
    let (_server, api, [orders, people]) = two().await;
    let mut client = Client::open(&api, &json!([all_of("orders"), all_of("people")])).await;
    client.until(|item| is(item, "caught-up", "orders")).await;
    orders.request("DELETE", "").expect(200).await;
    let end = client.until(|item| is(item, "end", "orders")).await.pop().expect("an end");
    assert_eq!(end["reason"], "deleted");
    people.put("p-1", &json!({})).await;
    client.until(|item| item["sub"] == "people" && item["id"] == "p-1").await;
    // It is over for who comes back, too.
    let again = client.last_event_id.take();
    let mut client = Client::try_open(&api, &url(&json!([all_of("orders"), all_of("people")])), again).await.unwrap();
    people.put("p-2", &json!({})).await;
    let items = client.until(|item| item["sub"] == "people" && item["id"] == "p-2").await;
    assert!(items.iter().all(|item| item["sub"] != "orders" && item["id"] != "p-1"), "{items:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_subscription_a_connection_ends() {
    let (_server, api, _) = two().await;
    let answer = api.get("/_feed/many").expect(200).await;
    let last = answer.text().lines().last().expect("a line");
    assert_eq!(last, "{\"event\":\"end\",\"reason\":\"unused\"}");
}
