//! WebSockets: the client is heard as before, though nobody but the reader of sockets listens.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::until_open;
use seqtide_tests::database::fresh;
use seqtide_tests::http::SOON;
use seqtide_tests::known_feeds::feeds_when;
use seqtide_tests::raw::said;
use seqtide_tests::{Database, Server, raw};

pub const TEXT: u8 = 0x81;
const PONG: u8 = 0x8a;
const CLOSE: u8 = 0x88;

pub fn ping(data: &[u8]) -> Vec<u8> {
    said(0x89, data)
}

/// Opens a feed and waits until it has caught up.
async fn live(server: &Server) -> TcpStream {
    let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed?since=0&heartbeat=60000", "").await;
    for event in ["opened", "caught-up"] {
        let (first, payload) = raw::read_frame(&mut socket).await;
        let said: serde_json::Value = serde_json::from_slice(&payload).expect("JSON");
        assert_eq!((first, &said[0]["event"], &said[0]["seq"]), (TEXT, &json!(event), &json!(0)));
    }
    socket
}

async fn send(socket: &mut TcpStream, bytes: &[u8]) {
    socket.write_all(bytes).await.expect("what the client says");
}

/// Reads a close frame, and the end of the connection.
async fn closed(socket: &mut TcpStream) -> u16 {
    let (first, payload) = raw::read_frame(socket).await;
    closed_with(socket, first, &payload).await
}

/// The same behind rows.
pub async fn closed_behind(socket: &mut TcpStream) -> u16 {
    loop {
        let (first, payload) = raw::read_frame(socket).await;
        if first & 0x0f == CLOSE & 0x0f {
            return closed_with(socket, first, &payload).await;
        }
    }
}

async fn closed_with(socket: &mut TcpStream, first: u8, payload: &[u8]) -> u16 {
    assert_eq!(first, CLOSE);
    let end = timeout(SOON, socket.read(&mut [0; 16])).await;
    assert!(matches!(end, Ok(Ok(0))), "{end:?}");
    u16::from_be_bytes([payload[0], payload[1]])
}

async fn row_comes(socket: &mut TcpStream, database: &Database, id: &str) {
    database.put(id, &json!({})).await;
    let (first, payload) = raw::read_frame(socket).await;
    let rows: serde_json::Value = serde_json::from_slice(&payload).expect("JSON");
    assert_eq!((first, rows[0]["id"].as_str()), (TEXT, Some(id)));
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_however_they_come() {
    let (server, database) = fresh().await;
    let mut socket = live(&server).await;
    send(&mut socket, &[ping(b"one"), ping(b"two")].concat()).await;
    assert_eq!(raw::read_frame(&mut socket).await, (PONG, b"one".to_vec()));
    assert_eq!(raw::read_frame(&mut socket).await, (PONG, b"two".to_vec()));
    row_comes(&mut socket, &database, "a").await;
    // The beginning of a frame is kept until the rest comes.
    let frame = ping(b"in pieces");
    send(&mut socket, &frame[..5]).await;
    row_comes(&mut socket, &database, "b").await;
    send(&mut socket, &frame[5..]).await;
    assert_eq!(raw::read_frame(&mut socket).await, (PONG, b"in pieces".to_vec()));
    // Each is answered at once: none waits for the next.
    send(&mut socket, &ping(b"").repeat(500)).await;
    for _ in 0..500 {
        assert_eq!(raw::read_frame(&mut socket).await, (PONG, Vec::new()));
    }
    row_comes(&mut socket, &database, "c").await;
}

/// Who sent a message of 64 KiB and more was cut off without a word.
#[tokio::test(flavor = "multi_thread")]
async fn who_sends_a_further_message_is_told_why_its_feed_ends_however_long_that_is() {
    let (server, _database) = fresh().await;
    for (length, code) in [(1_000_u64, 1008), (65_536, 1008), (70_000, 1009), (1_000_001, 1009)] {
        let mut socket = live(&server).await;
        let head = [&[TEXT, 0x80 | 127][..], &length.to_be_bytes(), &[0; 4]].concat();
        let message = [&head[..], &vec![b'x'; usize::try_from(length).unwrap()]].concat();
        send(&mut socket, &message).await;
        assert_eq!(closed(&mut socket).await, code, "{length} bytes");
    }
}

/// Half of such clients were dropped, though they read all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_may_send_many_pings_at_once() {
    let (server, database) = fresh().await;
    let data = |number: u16| [number.to_be_bytes().as_slice(), &[0; 123]].concat();
    let pings: Vec<u8> = (0..450).flat_map(|number| ping(&data(number))).collect();
    let mut sockets = Vec::new();
    for _ in 0..10 {
        sockets.push(live(&server).await);
    }
    for socket in &mut sockets {
        send(socket, &pings).await;
        while raw::read_frame(socket).await != (PONG, data(449)) {}
    }
    database.put("a", &json!({})).await;
    for socket in &mut sockets {
        assert_eq!(raw::read_frame(socket).await.0, TEXT, "its feed goes on");
    }
}

/// Who sent 128 KiB in one go was cut off without a word.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_say_as_much_at_once_as_it_likes() {
    let (server, database) = fresh().await;
    let mut socket = live(&server).await;
    let pings: Vec<u8> = (0..8_000_u32).flat_map(|number| ping(&number.to_be_bytes().repeat(30))).collect();
    let (mut reader, mut writer) = socket.split();
    let (said, ()) = tokio::join!(writer.write_all(&pings), async {
        while raw::read_frame(&mut reader).await != (PONG, 7_999_u32.to_be_bytes().repeat(30)) {}
    });
    said.expect("what the client says");
    row_comes(&mut socket, &database, "a").await;
}

