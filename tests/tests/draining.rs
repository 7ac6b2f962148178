//! The end of a server in stages: feeds end one after the other, each after a word, and nobody comes in meanwhile.

use std::time::Duration;

use seqtide_tests::doors::{FeedSocket, Item, feed_url};
use seqtide_tests::http::{Api, Opened, SOON, escaped};
use seqtide_tests::known_feeds::feeds_when;
use seqtide_tests::{Database, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// The first of so many feeds ends within seconds, and nobody waits for the last: told again, a server ends all at
/// once.
const DRAIN_MS: u64 = 120_000;
const FEEDS: usize = 40;
/// The longest that anybody is told to wait: until the last feed has ended and the server is there again, and a share
/// of the drain.
const COME_BACK_MS_MAX: u64 = 2 * DRAIN_MS + 2000;

async fn serving() -> (Server, Database) {
    let server = Server::launch().arg(format!("--feeds-drain-ms={DRAIN_MS}")).start();
    let database = Database::create(&server, "db").await;
    database.put("a", &json!({})).await;
    (server, database)
}

async fn sse(database: &Database) -> Opened {
    let mut feed = database.get("/_feed?since=0").header("accept", "text/event-stream").open().await;
    feed.until(|text| text.contains("caught-up") && text.ends_with("\n\n")).await;
    feed
}

/// The JSON of an event of this name on a stream of Server-Sent Events.
fn data_of(text: &str, name: &str) -> Value {
    let found = text.split("\n\n").find(|event| event.starts_with(&format!("event: {name}\n")));
    let data = found.and_then(|event| event.lines().find_map(|line| line.strip_prefix("data: ")));
    serde_json::from_str(data.unwrap_or_else(|| panic!("no {name} in {text:?}"))).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_told_and_end_one_after_the_other_while_requests_are_served_and_no_feed_is_opened() {
    let (mut server, database) = serving().await;
    let mut feeds = Vec::new();
    for _ in 0..FEEDS {
        feeds.push(sse(&database).await);
    }
    let poll = database.get("/_changes?feed=longpoll&since=now&heartbeat=60000").open().await;
    let lines = database.get("/_changes?feed=continuous&since=now&heartbeat=60000").open().await;
    let mut socket = FeedSocket::open(&feed_url(&server, &database, "since=now")).await.expect("a WebSocket");
    socket.items().await;
    server.terminate();
    for feed in &mut feeds {
        feed.until(|text| text.contains("event: draining") && text.ends_with("\n\n")).await;
    }
    let still_open = feeds_when(&database.api, |open| open.len() < FEEDS + 3).await;
    assert!(!still_open.is_empty(), "they do not end all at once");

    // Whoever balances the load sees it, documents are served, feeds are not.
    assert_eq!(database.api.get("/_up").expect(503).await.json()["status"], "draining");
    let refused = database.get("/_feed").expect(503).await;
    let wait: u64 = refused.header("retry-after").expect("when to come back").parse().expect("seconds");
    assert!(wait <= COME_BACK_MS_MAX / 1000, "{wait} s");
    assert!(FeedSocket::open(&feed_url(&server, &database, "since=0")).await.is_err(), "no WebSocket either");
    let written = database.put("while-draining", &json!({})).await.seq();
    for feed in &mut feeds {
        feed.until(|text| text.contains("while-draining") || text.contains("event: end")).await;
    }
    server.terminate();

    let mut told_of_it = 0;
    for feed in feeds {
        let answer = feed.to_end().await;
        let (draining, end) = (data_of(answer.text(), "draining"), data_of(answer.text(), "end"));
        let retry = draining["retry"].as_u64().expect("a number");
        assert!(retry <= COME_BACK_MS_MAX, "{draining}");
        assert!(answer.text().contains(&format!("\nretry: {retry}\n")), "a browser is told too: {:?}", answer.text());
        assert_eq!((&draining["seq"], &end["reason"]), (&json!(1), &json!("shutdown")));
        let has_row = answer.text().contains("\"id\":\"while-draining\"");
        assert_eq!(end["seq"].as_u64() >= Some(written), has_row, "the token says what was given: {:?}", answer.text());
        told_of_it += usize::from(has_row);
        assert_eq!(answer.text().matches("event: draining").count(), 1, "{:?}", answer.text());
    }
    assert!(told_of_it > 0, "rows are given while feeds drain");
    let poll = poll.to_end().await.json();
    assert!(poll["last_seq"].is_u64(), "{poll}");
    let lines = lines.to_end().await;
    assert!(!lines.text().contains("last_seq"), "its reader would take it for the end of all: {}", lines.text());
    let mut names = Vec::new();
    loop {
        match socket.next().await {
            Some(Message::Text(text)) => {
                let items: Vec<Value> = serde_json::from_str(&text).expect("JSON");
                names.extend(items.into_iter().map(Item::from_json));
            }
            Some(Message::Close(Some(frame))) => break assert_eq!(u16::from(frame.code), 1001),
            other => panic!("a close behind {names:?}, not {other:?}"),
        }
    }
    let is = |name: &'static str| move |item: &Item| matches!(item, Item::Event { name: found, .. } if found == name);
    assert!(names.iter().any(is("draining")) && names.last().is_some_and(is("end")), "{names:?}");
    assert_eq!(server.wait().code(), Some(0));
}

/// An `EventSource` gives up for good at any status but 200.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_comes_meanwhile_is_told_when_to_come_back() {
    let (mut server, database) = serving().await;
    let mut feeds = Vec::new();
    for path in ["/_feed?since=0", "/_changes?feed=eventsource&since=0"] {
        let mut feed = database.get(path).header("accept", "text/event-stream").open().await;
        feed.until(|text| text.contains("\"id\":\"a\"") && text.ends_with("\n\n")).await;
        feeds.push(feed);
    }
    server.terminate();
    for feed in &mut feeds {
        feed.until(|text| text.contains("event: draining") && text.ends_with("\n\n")).await;
    }
    let subscriptions = json!([{ "subscribe": "all", "db": "db" }]).to_string();
    let many = format!("/_feed/many?subscriptions={}", escaped(&subscriptions));
    for path in ["/db/_feed", "/_feed", "/db/_changes?feed=eventsource", "/_db_updates?feed=eventsource", &many] {
        let answer = database.api.get(path).header("accept", "text/event-stream").expect(200).await;
        assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{path}");
        let text = answer.text();
        let (event, retry) = text.split_once("\nretry: ").expect("when to come back");
        let retry: u64 = retry.strip_suffix("\n\n").and_then(|millis| millis.parse().ok()).expect("one event");
        assert!((2000..=COME_BACK_MS_MAX).contains(&retry), "{path}: {text}");
        assert!(event.contains(&format!("{{\"event\":\"draining\",\"retry\":{retry}}}")), "{path}: {text}");
    }
    server.terminate();
    for feed in feeds {
        let answer = feed.to_end().await;
        let retry = &data_of(answer.text(), "draining")["retry"];
        assert!(answer.text().contains(&format!("\nretry: {retry}\n\n")), "{}", answer.text());
    }
    assert_eq!(server.wait().code(), Some(0));
}

/// Clients of CouchDB come back when a connection ends, and not when they are answered with an error or a `last_seq`.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_at_couchdb_s_door_is_left_without_an_answer_when_all_else_has_ended() {
    // One worker: whom it answers it has read behind all that came before.
    let mut server = Server::launch().arg("--feeds-drain-ms=3600000").arg("--workers=1").start();
    let database = Database::create(&server, "db").await;
    let mut poll = database.get("/_changes?feed=longpoll&since=now&heartbeat=100").open().await;
    poll.until(|text| text.contains('\n')).await;
    server.terminate();
    while database.api.get("/_up").send().await.status != 503 {}
    let mut waiting = Vec::new();
    let changes = ["/db/_changes", "/db/_changes?feed=longpoll&since=now", "/db/_changes?feed=continuous"];
    for path in changes.into_iter().chain(["/_db_updates?feed=longpoll"]) {
        let mut socket = TcpStream::connect(server.address()).await.expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("the request");
        waiting.push(socket);
    }
    Api::new(&server).get("/_up").expect(503).await;
    // Told again: the poll ends at once.
    server.terminate();
    assert!(poll.to_end().await.json()["last_seq"].is_u64(), "one that was open is answered");
    for mut socket in waiting {
        let mut answer = String::new();
        timeout(SOON, socket.read_to_string(&mut answer)).await.expect("an end in time").expect("an end");
        assert_eq!(answer, "");
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_ends_by_itself_is_given_the_time() {
    let (mut server, database) = serving().await;
    let docs: Vec<Value> = (0..2000).map(|n| json!({ "_id": format!("d{n:04}"), "pad": "x".repeat(10_000) })).collect();
    for part in docs.chunks(500) {
        database.bulk(part).await;
    }
    // More than the system's buffers take: most is still to come when the server is told.
    let mut all = database.get("/_changes?include_docs=true").open().await;
    all.until(|text| text.contains("d0000")).await;
    server.terminate();
    let answer = all.to_end().await.json();
    assert_eq!((answer["results"].as_array().map(Vec::len), &answer["pending"]), (Some(2001), &json!(0)));
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn told_twice_it_ends_at_once() {
    let (mut server, database) = serving().await;
    let mut feeds = Vec::new();
    for _ in 0..10 {
        feeds.push(sse(&database).await);
    }
    server.terminate();
    for feed in &mut feeds {
        feed.until(|text| text.contains("event: draining")).await;
    }
    server.terminate();
    for feed in feeds {
        assert_eq!(data_of(feed.to_end().await.text(), "end")["reason"], "shutdown");
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_holds_the_end_up_no_longer_than_it_may() {
    let server = Server::launch().arg("--feeds-drain-ms=500").arg("--shutdown-timeout-ms=1000");
    let mut server = server.start();
    let database = Database::create(&server, "db").await;
    let stalled = database.get("/_feed?since=now&include_docs=true").open().await;
    for number in 0..4 {
        database.put(&format!("large-{number}"), &json!({ "pad": "x".repeat(6_000_000) })).await;
    }
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    drop(stalled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_that_has_not_said_what_it_wants_does_not_hold_the_end_up() {
    let server = Server::launch().arg("--feeds-websocket-start-ms=3600000").arg("--shutdown-timeout-ms=3600000");
    let mut server = server.start();
    let database = Database::create(&server, "db").await;
    let mut socket = FeedSocket::open(&feed_url(&server, &database, "")).await.expect("an upgrade");
    server.terminate();
    let closed = socket.next().await;
    assert!(matches!(&closed, Some(Message::Close(Some(close))) if u16::from(close.code) == 1001), "{closed:?}");
    assert!(socket.next().await.is_none(), "the server ends the connection");
    assert_eq!(server.wait().code(), Some(0));
}

/// What is told at the beginning lets readers whose connections break come back spread over a time.
#[tokio::test(flavor = "multi_thread")]
async fn every_browser_is_told_another_moment_to_come_back() {
    let server = Server::launch().arg("--feeds-retry-ms=2000").start();
    let database = Database::create(&server, "db").await;
    let mut moments = Vec::new();
    for _ in 0..20 {
        let mut feed = database.get("/_feed").header("accept", "text/event-stream").open().await;
        let text = feed.until(|text| text.contains("\n\n")).await;
        let millis = text.strip_prefix("retry: ").and_then(|text| text.lines().next()).expect("first of all");
        moments.push(Duration::from_millis(millis.parse().expect("a number")));
    }
    assert!(moments.iter().all(|moment| (2000..=4000).contains(&moment.as_millis())), "{moments:?}");
    moments.sort_unstable();
    moments.dedup();
    assert!(moments.len() >= 15, "{moments:?}");
}
