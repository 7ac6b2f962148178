//! `PUT`s in their plainest form are answered on a way of their own: as all others are.

use seqtide_tests::http::SOON;
use seqtide_tests::{Database, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A header that has no meaning, with which a `PUT` is not in its plainest form.
const UNHEARD_OF: &str = "X-Unheard-Of: 1\r\n";

/// Sends a request and reads its answer: the status line, the headers that do not differ each time, sorted, and the
/// body.
async fn exchange(socket: &mut TcpStream, request: &str) -> (String, Vec<String>, String) {
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    loop {
        let mut piece = [0; 4096];
        let length = timeout(SOON, socket.read(&mut piece)).await.expect(request).unwrap();
        assert!(length > 0, "the connection has ended: {request}");
        text.push_str(&String::from_utf8_lossy(&piece[..length]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines().map(str::to_owned);
        let status = lines.next().unwrap();
        let mut headers: Vec<String> = lines.collect();
        let length = headers.iter().find_map(|header| header.strip_prefix("content-length: ")).expect("a length");
        if body.len() < length.parse().unwrap() {
            continue;
        }
        let each_time = ["date: ", "x-couch-request-id: "];
        let (other, same) = headers.drain(..).partition(|header| each_time.iter().any(|name| header.starts_with(name)));
        assert_eq!(Vec::len(&other), each_time.len(), "{text}");
        headers = same;
        headers.sort();
        return (status, headers, body.to_owned());
    }
}

fn put(path: &str, more: &str, body: &str) -> String {
    let length = body.len();
    let json = "Content-Type: application/json\r\n";
    format!("PUT {path} HTTP/1.1\r\nHost: here:1\r\n{json}{more}Content-Length: {length}\r\n\r\n{body}")
}

/// The revisions of the answers, to go on from.
fn rev(body: &str) -> String {
    let answer: Value = serde_json::from_str(body).unwrap();
    answer["rev"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_put_is_answered_as_any_other() {
    let limits = ["SEQTIDE_LIMITS_DOCUMENT_BYTES_MAX", "SEQTIDE_LIMITS_REQUEST_BYTES_MAX"];
    let server = limits.into_iter().fold(Server::launch(), |launch, limit| launch.env(limit, "1000")).start();
    let large = json!({ "text": "a".repeat(985) }).to_string();
    let spaced = format!("{{\"a\":{}1}}", " ".repeat(1_000));
    let mut answers = Vec::new();
    // The same of two databases, over a connection each.
    for (name, more) in [("aa", ""), ("bb", UNHEARD_OF)] {
        let database = Database::create(&server, name).await;
        let mut socket = TcpStream::connect(server.address()).await.unwrap();
        // The first of a connection goes the long way.
        exchange(&mut socket, "GET / HTTP/1.1\r\nHost: here:1\r\n\r\n").await;
        let first = exchange(&mut socket, &put(&format!("/{name}/1"), more, r#"{"a": 1}"#)).await;
        assert_eq!(first.0, "HTTP/1.1 201 Created", "{first:?}");
        let rev = rev(&first.2);
        let bodies = [
            "{}".to_owned(),
            json!({ "_rev": rev, "a": [1, "zwei", 3.5] }).to_string(),
            json!({ "_rev": rev, "a": 2 }).to_string(),
            r#"{"_rev": "1-a"}"#.to_owned(),
            r#"{"_rev": 1}"#.to_owned(),
            r#"{"_id": "2", "a": 1}"#.to_owned(),
            r#"{"_id": "_2"}"#.to_owned(),
            r#"{"_id": 2}"#.to_owned(),
            r#"{"_deleted": true}"#.to_owned(),
            r#"{"_attachments": {"a": {"data": "YQ=="}}}"#.to_owned(),
            r#"{"_unknown": 1}"#.to_owned(),
            r#"{"a": 1, "a": 2}"#.to_owned(),
            "{".to_owned(),
            "[]".to_owned(),
            String::new(),
            large.clone(),
        ];
        let mut of_this = vec![first];
        for path in ["1", "2", "a-b.c~d_e"] {
            for body in &bodies {
                of_this.push(exchange(&mut socket, &put(&format!("/{name}/{path}"), more, body)).await);
            }
        }
        let rev = database.get("/2").expect(200).await.json()["_rev"].clone();
        let tombstone = json!({ "_rev": rev, "_deleted": true }).to_string();
        of_this.push(exchange(&mut socket, &put(&format!("/{name}/2"), more, &tombstone)).await);
        of_this.push(exchange(&mut socket, &put(&format!("/{name}/3"), more, &spaced)).await);
        let mut socket = TcpStream::connect(server.address()).await.unwrap();
        exchange(&mut socket, "GET / HTTP/1.1\r\nHost: here:1\r\n\r\n").await;
        // Behind a body that nobody read the connection ends.
        of_this.push(exchange(&mut socket, &put(&format!("/{name}{name}/1"), more, "{}")).await);
        answers.push(of_this);
    }
    let [plain, other] = answers.try_into().unwrap();
    for ((status, headers, body), expected) in plain.into_iter().zip(other) {
        let headers = headers.iter().map(|header| header.replace("/aa/", "/bb/")).collect::<Vec<_>>();
        assert_eq!((status, headers, body), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_puts_that_come_together_are_answered_in_order() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    exchange(&mut socket, "GET / HTTP/1.1\r\nHost: here:1\r\n\r\n").await;
    let requests: String = (0..50)
        .map(|number| put(&format!("/db/{number}"), if number % 7 == 3 { UNHEARD_OF } else { "" }, "{}"))
        .collect();
    let (mut answers, mut piece) = (String::new(), [0; 4096]);
    // As they come from a network: in pieces that end anywhere.
    let sending = async {
        let (mut reading, mut writing) = socket.split();
        let sent = async {
            for part in requests.as_bytes().chunks(777) {
                writing.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let read = async {
            while answers.matches("\"rev\"").count() < 50 {
                let length = timeout(SOON, reading.read(&mut piece)).await.expect("an answer").unwrap();
                assert!(length > 0, "{answers}");
                answers.push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        };
        tokio::join!(sent, read)
    };
    sending.await;
    let ids: Vec<&str> = answers.split("\"id\":\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(database.get("").expect(200).await.json()["doc_count"], 50);
}

/// What was begun when the server is told to end is answered, and what was answered is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_plain_put_under_way_when_the_server_ends_is_answered() {
    let mut server = Server::start();
    let _database = Database::create(&server, "db").await;
    let mut sockets = Vec::new();
    for _ in 0..32 {
        let mut socket = TcpStream::connect(server.address()).await.unwrap();
        exchange(&mut socket, "GET / HTTP/1.1\r\nHost: here:1\r\n\r\n").await;
        sockets.push(socket);
    }
    let writers = sockets.into_iter().enumerate().map(|(place, mut socket)| {
        tokio::spawn(async move {
            let mut answered = 0;
            loop {
                let request = put(&format!("/db/{place}-{answered}"), "", r#"{"a": 1}"#);
                if socket.write_all(request.as_bytes()).await.is_err() {
                    return answered;
                }
                let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
                while !answer.ends_with(b"}\n") {
                    match timeout(SOON, socket.read(&mut piece)).await.expect("an answer or an end") {
                        Ok(length @ 1..) => answer.extend_from_slice(&piece[..length]),
                        _ => {
                            assert_eq!(String::from_utf8_lossy(&answer), "", "an answer ends before its end");
                            return answered;
                        }
                    }
                }
                assert!(answer.starts_with(b"HTTP/1.1 201 "), "{}", String::from_utf8_lossy(&answer));
                answered += 1;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let database = Database::at(&server, "db");
    while database.get("").expect(200).await.json()["doc_count"].as_u64() < Some(500) {}
    server.terminate();
    let mut answered = Vec::new();
    for writer in writers {
        answered.push(writer.await.unwrap());
    }
    assert!(server.wait().success());
    server.restart_on_same_port_and_data();
    let database = Database::at(&server, "db");
    for (place, count) in answered.iter().enumerate() {
        for number in 0..*count {
            database.get(&format!("/{place}-{number}")).expect(200).await;
        }
    }
    assert!(answered.iter().sum::<u64>() >= 500);
}