/// Its connection and all that it holds stayed for as long as the function took, and it was not told that it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_heard_while_its_feed_waits_for_a_function() {
    let server = Server::launch().arg("--functions-batch-timeout-ms=60000").start();
    let database = Database::create(&server, "db").await;
    let hangs = json!({ "filters": { "f": "function () { while (true); }" } });
    database.request("PUT", "/_design/d").json(&hangs).expect(201).await;
    let (mut feed, _head) = raw::upgraded(server.address(), "/db/_feed?since=0&filter=d/f", "").await;
    let (mut many, _head) = raw::upgraded(server.address(), "/_feed/many", "").await;
    assert_eq!(raw::read_frame(&mut many).await.0, TEXT, "its name");
    let slow = json!({ "subscribe": "db", "since": 0, "filter": "d/f" }).to_string();
    let length = u8::try_from(slow.len()).expect("a short text");
    assert!(length < 126, "{length}");
    send(&mut many, &said(TEXT, slow.as_bytes())).await;
    for socket in [&mut feed, &mut many] {
        send(socket, &ping(b"there?")).await;
        assert_eq!(raw::read_frame(socket).await, (PONG, b"there?".to_vec()));
        send(socket, &said(CLOSE, &1000_u16.to_be_bytes())).await;
        assert_eq!(closed(socket).await, 1000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_says_while_its_feed_leaves_the_framework_is_heard() {
    let (server, _database) = fresh().await;
    for split in 1..ping(b"hello").len() {
        let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed?since=0", "").await;
        let frame = ping(b"hello");
        send(&mut socket, &frame[..split]).await;
        for event in ["opened", "caught up"] {
            assert_eq!(raw::read_frame(&mut socket).await.0, TEXT, "{event}");
        }
        send(&mut socket, &frame[split..]).await;
        assert_eq!(raw::read_frame(&mut socket).await, (PONG, b"hello".to_vec()), "split at {split}");
    }
    for _ in 0..20 {
        let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed?since=0", "").await;
        send(&mut socket, &ping(b"whole")).await;
        let mut frames = Vec::new();
        for _ in 0..3 {
            frames.push(raw::read_frame(&mut socket).await.0);
        }
        frames.sort_unstable();
        assert_eq!(frames, [TEXT, TEXT, PONG], "open, caught up and answered, in any order");
    }
}

/// A client has up to a megabyte for its options.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_behind_the_options_has_its_bound_wherever_it_began() {
    let (server, _database) = fresh().await;
    // The second one stays with the framework.
    for options in [&b"{}"[..], b"{\"limit\":9}"] {
        let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed", "").await;
        let head = [&[TEXT, 0x80 | 127][..], &500_000_u64.to_be_bytes(), &[0; 4]].concat();
        send(&mut socket, &[&said(TEXT, options)[..], &head, &[b'x'; 40_000]].concat()).await;
        for event in ["opened", "caught up"] {
            assert_eq!(raw::read_frame(&mut socket).await.0, TEXT, "{event}");
        }
        send(&mut socket, &[b'x'; 30_000]).await;
        assert_eq!(closed(&mut socket).await, 1009);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_s_end_is_answered_and_its_place_given_back() {
    let (server, database) = fresh().await;
    let mut leaving = live(&server).await;
    let mut talking = live(&server).await;
    let mut unmasked = live(&server).await;
    let mut vanishing = live(&server).await;
    until_open(&database.api, "websocket", 4).await;
    send(&mut leaving, &said(CLOSE, &1000_u16.to_be_bytes())).await;
    assert_eq!(closed(&mut leaving).await, 1000);
    send(&mut talking, &said(TEXT, b"{}")).await;
    assert_eq!(closed(&mut talking).await, 1008, "options come too late");
    send(&mut unmasked, &[0x81, 1, b'x']).await;
    assert_eq!(closed(&mut unmasked).await, 1002, "a client masks what it says");
    until_open(&database.api, "websocket", 1).await;
    vanishing.shutdown().await.expect("an end");
    until_open(&database.api, "websocket", 0).await;
}

/// What is said to a reader in whose frame the system has no room comes when the frame is whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_comes_behind_the_rest_of_a_frame_that_was_begun() {
    let mut server = Server::launch().arg("--feeds-drain-ms=3000").start();
    let database = Database::create(&server, "db").await;
    let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed?include_docs=true", "").await;
    feeds_when(&database.api, |feeds| feeds.len() == 1 && feeds[0]["state"] == "live").await;
    for number in 0..4 {
        database.put(&format!("large-{number}"), &json!({ "pad": "x".repeat(6_000_000) })).await;
    }
    feeds_when(&database.api, |feeds| feeds[0]["lag"]["rows"].as_u64() > Some(0)).await;
    server.terminate();
    feeds_when(&database.api, |feeds| feeds[0]["state"] == "draining").await;
    let (mut ids, mut events) = (Vec::new(), Vec::new());
    let code = loop {
        let (first, payload) = raw::read_frame(&mut socket).await;
        if first == CLOSE {
            break closed_with(&mut socket, first, &payload).await;
        }
        let items: Vec<serde_json::Value> = serde_json::from_slice(&payload).expect("a whole frame");
        for item in items {
            match item["event"].as_str() {
                Some(event) => events.push(event.to_owned()),
                None => ids.push(item["id"].as_str().expect("an id").to_owned()),
            }
        }
    };
    assert_eq!(code, 1001);
    assert_eq!(events, ["opened", "caught-up", "draining", "end"]);
    let expected: Vec<String> = (0..ids.len()).map(|number| format!("large-{number}")).collect();
    assert!(!ids.is_empty() && ids == expected, "{ids:?}");
    assert_eq!(server.wait().code(), Some(0));
}
