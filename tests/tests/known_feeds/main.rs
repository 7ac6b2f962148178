//! `/_feeds`: which feeds are open, how they stand, and the end of one.

mod ending;
mod lag;
mod listing;

use std::time::Duration;

use seqtide_tests::Api;
use seqtide_tests::http::SOON;
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// The feeds that are open.
async fn feeds(api: &Api) -> Vec<Value> {
    let answer = api.get("/_feeds?limit=1000").expect(200).await.json();
    answer["feeds"].as_array().expect("a list").clone()
}

/// Waits until the feeds that are open are so.
async fn feeds_when(api: &Api, so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + SOON;
    loop {
        let feeds = feeds(api).await;
        if so(&feeds) {
            return feeds;
        }
        assert!(Instant::now() < deadline, "the feeds are {feeds:#?}");
        sleep(Duration::from_millis(20)).await;
    }
}
