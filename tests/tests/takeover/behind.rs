//! A client with much to catch up with.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, interval, timeout};

use super::websocket::ping;
use seqtide_tests::database::fresh;
use seqtide_tests::http::SOON;
use seqtide_tests::raw;

/// Its pongs filled what waits for it, and it was given up when one had waited for a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_catches_up_and_only_pings_has_its_time_to_read() {
    let (server, database) = fresh().await;
    let docs: Vec<_> = (0..4000).map(|_| json!({ "pad": "x".repeat(5000) })).collect();
    for docs in docs.chunks(1000) {
        database.bulk(docs).await;
    }
    let path = "/db/_feed?since=0&include_docs=true&heartbeat=60000";
    let (mut socket, _head) = raw::upgraded(server.address(), path, "").await;
    let (mut reads, writes) = socket.split();
    let (begun, mut paced, mut unsent) = (Instant::now(), interval(Duration::from_millis(100)), Vec::new());
    while begun.elapsed() < Duration::from_secs(70) {
        paced.tick().await;
        unsent.extend(ping(b""));
        // What the server does not hear waits in the system, and then here.
        match writes.try_write(&unsent) {
            Ok(written) => drop(unsent.drain(..written)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "after {:?}", begun.elapsed()),
        }
    }
    let (mut text, mut piece) = (Vec::new(), vec![0; 1 << 20]);
    while !text.windows(b"caught-up".len()).any(|words| words == b"caught-up") {
        let kept = text.len().min(100);
        text.drain(..text.len() - kept);
        let read = timeout(SOON, reads.read(&mut piece)).await;
        let Ok(Ok(length @ 1..)) = read else { panic!("{read:?}") };
        text.extend_from_slice(&piece[..length]);
    }
}
