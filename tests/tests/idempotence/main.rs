//! `Idempotency-Key`: a write that is sent again answers as the first time and writes nothing. Test names that begin
//! with `f` and two digits are the vectors of CouchDB RFC 003's mapping to this store.

mod crash;
mod expiry;
mod races;
mod refusals;
mod replay;
mod sequences;

use seqtide_tests::http::{Answer, Request};
use seqtide_tests::{Database, Server};
use serde_json::{Value, json};

const CONFLICT: (u16, &str, &str) = (409, "conflict", "Document update conflict.");

/// A server with one empty database, `db`. Keep the server: it ends when dropped.
async fn fresh() -> (Server, Database) {
    fresh_with(&[]).await
}

/// The same, started with further arguments.
async fn fresh_with(args: &[&str]) -> (Server, Database) {
    let server = args.iter().fold(Server::launch(), |launch, arg| launch.arg(arg)).start();
    let database = Database::create(&server, "db").await;
    (server, database)
}

/// `PUT` of a document with a key.
fn put(database: &Database, id: &str, key: &str, body: &Value) -> Request {
    database.request("PUT", &format!("/{id}")).header("idempotency-key", key).json(body)
}

fn is_replay(answer: &Answer) -> bool {
    answer.header("idempotency-replayed").is_some_and(|value| value == "true")
}

/// Asserts that `again` says what `first` said, and that it says it again.
fn assert_replay(first: &Answer, again: &Answer) {
    assert!(!is_replay(first) && is_replay(again), "{first:?}\n{again:?}");
    assert_same(first, again);
}

/// Asserts that two answers are the same to their client.
fn assert_same(first: &Answer, again: &Answer) {
    assert_eq!((again.status, again.text()), (first.status, first.text()));
    for header in ["seqtide-seq", "etag", "location", "content-type", "cache-control"] {
        assert_eq!(again.header(header), first.header(header), "{header}");
    }
}

async fn update_seq(database: &Database) -> Value {
    database.info().await["update_seq"].clone()
}

/// Id and sequence of each row.
async fn rows(database: &Database) -> Vec<(String, u64)> {
    let changes = database.changes("").await;
    let row = |row: &Value| (row["id"].as_str().expect("an id").to_owned(), row["seq"].as_u64().expect("a number"));
    changes["results"].as_array().expect("rows").iter().map(row).collect()
}

/// Changes a document's body; gives the new revision.
async fn edit(database: &Database, id: &str, rev: &str) -> String {
    database.put(id, &json!({ "_rev": rev, "edited": true })).await.rev()
}
