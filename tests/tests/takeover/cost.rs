//! What an idle feed costs: no buffer and no task, once its connection is taken over; and what an idle server does.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::raw_feed::RawFeed;
use super::until_open;
use seqtide_bench::process::Process;
use seqtide_tests::http::SOON;
use seqtide_tests::{Database, Server, raw};

const FIRST: usize = 100;
const FEEDS: usize = 2000;

/// A connection of the framework takes 12 kB, of which its two buffers are 8. Most of this is what the allocator keeps
/// of them: what a feed takes is measured by a bench, with many more.
const BYTES_A_FEED: u64 = 4096;

/// Two to three million are measured; with pages of 2 MiB, of which the allocator begins one for each of its threads,
/// it was 21.
const IDLE_SERVER_BYTES: u64 = 12 << 20;

fn anonymous_bytes(server: &Server) -> u64 {
    Process(server.pid()).anonymous_bytes().expect("a process")
}

/// The same when it has not fallen any more for a while: the allocator has given back what accepting connections took.
async fn settled_bytes(server: &Server) -> u64 {
    let (mut least, mut unchanged) = (anonymous_bytes(server), 0);
    while unchanged < 20 {
        sleep(Duration::from_millis(20)).await;
        let now = anonymous_bytes(server);
        unchanged = if now < least { 0 } else { unchanged + 1 };
        least = least.min(now);
    }
    least
}

/// Opens so many feeds, one after the other, each until it has caught up.
async fn open(server: &Server, feeds: usize, websocket: bool) -> Vec<TcpStream> {
    let mut open = Vec::with_capacity(feeds);
    for _ in 0..feeds {
        open.push(if websocket {
            let (mut socket, _head) = raw::upgraded(server.address(), "/db/_feed?since=now", "").await;
            raw::read_frame(&mut socket).await;
            socket
        } else {
            let mut feed = RawFeed::open(server.address(), "/db/_feed").await;
            feed.until(|feed| feed.text.contains("caught-up")).await;
            feed.socket
        });
    }
    open
}

async fn cost_no_buffer(websocket: bool) {
    let launch = Server::launch().env("MIMALLOC_PURGE_DELAY", "0").env("MIMALLOC_ABANDONED_PAGE_PURGE", "1");
    let server = launch.start();
    let database = Database::create(&server, "db").await;
    // What the first ones have the server make for all is no feed's cost.
    let _first = open(&server, FIRST, websocket).await;
    let kind = if websocket { "websocket" } else { "sse" };
    until_open(&database.api, kind, FIRST as u64).await;
    let before = settled_bytes(&server).await;
    let _feeds = open(&server, FEEDS, websocket).await;
    until_open(&database.api, kind, (FIRST + FEEDS) as u64).await;
    let bound = before + FEEDS as u64 * BYTES_A_FEED;
    let deadline = Instant::now() + SOON;
    // The allocator gives back what accepting connections took.
    while anonymous_bytes(&server) > bound {
        assert!(Instant::now() < deadline, "{} bytes, {before} before {FEEDS} feeds", anonymous_bytes(&server));
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_feed_costs_no_buffer() {
    cost_no_buffer(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_websocket_costs_no_buffer() {
    cost_no_buffer(true).await;
}

#[test]
fn an_idle_server_takes_no_huge_pages() {
    let server = Server::start();
    let taken = anonymous_bytes(&server);
    assert!(taken < IDLE_SERVER_BYTES, "{taken} bytes");
}
