//! A body with raw newlines reads well on every feed: a line stays a line, an event stays an event.

use futures_util::StreamExt;
use serde_json::{Value, json};

use seqtide_tests::doors::{Door, HttpDoor, WebSocketDoor};
use seqtide_tests::{Database, Server};

const PRETTY: &str =
    "{\n  \"name\": \"a\\nb\",\r\n\t\"list\": [\n    1,\n    2\n  ],\n\n  \"line\u{2028}\": \"x\u{2028}y\u{85}\"\n}\n";

fn expected(rev: &str) -> Value {
    json!({ "_id": "pretty", "_rev": rev, "name": "a\nb", "list": [1, 2], "line\u{2028}": "x\u{2028}y\u{85}" })
}

async fn written() -> (Server, Database, String) {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    let rev = database.request("PUT", "/pretty").body(PRETTY).expect(201).await.rev();
    (server, database, rev)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_door_gives_the_document() {
    let (server, database, rev) = written().await;
    let options = "include_docs=true&heartbeat=1000";
    let doors: [&dyn Door; 5] = [
        &HttpDoor::continuous(&database, options),
        &HttpDoor::eventsource(&database, options),
        &HttpDoor::sse(&database, options),
        &HttpDoor::lines(&database, options),
        &WebSocketDoor::new(&server, &database, options),
    ];
    for door in doors {
        let mut items = door.open(None, usize::MAX).await;
        let mut row = None;
        while row.is_none() {
            row = items.next().await.expect("a row comes").row().cloned();
        }
        assert_eq!(row.map(|row| row["doc"].clone()), Some(expected(&rev)), "{}", door.name());
    }
    for feed in ["normal", "longpoll"] {
        let answer = database.changes(&format!("feed={feed}&include_docs=true")).await;
        assert_eq!(answer["results"][0]["doc"], expected(&rev), "{feed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_feed_has_a_newline_inside_a_row() {
    let (_server, database, _) = written().await;
    let line_of = |text: &str| {
        text.lines()
            .map(|line| line.strip_prefix("data: ").unwrap_or(line))
            .find(|line| line.contains("\"doc\""))
            .map(str::to_owned)
    };
    for path in [
        "/_changes?include_docs=true",
        "/_changes?include_docs=true&feed=continuous&timeout=0",
        "/_changes?include_docs=true&feed=eventsource&timeout=0",
        "/_feed?since=0&live=false&include_docs=true",
    ] {
        for accept in ["text/event-stream", "*/*"] {
            let answer = database.get(path).header("accept", accept).expect(200).await;
            let line = line_of(answer.text()).unwrap_or_else(|| panic!("{path}: no row in {:?}", answer.text()));
            let row: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{path}: {error} in {line:?}"));
            assert_eq!(row["doc"]["list"], json!([1, 2]), "{path}");
        }
    }
}
