//! A hundred subscriptions on one connection, restarts of the server, and writers that go on.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::client::{Client, is, url};
use super::two;
use seqtide_tests::http::SOON;
use seqtide_tests::sse::SseParser;
use seqtide_tests::{Api, Database, Server};

const DATABASES: usize = 5;
const SUBSCRIPTIONS: usize = 100;
/// So many of them come by `POST /_feed/{connection}`.
const LATER: usize = 10;
const DEADLINE: Duration = Duration::from_secs(120);

/// What the subscription with this number asks for.
fn subscription(number: usize) -> Value {
    let mut asked =
        json!({ "subscribe": format!("sub-{number}"), "db": format!("db-{}", number % DATABASES), "since": 0 });
    match number / DATABASES % 4 {
        0 => {}
        1 => asked["prefix"] = json!(format!("{}-", number % 3)),
        2 => asked["selector"] = json!({ "third": number % 3 }),
        _ => asked["doc_ids"] = json!([format!("0-{}", 3 * number), format!("1-{}", 3 * number + 1), "none"]),
    }
    asked
}

/// Whether it is to be given a document with this number.
fn wants(number: usize, document: usize) -> bool {
    match number / DATABASES % 4 {
        0 => true,
        1 | 2 => document % 3 == number % 3,
        _ => document == 3 * number || document == 3 * number + 1,
    }
}

fn id(document: usize) -> String {
    format!("{}-{document}", document % 3)
}

/// Writes documents, each once, until told to stop; how many. The server may be away for a while.
async fn write(database: Database, stop: Arc<AtomicBool>) -> usize {
    for document in 0.. {
        if document > 3 * SUBSCRIPTIONS && stop.load(Ordering::Relaxed) {
            return document;
        }
        let body = json!({ "third": document % 3 });
        loop {
            let request = database.request("PUT", &format!("/{}", id(document))).json(&body);
            // What was written, and not answered, is there.
            if request.try_send().await.is_ok_and(|answer| matches!(answer.status, 201 | 409)) {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
    unreachable!("there is always another number")
}

/// What a reader has got: rows by subscription.
#[derive(Default)]
struct Seen {
    rows: HashMap<String, Vec<(u64, String)>>,
    ids_bytes: usize,
    connections: usize,
}

impl Seen {
    fn count(&self) -> usize {
        self.rows.values().map(Vec::len).sum()
    }

    fn take(&mut self, item: &Value) {
        if let Some(id) = item["id"].as_str().filter(|_| item.get("event").is_none()) {
            let sub = item["sub"].as_str().expect("every row says whose it is");
            self.rows.entry(sub.to_owned()).or_default().push((item["seq"].as_u64().expect("a number"), id.to_owned()));
        }
    }
}

/// Opens a connection, as often as it takes, knowing its request and the last id.
async fn connect(api: &Api, url: &str, last_event_id: Option<String>, deadline: Instant) -> Client {
    loop {
        match Client::try_open(api, url, last_event_id.clone()).await {
            Ok(client) => return client,
            Err(away) => assert!(Instant::now() < deadline, "the server stays away: {away}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_subscriptions_lose_and_repeat_nothing() {
    let mut server = Server::start();
    let api = Api::new(&server);
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for number in 0..DATABASES {
        let database = Database::create(&server, &format!("db-{number}")).await;
        writers.push(tokio::spawn(write(database, Arc::clone(&stop))));
    }
    let url = url(&(0..SUBSCRIPTIONS - LATER).map(subscription).collect());
    let deadline = Instant::now() + DEADLINE;
    let mut seen = Seen::default();
    let mut client = connect(&api, &url, None, deadline).await;
    let later: Value = (SUBSCRIPTIONS - LATER..SUBSCRIPTIONS).map(subscription).collect();
    let added = client.change(&later).await.json();
    assert!(added.as_array().is_some_and(|all| all.iter().all(|one| one["ok"] == true)), "{added}");

    // Each way to end comes while rows are on their way.
    for (round, ends) in [Server::stop, Server::kill, Server::kill, Server::stop].into_iter().enumerate() {
        let enough = (round + 1) * 2000;
        while seen.count() < enough {
            let item = client.next().await.expect("the server is there");
            seen.take(&item);
        }
        ends(&mut server);
        while let Some(item) = client.next().await {
            seen.take(&item);
        }
        server.restart_on_same_port_and_data();
        seen.connections += 1;
        let id = client.last_event_id.take().expect("an id");
        seen.ids_bytes = seen.ids_bytes.max(id.len());
        client = connect(&api, &url, Some(id), deadline).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut written = Vec::new();
    for writer in writers {
        written.push(writer.await.expect("the writer"));
    }
    let wanted = |number: usize| (0..written[number % DATABASES]).filter(move |document| wants(number, *document));
    let expected: usize = (0..SUBSCRIPTIONS).map(|number| wanted(number).count()).sum();
    while seen.count() < expected {
        assert!(Instant::now() < deadline, "{} rows of {expected} came", seen.count());
        let item = client.next().await.expect("the server is there");
        seen.take(&item);
    }
    // One more round of whatever comes: nothing that was given may come again.
    let items = client.until(|item| item["event"] == "heartbeat").await;
    items.iter().for_each(|item| seen.take(item));

    for number in 0..SUBSCRIPTIONS {
        let rows = &seen.rows[&format!("sub-{number}")];
        assert!(rows.is_sorted_by(|one, next| one.0 < next.0), "sub-{number} is out of order, or repeats");
        let ids: Vec<&str> = rows.iter().map(|(_, id)| &**id).collect();
        let expected: Vec<String> = wanted(number).map(id).collect();
        assert_eq!(ids, expected, "sub-{number}");
    }
    assert!(seen.ids_bytes < 1000, "an id of {} bytes", seen.ids_bytes);
}

/// The first message is full before any of them says where it goes back to.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_before_it_was_told_of_a_rewind_is_told_when_it_comes_back() {
    let (_server, api, _) = two().await;
    let name = |number: usize| format!("{number:090}");
    // Of the tokens as text that lie ahead, some lie behind all numbers.
    let since =
        |number: usize| if number.is_multiple_of(2) { json!(1_000_000) } else { json!("00000020000000000000000000") };
    let ahead = |number| json!({ "subscribe": name(number), "db": "orders", "since": since(number) });
    let url = url(&(0..150).map(ahead).collect());
    let answer = api.get(&url).header("accept", "text/event-stream").open().await;
    let (mut pieces, mut parser) = (pin!(answer.into_stream()), SseParser::default());
    let first = loop {
        let piece = timeout(SOON, pieces.next()).await.expect("something in time").expect("it goes on").expect("bytes");
        if let Some(first) = parser.push(&piece).into_iter().next() {
            break first;
        }
    };
    let mut items: Vec<Value> = serde_json::from_str(&first.data).expect("a list");
    assert!(items.iter().all(|item| item["event"] != "rewind"), "none was told yet: {items:?}");
    let mut client = Client::try_open(&api, &url, first.id).await.expect("it comes back");
    let mut caught_up = 0;
    while caught_up < 150 {
        let item = client.next().await.expect("it goes on");
        caught_up += usize::from(item["event"] == "caught-up");
        items.push(item);
    }
    for sub in (0..150).map(name) {
        assert!(items.iter().any(|item| is(item, "rewind", &sub)), "{sub} is not told");
    }
}
