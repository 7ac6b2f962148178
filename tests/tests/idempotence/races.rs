//! Requests at the same time.

use serde_json::json;

use super::{assert_same, fresh, is_replay, put, rows};
use seqtide_tests::Database;
use seqtide_tests::http::{Answer, Request};

/// Sends a request many times at once; the answers, in no order.
async fn at_once(database: &Database, times: usize, request: impl Fn(&Database, usize) -> Request) -> Vec<Answer> {
    let sent = (0..times).map(|n| tokio::spawn(request(database, n).send()));
    let mut answers = Vec::new();
    for sending in sent.collect::<Vec<_>>() {
        answers.push(sending.await.expect("a request"));
    }
    answers
}

/// Asserts that one of the answers is the first, and all others say the same again.
fn assert_one_is_first(answers: &[Answer], status: u16) {
    let firsts: Vec<_> = answers.iter().filter(|answer| !is_replay(answer)).collect();
    assert_eq!(firsts.len(), 1, "{answers:?}");
    firsts[0].assert_status(status);
    answers.iter().for_each(|answer| assert_same(firsts[0], answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn f15_identical_edits_with_different_keys_let_one_through() {
    let (_server, database) = fresh().await;
    put(&database, "a", "k1", &json!({ "n": 1 })).expect(201).await;
    put(&database, "a", "k2", &json!({ "n": 1 })).expect(409).await;
    let raced =
        at_once(&database, 10, |database, n| put(database, "raced", &format!("r{n}"), &json!({ "n": 1 }))).await;
    let mut statuses: Vec<u16> = raced.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![201], vec![409; 9]].concat());
    assert!(!raced.iter().any(is_replay));
    assert_eq!(rows(&database).await, [("a".to_owned(), 1), ("raced".to_owned(), 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_at_once_is_one_request() {
    let (_server, database) = fresh().await;
    for round in 1..=5 {
        let id = format!("d{round}");
        let answers = at_once(&database, 10, |database, _| put(database, &id, &id, &json!({}))).await;
        assert_one_is_first(&answers, 201);
        assert_eq!(rows(&database).await.len(), round, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_posted_at_once_gets_one_id() {
    let (_server, database) = fresh().await;
    let post = |database: &Database, _| database.post("").header("idempotency-key", "k").json(&json!({ "n": 1 }));
    assert_one_is_first(&at_once(&database, 20, post).await, 201);
    assert_eq!(rows(&database).await.len(), 1);
}

/// The ones that come too late find the document deleted before they find that it was they who did it.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_deleted_at_once_is_deleted_once() {
    let (_server, database) = fresh().await;
    for _ in 0..5 {
        database.put("a", &json!({})).await;
        let delete = |database: &Database, _| {
            let rev = "1-967a00dff5e02add41819138abb3284d";
            database.request("DELETE", &format!("/a?rev={rev}")).header("idempotency-key", "k")
        };
        assert_one_is_first(&at_once(&database, 20, delete).await, 200);
        database.request("DELETE", "").expect(200).await;
        database.request("PUT", "").expect(201).await;
    }
}
