//! A connection's way into a feed and out of it.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::raw_feed::RawFeed;
use super::until_open;
use seqtide_tests::database::fresh;
use seqtide_tests::{Database, Server, raw};

/// What a feed of an empty database says first.
const CAUGHT_UP: &str = "event: opened\ndata: {\"event\":\"opened\",\"seq\":0,\"oldest_seq\":0,\"update_seq\":0,\"heartbeat\":30000}\nid: 0\n\n\
                         event: caught-up\ndata: {\"event\":\"caught-up\",\"seq\":0}\nid: 0\n\n";

fn ids(feed: &RawFeed) -> Vec<String> {
    feed.rows().iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_is_the_framework_s_and_what_follows_are_chunks_of_it() {
    let (server, database) = fresh().await;
    let mut feed = RawFeed::open(server.address(), "/db/_feed").await;
    for header in ["transfer-encoding: chunked", "content-type: text/event-stream", "cache-control: no-cache"] {
        assert!(feed.head.to_ascii_lowercase().contains(header), "{header} in {}", feed.head);
    }
    assert!(feed.head.to_ascii_lowercase().contains("x-couch-request-id"), "{}", feed.head);
    assert_eq!(feed.until(|feed| feed.text.contains("caught-up") && feed.text.ends_with("\n\n")).await, CAUGHT_UP);
    let row = database.put("a", &json!({})).await;
    let row = format!("data: {{\"seq\":1,\"id\":\"a\",\"changes\":[{{\"rev\":\"{}\"}}]}}\nid: 1\n\n", row.rev());
    assert_eq!(feed.until(|feed| feed.text.contains("id: 1")).await, format!("{CAUGHT_UP}{row}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_follows_other_requests_on_their_connection() {
    let (server, database) = fresh().await;
    let request = "GET /db HTTP/1.1\r\nHost: seqtide\r\n\r\n";
    let (socket, answer) = raw::open(server.address(), request, |text| text.ends_with("}\n")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let mut feed = RawFeed::over(socket, "/db/_feed").await;
    feed.until(|feed| feed.text == CAUGHT_UP).await;
    database.put("a", &json!({})).await;
    feed.until(|feed| ids(feed) == ["a"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_behind_a_feed_is_not_carried_out() {
    let (server, database) = fresh().await;
    let behind = |id: &str, pad: usize| {
        let body = format!(r#"{{"pad":"{}"}}"#, "x".repeat(pad));
        format!("PUT /db/{id} HTTP/1.1\r\nHost: seqtide\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let mut socket = TcpStream::connect(server.address()).await.expect("a connection");
    // One is there before the feed begins, the other comes when it is live, however long it is: who sent 128 KiB
    // was cut.
    let feed = "GET /db/_feed HTTP/1.1\r\nHost: seqtide\r\nAccept: text/event-stream\r\n\r\n";
    socket.write_all(format!("{feed}{}", behind("pipelined", 0)).as_bytes()).await.expect("the requests");
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains("caught-up") {
        let length = socket.read(&mut piece).await.expect("more");
        text.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    until_open(&database.api, "sse", 1).await;
    socket.write_all(behind("later", 400_000).as_bytes()).await.expect("the request");
    database.put("a", &json!({})).await;
    while !text.contains("\"id\":\"a\"") {
        let length = socket.read(&mut piece).await.expect("more");
        assert!(length > 0, "the feed goes on: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    assert_eq!(text.matches("HTTP/1.1").count(), 1, "one answer: {text}");
    for id in ["pipelined", "later"] {
        database.get(&format!("/{id}")).expect(404).await;
    }
}

/// The framework takes the method, the version and what is said of the connection from the request that it has read
/// last.
#[tokio::test(flavor = "multi_thread")]
async fn requests_in_one_piece_are_each_answered_as_if_alone() {
    let (server, database) = fresh().await;
    database.put("a", &json!({ "n": 1 })).await;
    let request = |line: &str, more: &str| format!("{line}\r\nHost: seqtide\r\n{more}\r\n");
    let put = |id: &str| request(&format!("PUT /db/{id} HTTP/1.1"), "Content-Length: 2\r\n") + "{}";
    let head = request("HEAD /db/a HTTP/1.1", "");
    let get = request("GET /db/a HTTP/1.1", "");
    let feed = request("GET /db/_changes?limit=1 HTTP/1.1", "");
    let chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let keys =
        request("POST /db/_all_docs HTTP/1.1", chunked) + "a\r\n{\"keys\":[\"\r\n4\r\na\"]}\r\n0\r\nX-Sum: 1\r\n\r\n";
    let last = request("GET /db HTTP/1.1", "Connection: close\r\n");
    for round in 0..10 {
        let (put, behind) = (put(&format!("p{round}")), put(&format!("behind{round}")));
        let all = [&put, &head, &get, &feed, &head, &get, &head, &keys, &head, &last, &behind];
        let all = all.map(String::as_str).concat();
        let (_, answers) = raw::open(server.address(), &all, |text| text.contains("db_name")).await;
        let body =
            |answer: &'_ str| answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned());
        let bodies: Vec<String> = answers.split("HTTP/1.1 ").skip(1).map(body).collect();
        let of_a_get = |body: &str| body.starts_with("{\"_id\":\"a\"") && body.ends_with("}\n");
        assert_eq!(bodies.len(), 10, "none to what is behind the last: {answers}");
        assert!(bodies[0].contains("\"ok\":true"), "{answers}");
        assert!(of_a_get(&bodies[2]) && of_a_get(&bodies[5]), "{answers}");
        assert!(bodies[7].contains("\"key\":\"a\""), "{answers}");
        assert!(bodies[3].contains("\"last_seq\"") && bodies[3].ends_with("\r\n0\r\n\r\n"), "{answers}");
        assert_eq!([1, 4, 6, 8].map(|head| &*bodies[head]), [""; 4], "no body behind a HEAD: {answers}");
        assert!(bodies[9].contains("\"db_name\""), "{answers}");
        let answer = raw::exchange(server.address(), &[&last, &behind].map(String::as_str).concat()).await;
        assert!(answer.body.ends_with("}\n"), "it ends behind the last, and answers nothing behind it: {answer:?}");
    }
    let changes = database.get("/_changes").expect(200).await.json();
    assert_eq!(changes["results"].as_array().map(Vec::len), Some(11), "what stands behind the last is not written");
}

/// What asks for the body is no answer yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_expects_to_be_asked_is_answered_as_if_nothing_stood_behind_it() {
    let (server, _database) = fresh().await;
    for round in 0..10 {
        let headers = "Host: seqtide\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        let put = format!("PUT /db/p{round} HTTP/1.1\r\n{headers}{{}}");
        let all = format!("{put}HEAD /db HTTP/1.1\r\nHost: seqtide\r\nConnection: close\r\n\r\n");
        let answers = raw::exchange(server.address(), &all).await;
        assert_eq!(answers.status_line, "HTTP/1.1 100 Continue");
        let said = format!("{{\"ok\":true,\"id\":\"p{round}\"");
        assert!(answers.body.starts_with("HTTP/1.1 201 ") && answers.body.contains(&said), "{answers:?}");
        assert!(answers.body.contains("}\nHTTP/1.1 200 ") && answers.body.ends_with("\r\n\r\n"), "{answers:?}");
    }
}

/// Byte by byte is no way to keep a connection for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_end_a_head_is_cut_off() {
    let (server, _database) = fresh().await;
    let chunked = "POST /_up HTTP/1.1\r\nHost: seqtide\r\nTransfer-Encoding: chunked\r\n\r\n";
    let plain = "GET /_up HTTP/1.1\r\nHost: seqtide\r\n\r\n";
    let heads = [plain.to_owned(), format!("{chunked}2\r\n{{}}\r\n0\r\n\r\n")].map(|first| format!("{first}GET /"));
    let address = server.address();
    let mut clients = JoinSet::new();
    for begun in heads {
        clients.spawn(async move {
            let (mut socket, _) = raw::open(address, &begun, |text| text.ends_with('\n')).await;
            let ended = async {
                let mut more = [0];
                // It is not always told so: what comes when it was cut may be answered by a reset.
                while let Err(_nothing_comes) = timeout(Duration::from_millis(500), socket.read(&mut more)).await {
                    let _ = socket.write_all(b"a").await;
                }
                more
            };
            let more = timeout(Duration::from_secs(60), ended).await;
            assert_eq!(more, Ok([0]), "only its end comes behind the answer: {begun:?}");
        });
    }
    clients.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_noticed_whatever_it_has_sent_behind_its_request() {
    let (server, database) = fresh().await;
    let wait = "GET /db/_changes?feed=longpoll&since=now&heartbeat=600000 HTTP/1.1\r\nHost: seqtide\r\n\r\n";
    for behind in ["", "\r\n", wait] {
        let mut socket = TcpStream::connect(server.address()).await.expect("a connection");
        socket.write_all([wait, behind].concat().as_bytes()).await.expect("the requests");
        until_open(&database.api, "longpoll", 1).await;
        drop(socket);
        until_open(&database.api, "longpoll", 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_gives_its_place_among_the_feeds_back() {
    let server = Server::launch().arg("--limits-feeds-max=2").start();
    let database = Database::create(&server, "db").await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut feed = RawFeed::open(server.address(), "/db/_feed").await;
        feed.until(|feed| feed.text == CAUGHT_UP).await;
        open.push(feed);
    }
    database.get("/_feed").expect(503).await;
    open.pop();
    until_open(&database.api, "sse", 1).await;
    let mut feed = RawFeed::open(server.address(), "/db/_feed").await;
    feed.until(|feed| feed.text == CAUGHT_UP).await;
    database.get("/_feed").expect(503).await;
    open.clear();
    drop(feed);
    until_open(&database.api, "sse", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_where_another_left_gets_its_own_rows_alone() {
    const FEEDS: usize = 20;
    let server = Server::launch().arg("--workers=1").start();
    let databases = [Database::create(&server, "one").await, Database::create(&server, "two").await];
    let open = async |path: &str, count: usize| {
        let mut feeds = Vec::new();
        for _ in 0..count {
            let mut feed = RawFeed::open(server.address(), path).await;
            feed.until(|feed| feed.text.contains("caught-up") && feed.text.ends_with("\n\n")).await;
            feeds.push(feed);
        }
        feeds
    };
    let mut feeds = open("/one/_feed?heartbeat=20", FEEDS).await;
    // Half of them leave, those on other places than their followers'.
    let mut left = 0;
    feeds.retain(|_| {
        left += 1;
        left % 2 == 0
    });
    until_open(&databases[0].api, "sse", FEEDS as u64 / 2).await;
    let mut others = open("/two/_feed?heartbeat=60000", FEEDS).await;
    let mut filtered = open("/one/_feed?prefix=x&heartbeat=60000", FEEDS).await;
    for (database, id) in [(0, "a"), (1, "b"), (0, "x"), (1, "x")] {
        databases[database].put(id, &json!({})).await;
    }
    let last = |feed: &RawFeed| ids(feed).last().is_some_and(|id| id == "x");
    for (feeds, expected) in [(&mut feeds, &["a", "x"][..]), (&mut others, &["b", "x"]), (&mut filtered, &["x"])] {
        for feed in feeds {
            feed.until(last).await;
            assert_eq!(ids(feed), expected);
        }
    }
    let beats = |feeds: &[RawFeed]| feeds.iter().filter(|feed| feed.text.contains("event: heartbeat")).count();
    assert_eq!((beats(&others), beats(&filtered)), (0, 0), "a heartbeat that was another's");
}
