//! Clients that are gone without a word: their machine has no power, their network no way.

use socket2::{SockFilter, SockRef};

use super::raw_feed::RawFeed;
use super::until_open;
use seqtide_tests::database::fresh;

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
    until_open(&database.api, "sse", 1).await;
    // Who does not read, and whose system takes what comes, is there all the same.
    let so_far = slow.text.matches("event: heartbeat").count();
    slow.until(|feed| feed.text.matches("event: heartbeat").count() > so_far + 5).await;
}
