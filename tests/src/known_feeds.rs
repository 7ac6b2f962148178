//! The feeds that a server lists.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::Api;
use crate::http::SOON;

/// The feeds that are open.
///
/// # Panics
/// When the server does not answer 200.
pub async fn feeds(api: &Api) -> Vec<Value> {
    let answer = api.get("/_feeds?limit=1000").expect(200).await.json();
    answer["feeds"].as_array().expect("a list").clone()
}

/// Waits until the feeds that are open are so.
///
/// # Panics
/// When they are not [`SOON`].
pub async fn feeds_when(api: &Api, so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
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
