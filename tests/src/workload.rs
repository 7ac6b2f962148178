//! Random writers: creates, updates, deletes, and leaves pushed from elsewhere that lose, are deleted, or start
//! a root of their own. Beside the few documents that all of them share, whose rows move, stand many written once,
//! which no later row can make good for a reader that missed theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::Database;

/// How many documents the writers share; few, so that trees grow and rows move.
const DOCUMENTS: usize = 40;

/// The seed of a random test: `SEQTIDE_TEST_SEED`, or a new one. It is printed, so that a failure can be had again.
///
/// # Panics
/// When the variable holds no number.
pub fn seed() -> u64 {
    let seed = setting("SEQTIDE_TEST_SEED").unwrap_or_else(rand::random);
    println!("run again with SEQTIDE_TEST_SEED={seed}");
    seed
}

/// A number that makes a test longer or repeatable, from the environment.
///
/// # Panics
/// When the variable holds no number.
pub fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} should be a number, not {text:?}")))
}

/// What random writers write to: a database of a server, or of an engine in this process.
pub trait Store: Send + Sync {
    /// Writes documents as one request, as `_bulk_docs` does; its results.
    fn write(&self, docs: Vec<Value>, new_edits: bool) -> BoxFuture<'_, Vec<Value>>;

    /// All rows of the feed, by sequence, with `style=all_docs`.
    fn rows(&self) -> BoxFuture<'_, Vec<Value>>;
}

impl Store for Database {
    fn write(&self, docs: Vec<Value>, new_edits: bool) -> BoxFuture<'_, Vec<Value>> {
        async move {
            let body = json!({ "docs": docs, "new_edits": new_edits });
            let answer = self.post("/_bulk_docs").json(&body).expect(201).await;
            serde_json::from_value(answer.json()).expect("a list")
        }
        .boxed()
    }

    fn rows(&self) -> BoxFuture<'_, Vec<Value>> {
        async move {
            let answer = self.changes("style=all_docs").await;
            serde_json::from_value(answer["results"].clone()).expect("a list")
        }
        .boxed()
    }
}

/// The newest revision that some writer made of each document.
type Revs = Arc<Mutex<BTreeMap<String, String>>>;

/// Runs `writers` at once, each writing `requests` times.
///
/// # Panics
/// When the store refuses what it must take.
pub async fn write_at_random(store: Arc<dyn Store>, seed: u64, writers: u64, requests: usize) {
    let revs = Revs::default();
    let running: Vec<_> = (0..writers)
        .map(|number| {
            let writer = Writer {
                number,
                rng: StdRng::seed_from_u64(seed ^ number),
                store: Arc::clone(&store),
                revs: Arc::clone(&revs),
            };
            tokio::spawn(writer.run(requests))
        })
        .collect();
    for writer in running {
        writer.await.expect("a writer");
    }
}

struct Writer {
    number: u64,
    rng: StdRng,
    store: Arc<dyn Store>,
    revs: Revs,
}

impl Writer {
    async fn run(mut self, requests: usize) {
        for request in 0..requests {
            let size = self.rng.random_range(1..=4);
            if self.rng.random_bool(0.6) {
                self.edit(size, request).await;
            } else {
                self.push(size).await;
            }
        }
    }

    /// Creates, updates and deletes; conflicts with the other writers are expected.
    async fn edit(&mut self, size: usize, request: usize) {
        let mut docs: Vec<Value> = (0..size).map(|_| self.edited()).collect();
        docs.push(json!({ "_id": format!("once-{}-{request}", self.number) }));
        let results = self.store.write(docs, true).await;
        let mut revs = self.revs.lock().expect("no panic holds it");
        for result in results {
            let id = result["id"].as_str().expect("an id");
            match result["rev"].as_str() {
                Some(rev) => revs.insert(id.to_owned(), rev.to_owned()),
                None => revs.remove(id),
            };
        }
    }

    fn edited(&mut self) -> Value {
        let id = self.id();
        let mut doc =
            json!({ "_id": id, "n": self.rng.random::<u32>(), "pad": "x".repeat(self.rng.random_range(0..300)) });
        if let Some(rev) = self.revs.lock().expect("no panic holds it").get(&id) {
            doc["_rev"] = json!(rev);
        }
        if self.rng.random_bool(0.2) {
            doc["_deleted"] = json!(true);
        }
        doc
    }

    /// Pushes leaves from elsewhere.
    async fn push(&mut self, size: usize) {
        let docs = (0..size).map(|_| self.pushed()).collect();
        assert_eq!(self.store.write(docs, false).await, Vec::<Value>::new(), "a pushed leaf is never refused");
    }

    /// A path down one of few possible trees, so that some leaves are known, some branch, some are another root. A
    /// hash spells the way from its root, as a real one depends on it; the oldest ancestors may be missing.
    fn pushed(&mut self) -> Value {
        let generation = self.rng.random_range(1..=4);
        let way: String = (0..generation).map(|_| *['a', 'b'].choose(&mut self.rng).expect("not empty")).collect();
        let known = self.rng.random_range(1..=generation);
        let ids: Vec<&str> = (0..known).map(|older| &way[..generation - older]).collect();
        let revisions = json!({ "start": generation, "ids": ids });
        let rev = format!("{generation}-{way}");
        json!({ "_id": self.id(), "_rev": rev, "_revisions": revisions, "_deleted": self.rng.random_bool(0.3) })
    }

    fn id(&mut self) -> String {
        format!("doc-{:02}", self.rng.random_range(0..DOCUMENTS))
    }
}
