//! A crash between a write and its answer.

use std::time::Instant;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{fresh, is_replay, put, rows, update_seq};
use seqtide_tests::Server;
use seqtide_tests::http::SOON;

/// The head of a `PUT` of `{"n":1}` as `a`, as the client library sends it the second time.
const HEAD: &str = "PUT /db/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n\
                    Content-Length: 7\r\n\r\n";

async fn send(server: &Server, request: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.address()).await.expect("a connection");
    socket.write_all(request.as_bytes()).await.expect("the request");
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn f17_a_crash_after_the_commit_and_before_the_answer_is_replayed() {
    let (mut server, database) = fresh().await;
    // Its answer is never read.
    let socket = send(&server, &format!("{HEAD}{{\"n\":1}}")).await;
    let deadline = Instant::now() + SOON;
    while update_seq(&database).await != json!(1) {
        assert!(Instant::now() < deadline, "the write should be made");
    }
    server.kill();
    drop(socket);
    server.restart_on_same_port_and_data();
    let again = put(&database, "a", "k", &json!({ "n": 1 })).expect(201).await;
    assert!(is_replay(&again), "{again:?}");
    assert_eq!((again.seq(), rows(&database).await), (1, vec![("a".to_owned(), 1)]));
    assert_eq!(again.rev(), database.get("/a").expect(200).await.json()["_rev"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn f18_a_crash_before_the_commit_leaves_nothing_and_the_write_is_made_once() {
    let (mut server, database) = fresh().await;
    let socket = send(&server, &format!("{HEAD}{{\"n\"")).await;
    server.kill();
    drop(socket);
    server.restart_on_same_port_and_data();
    let first = put(&database, "a", "k", &json!({ "n": 1 })).expect(201).await;
    assert!(!is_replay(&first), "{first:?}");
    assert!(is_replay(&put(&database, "a", "k", &json!({ "n": 1 })).expect(201).await));
    assert_eq!(rows(&database).await, [("a".to_owned(), 1)]);
}
