//! What `_changes` answers after known histories, among them both of Nolan Lawson's "Anatomy of the CouchDB
//! changes feed": the vectors of `data/changes-vectors.json` on each kind of feed, compared byte for byte.

use std::collections::BTreeMap;

use seqtide_tests::changes_text::{continuous, eventsource, longpoll_that_waited, normal};
use seqtide_tests::vectors::{Vector, Vectors, database_with_history, vectors};
use seqtide_tests::{Database, Server};

/// One database a history.
async fn databases(server: &Server, vectors: &Vectors) -> BTreeMap<String, Database> {
    let mut databases = BTreeMap::new();
    for name in vectors.histories.keys() {
        databases.insert(name.clone(), database_with_history(server, vectors, name).await);
    }
    databases
}

/// Asks every vector with these further options and compares each body with what `expected` makes of it.
async fn every_vector_gives(options: &str, expected: impl Fn(&Vector) -> String) {
    let server = Server::start();
    let vectors = vectors();
    let databases = databases(&server, &vectors).await;
    let mut failures = Vec::new();
    for vector in &vectors.vectors {
        let answer = vector.request(&databases[&vector.history], options).send().await;
        let expected = expected(vector);
        if answer.status != 200 || answer.text() != expected {
            let Vector { id, .. } = vector;
            failures.push(format!("{id}: {} {:?}\n     not {expected:?}", answer.status, answer.text()));
        }
    }
    assert!(failures.is_empty(), "{} vectors with {options:?}:\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn normal_feed_answers_each_vector() {
    let expected = |vector: &Vector| normal(&vector.expect.rows(), vector.expect.last_seq, vector.expect.pending);
    every_vector_gives("", expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn longpoll_answers_rows_at_once_and_waits_without_any() {
    every_vector_gives("feed=longpoll&timeout=1", |vector| {
        let form = if vector.expect.rows().is_empty() { longpoll_that_waited } else { normal };
        form(&vector.expect.rows(), vector.expect.last_seq_live(), vector.expect.pending)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn continuous_feed_shows_the_rows_of_each_vector() {
    every_vector_gives("feed=continuous&timeout=1", |vector| {
        let waited_first = vector.expect.rows().is_empty() && !vector.asks_for_no_rows();
        continuous(&vector.expect.rows(), waited_first, vector.expect.last_seq_live(), vector.expect.pending)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eventsource_shows_the_rows_of_each_vector() {
    every_vector_gives("feed=eventsource&timeout=1", |vector| {
        let rows = vector.expect.rows_with_ids();
        let rows: Vec<(&str, &str)> = rows.iter().map(|(row, id)| (*row, id.as_str())).collect();
        eventsource(&rows, rows.is_empty() && !vector.asks_for_no_rows())
    })
    .await;
}
