//! CouchDB's door: the four forms, their options and mistakes.

use serde_json::json;

use super::{fill, fresh, row, rows};
use seqtide_tests::http::Opened;
use seqtide_tests::{Api, Database, Server};

async fn text(api: &Api, query: &str) -> String {
    api.get(&format!("/_db_updates{query}")).expect(200).await.text().to_owned()
}

fn object(rows: &[String], last_seq: u64) -> String {
    format!("{{\"results\":[\n{}\n],\n\"last_seq\":{last_seq}}}\n\n", rows.join(",\r\n"))
}

async fn waiting(api: &Api, query: &str) -> Opened {
    let feed = api.get(&format!("/_db_updates?{query}")).open().await;
    assert_eq!(feed.status(), 200, "{query}");
    assert_eq!((feed.header("cache-control"), feed.header("x-accel-buffering")), (Some("no-cache"), Some("no")));
    feed
}

#[tokio::test(flavor = "multi_thread")]
async fn normal_is_the_default_and_gives_all_there_is() {
    let (_server, api) = fresh().await;
    let answer = api.get("/_db_updates").expect(200).await;
    assert_eq!(answer.text(), object(&rows(), 3));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("must-revalidate"));
    assert_eq!(text(&api, "?feed=normal&since=0").await, object(&rows(), 3));
    assert_eq!(text(&api, "?since=2").await, object(&rows()[2..], 3));
    assert_eq!(text(&api, "?since=now").await, object(&[], 3));
    assert_eq!(text(&api, "?limit=2").await, object(&rows()[..2], 2));
    assert_eq!(text(&api, "?limit=0").await, object(&[], 0));
    let [first, second, third] = rows();
    assert_eq!(text(&api, "?descending=true").await, object(&[third, second, first], 1));
    assert_eq!(
        text(&api, "?bogus=1&include_docs=true&prefix=b").await,
        object(&rows(), 3),
        "as CouchDB passes over it"
    );
    assert_eq!(api.request("HEAD", "/_db_updates").expect(200).await.text(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etag_holds_until_something_happens() {
    let (server, api) = fresh().await;
    let etag = api.get("/_db_updates").expect(200).await.header("etag").expect("an ETag").to_owned();
    api.get("/_db_updates").header("if-none-match", &etag).expect(304).await;
    api.get("/_db_updates?since=1").header("if-none-match", &etag).expect(200).await;
    Database::create(&server, "c").await;
    api.get("/_db_updates").header("if-none-match", &etag).expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_takes_the_place_of_what_there_was() {
    let (server, api) = fresh().await;
    api.delete("/a").expect(200).await;
    assert_eq!(text(&api, "").await, object(&[row("b", "created", 2), row("a", "deleted", 4)], 4));
    Database::create(&server, "a").await;
    assert_eq!(text(&api, "").await, object(&[row("b", "created", 2), row("a", "created", 5)], 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn longpoll_waits_for_the_first_update() {
    let (server, api) = fresh().await;
    assert_eq!(text(&api, "?feed=longpoll&since=1").await, object(&rows()[1..], 3));
    let mut feed = waiting(&api, "feed=longpoll&since=now").await;
    feed.until(|text| text == "{\"results\":[\n\n").await;
    Database::create(&server, "c").await;
    let expected = format!("{{\"results\":[\n\n{}\n],\n\"last_seq\":4}}\n\n", row("c", "created", 4));
    assert_eq!(feed.to_end().await.text(), expected);
    let timed_out = text(&api, "?feed=longpoll&since=now&timeout=50").await;
    assert_eq!(timed_out, "{\"results\":[\n\n\n],\n\"last_seq\":4}\n\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn continuous_goes_on_line_by_line() {
    let (server, api) = fresh().await;
    let [first, second, third] = rows();
    let mut feed = waiting(&api, "feed=continuous&heartbeat=50").await;
    let so_far = feed.until(|text| text.contains(&third) && text.ends_with("}\n\n\n")).await;
    let rows: Vec<&str> = so_far.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(rows, [first, second, third], "and heartbeats");
    Database::at(&server, "b").put("y", &serde_json::json!({})).await;
    let line = format!("{}\n", row("b", "updated", 4));
    feed.until(|text| text.contains(&line)).await;
    let ended = text(&api, "?feed=continuous&timeout=0&heartbeat=false&since=3").await;
    assert_eq!(ended, format!("{line}{{\"last_seq\":4}}\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn eventsource_resumes_behind_the_last_event() {
    let (server, api) = fresh().await;
    let request = api.get("/_db_updates?feed=eventsource&since=0&heartbeat=50").header("last-event-id", "2");
    let mut feed = request.open().await;
    assert_eq!(feed.header("content-type"), Some("text/event-stream"));
    let (beat, row_3) = ("event: heartbeat\ndata: \n\n", format!("data: {}\nid: 3\n\n", rows()[2]));
    let so_far = feed.until(|text| text.contains(&row_3) && text.ends_with(&beat.repeat(2))).await;
    assert_eq!(so_far.replace(beat, ""), row_3);
    Database::create(&server, "c").await;
    feed.until(|text| text.contains(&format!("data: {}\nid: 4\n\n", row("c", "created", 4)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_from_ahead_is_echoed_with_a_sign() {
    let (_server, api) = fresh().await;
    let answer = api.get("/_db_updates?since=1337").expect(200).await;
    assert_eq!((answer.text(), answer.header("seqtide-since")), (&object(&[], 1337)[..], Some("ahead")));
    assert_eq!(api.get("/_db_updates?since=3").expect(200).await.header("seqtide-since"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    let (_server, api) = fresh().await;
    for (query, reason) in [
        ("feed=sometimes", "Supported `feed` types"),
        ("since=abc", "'since'"),
        ("limit=-1", "limit"),
        ("limit=x", "limit"),
        ("timeout=x", "timeout"),
        ("heartbeat=0", "heartbeat"),
        ("heartbeat=x", "heartbeat"),
    ] {
        let answer = api.get(&format!("/_db_updates?{query}")).expect(400).await.json();
        assert_eq!(answer["error"], "bad_request", "{query}");
        assert!(answer["reason"].as_str().is_some_and(|text| text.contains(reason)), "{query}: {answer}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        let answer = api.request(method, "/_db_updates").expect(405).await;
        assert_eq!(answer.header("allow"), Some("GET,HEAD"), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_of_the_server_count_and_end_with_the_others() {
    let mut server = Server::launch().arg("--limits-feeds-max=2").start();
    fill(&server).await;
    let api = Api::new(&server);
    let mut continuous = waiting(&api, "feed=continuous&since=now").await;
    continuous.until(|text| text == "\n").await;
    let mut lines = api.get("/_feed").open().await;
    lines.until(|text| text.contains("caught-up")).await;
    let metrics = api.get("/metrics").expect(200).await;
    for kind in ["continuous", "lines"] {
        let sample = format!("seqtide_feeds_open{{kind=\"{kind}\"}} 1");
        assert!(metrics.text().lines().any(|line| line == sample), "no {sample:?} in {}", metrics.text());
    }
    for path in ["/_db_updates", "/_feed", "/a/_changes"] {
        let refused = api.get(path).expect(503).await;
        assert_eq!(refused.header("retry-after"), Some("5"), "{path}");
    }
    server.terminate();
    assert_eq!(continuous.to_end().await.text(), "\n", "a `last_seq` would be the end of all");
    let lines = lines.to_end().await;
    assert!(lines.text().ends_with("{\"event\":\"end\",\"seq\":3,\"reason\":\"shutdown\"}\n"), "{:?}", lines.text());
    assert_eq!(server.wait().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_is_an_update_though_nothing_is_left_of_the_document() {
    let (server, api) = fresh().await;
    let a = Database::at(&server, "a");
    let rev = a.put("doc", &json!({})).await.rev();
    let before = api.get("/_db_updates").expect(200).await.json()["last_seq"].clone();
    a.post("/_purge").json(&json!({ "doc": [rev] })).expect(201).await;
    let after = api.get(&format!("/_db_updates?feed=longpoll&timeout=60000&since={before}")).expect(200).await.json();
    assert_eq!((&after["results"][0]["db_name"], &after["results"][0]["type"]), (&json!("a"), &json!("updated")));
}
