//! Clients that are gone without a word: their machine has no power, their network no way. And those that look like
//! it.

use std::time::Duration;

use socket2::{SockFilter, SockRef};

use super::raw_feed::RawFeed;
use super::{until_open, until_open_within};
use seqtide_tests::database::fresh;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;
use tokio::time::{Instant, interval};

/// The kernel drops what comes for a socket with this filter, and acknowledges nothing: `ret #0`.
const DROP_ALL: SockFilter = SockFilter::new(0x06, 0, 0, 0);

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_acknowledges_nothing_is_given_up_and_one_that_is_slow_is_not() {
    let (server, database) = fresh().await;
    let mut gone = RawFeed::open(server.address(), "/db/_feed?heartbeat=500").await;
    gone.until(|feed| feed.text.contains("caught-up")).await;
    let mut slow = RawFeed::open(server.address(), "/db/_feed?heartbeat=500").await;
    slow.until(|feed| feed.text.contains("caught-up")).await;
    until_open(&database.api, "sse", 2).await;
    SockRef::from(&gone.socket).attach_filter(&[DROP_ALL]).expect("a filter");
    // It was looked at twice, and then was silent for as long.
    until_open_within(PATIENCE * 4, &database.api, "sse", 1).await;
    // Who does not read, and whose system takes what comes, is there all the same.
    let so_far = slow.text.matches("event: heartbeat").count();
    slow.until(|feed| feed.text.matches("event: heartbeat").count() > so_far + 5).await;
}

/// So long a client may be silent whose feed beats more often.
const PATIENCE: Duration = Duration::from_secs(10);

/// The system's own clock for what is not acknowledged runs on while a window is shut most of the time.
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_slowly_is_kept_however_much_its_system_takes_at_once() {
    let (server, database) = fresh().await;
    let mut slow = Vec::new();
    for window in [8 << 10, 64 << 10, 256 << 10] {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(window).expect("a buffer");
        let socket = socket.connect(server.address()).await.expect("a connection");
        slow.push(RawFeed::over(socket, "/db/_feed?heartbeat=500&include_docs=true").await);
    }
    until_open(&database.api, "sse", 3).await;
    let writers = database.clone();
    let writing = tokio::spawn(async move {
        let docs: Vec<_> = (0..100).map(|_| json!({ "pad": "x".repeat(1000) })).collect();
        let mut paced = interval(Duration::from_millis(200));
        loop {
            paced.tick().await;
            writers.bulk(&docs).await;
        }
    });
    let (begun, mut paced, mut piece) = (Instant::now(), interval(Duration::from_millis(200)), [0; 2048]);
    while begun.elapsed() < PATIENCE * 4 {
        paced.tick().await;
        for feed in &mut slow {
            let read = feed.socket.read(&mut piece).await;
            assert!(matches!(read, Ok(1..)), "{read:?} after {:?}", begun.elapsed());
        }
    }
    writing.abort();
}
