//! Keys are forgotten: by number, by bytes, by age.

use std::time::Instant;

use serde_json::json;

use super::{fresh_with, is_replay, put};
use seqtide_tests::Database;
use seqtide_tests::http::SOON;

/// Makes documents `d0`, `d1`, … under keys `k0`, `k1`, …
async fn fill(database: &Database, count: usize) {
    for n in 0..count {
        put(database, &format!("d{n}"), &format!("k{n}"), &json!({})).expect(201).await;
    }
}

/// Whether the write number `n` is still known; one that is not is a conflict.
async fn is_known(database: &Database, n: usize) -> bool {
    let again = put(database, &format!("d{n}"), &format!("k{n}"), &json!({})).send().await;
    assert_eq!(again.status, if is_replay(&again) { 201 } else { 409 });
    is_replay(&again)
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_number_the_oldest_are_forgotten() {
    let (mut server, database) = fresh_with(&["--storage-idempotency-keys-max", "3"]).await;
    fill(&database, 6).await;
    server.stop();
    server.restart_on_same_port_and_data();
    for n in 0..6 {
        assert_eq!(is_known(&database, n).await, n >= 3, "{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_bytes_the_oldest_are_forgotten() {
    let (_server, database) = fresh_with(&["--storage-idempotency-bytes-max", "300"]).await;
    fill(&database, 6).await;
    assert!(is_known(&database, 5).await && !is_known(&database, 0).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_their_age_keys_are_forgotten() {
    let (_server, database) = fresh_with(&["--storage-idempotency-age-secs", "1"]).await;
    fill(&database, 1).await;
    let deadline = Instant::now() + SOON;
    while is_known(&database, 0).await {
        assert!(Instant::now() < deadline, "a key of one second is known for longer");
        tokio::task::yield_now().await;
    }
}
