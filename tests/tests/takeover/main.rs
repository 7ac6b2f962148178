//! Live feeds over HTTP/1.1, whose connections leave the framework: on the wire nothing of it is to be noticed.

// Tests begin in the order of their names: this one waits for more than a minute, and others go on meanwhile.
mod behind;
mod connection;
#[cfg(target_os = "linux")]
mod cost;
mod ending;
#[cfg(target_os = "linux")]
mod half_open;
mod in_step;
mod raw_feed;
mod seam;
mod sharing;
mod shutdown;
mod slow;
mod websocket;

use std::time::Duration;

use seqtide_tests::Api;
use seqtide_tests::http::SOON;
use tokio::time::{Instant, sleep};

/// Waits until so many feeds of a kind are open.
async fn until_open(api: &Api, kind: &str, feeds: u64) {
    until_open_within(SOON, api, kind, feeds).await;
}

async fn until_open_within(time: Duration, api: &Api, kind: &str, feeds: u64) {
    let sample = format!("seqtide_feeds_open{{kind=\"{kind}\"}}");
    let deadline = Instant::now() + time;
    while api.metric(&sample).await != Some(feeds) {
        assert!(Instant::now() < deadline, "{:?} feeds are open, not {feeds}", api.metric(&sample).await);
        sleep(Duration::from_millis(10)).await;
    }
}
