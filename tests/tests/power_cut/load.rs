//! The load: several writers at once, each with documents of its own, every write onto the one before, so that what a
//! document may be after a cut is a matter of how far it had come.

use std::fs::File;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use seqtide_tests::{Database, Server};

use crate::log::mark;

/// The database the documents are in.
pub const DATABASE: &str = "db";
const WRITERS: u64 = 4;
const REQUESTS: usize = 60;
const DOCS_A_WRITER: usize = 60;
const LOCALS_A_WRITER: usize = 3;
/// Bodies of more than a page lie in pages of their own. They also see to it that both files of the log are used again.
const LARGE_BODY_BYTES: usize = 100_000;
const BULK_MAX: usize = 8;
const DATABASES_MADE: usize = 6;
/// How many writes the load ends with that have the server for themselves.
pub const WRITES_ALONE: usize = 10;

/// How the log shows that a write was acknowledged.
#[derive(Debug, Clone)]
pub enum Answer {
    /// An answer that was sent names this document and this revision.
    Names { id: String, rev: String },
    /// The test marked that it had read the answer.
    Marked(String),
}

/// A write that was acknowledged: what it made of what, as the image's reader names both.
#[derive(Debug, Clone)]
pub struct Acknowledged {
    pub key: String,
    pub state: Value,
    pub answer: Answer,
}

/// Runs the load; the writes of one key are in their order.
pub async fn run(server: &Server, log: Arc<File>, seed: u64) -> Vec<Acknowledged> {
    let database = Database::create(server, DATABASE).await;
    database.request("PUT", "/_feed_index").json(&json!({ "fields": ["n", "_id"] })).expect(202).await;
    let mut acknowledged = vec![marked_database(&log, DATABASE, 0, true)];
    let writers = (0..WRITERS).map(|number| {
        let database = Database::at(server, DATABASE);
        tokio::spawn(Writer::new(number, StdRng::seed_from_u64(seed ^ number), database).run())
    });
    let mut running: Vec<_> = writers.collect();
    running.push(tokio::spawn(make_and_delete_databases(Database::at(server, "side"), log)));
    for writer in running {
        acknowledged.extend(writer.await.expect("a writer"));
    }
    acknowledged.extend(write_alone(&Database::at(server, DATABASE)).await);
    acknowledged
}

/// The last writes have the server for themselves: each is a commit of its own.
async fn write_alone(database: &Database) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    for number in 0..WRITES_ALONE {
        let id = format!("alone-{number}");
        let answer = database.put(&id, &json!({ "n": number })).await;
        acknowledged.push(document(id, &answer.rev(), answer.seq(), number, false));
    }
    acknowledged
}

/// One database after another of one name, so that the catalogue is replaced over and over.
async fn make_and_delete_databases(database: Database, log: Arc<File>) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    for number in 0..DATABASES_MADE {
        for (method, status, there) in [("PUT", 201, true), ("DELETE", 200, false)] {
            database.request(method, "").expect(status).await;
            acknowledged.push(marked_database(&log, "side", number, there));
        }
    }
    acknowledged
}

fn marked_database(log: &File, name: &str, number: usize, there: bool) -> Acknowledged {
    let text = format!("{name} {number} {there}");
    mark(log, &text);
    let state = if there { json!(true) } else { Value::Null };
    Acknowledged { key: format!("/{name}"), state, answer: Answer::Marked(text) }
}

pub fn document(id: String, rev: &str, seq: u64, n: usize, deleted: bool) -> Acknowledged {
    let state = json!({ "rev": rev, "seq": seq, "deleted": deleted, "n": n });
    Acknowledged { key: format!("/{DATABASE}/{id}"), state, answer: Answer::Names { id, rev: rev.to_owned() } }
}

/// All ids of `_local` documents, which no listing tells.
pub fn local_ids() -> Vec<String> {
    let of = |writer| (0..LOCALS_A_WRITER).map(move |number| format!("_local/{writer}-{number}"));
    (0..WRITERS).flat_map(of).collect()
}

/// A document and its newest revision, which stays its parent unless it is a tombstone.
#[derive(Clone)]
struct Chain {
    id: String,
    n: usize,
    parent: Option<String>,
}

struct Writer {
    rng: StdRng,
    database: Database,
    docs: Vec<Chain>,
    locals: Vec<Chain>,
    acknowledged: Vec<Acknowledged>,
}

impl Writer {
    fn new(number: u64, rng: StdRng, database: Database) -> Writer {
        let chain = |id| Chain { id, n: 0, parent: None };
        let docs = (0..DOCS_A_WRITER).map(|doc| chain(format!("doc-{number}-{doc}"))).collect();
        let locals = (0..LOCALS_A_WRITER).map(|local| chain(format!("_local/{number}-{local}"))).collect();
        Writer { rng, database, docs, locals, acknowledged: Vec::new() }
    }

    async fn run(mut self) -> Vec<Acknowledged> {
        for _ in 0..REQUESTS {
            match self.rng.random_range(0..10) {
                0..4 => self.write_one().await,
                4..8 => self.write_bulk().await,
                _ => self.write_local().await,
            }
        }
        for local in 0..LOCALS_A_WRITER {
            self.delete_local(local).await;
        }
        self.acknowledged
    }

    /// The next body of a document: every fifth write deletes it, the one after makes it again.
    fn body(&mut self, doc: usize) -> (Value, bool) {
        let pad = if self.rng.random_bool(0.2) { LARGE_BODY_BYTES } else { 300 };
        let Chain { n, parent, .. } = &self.docs[doc];
        let deleted = n % 5 == 4;
        let mut body = json!({ "n": n, "pad": "x".repeat(self.rng.random_range(0..pad)), "_deleted": deleted });
        if let Some(parent) = parent {
            body["_rev"] = json!(parent);
        }
        (body, deleted)
    }

    fn written(&mut self, doc: usize, rev: &str, seq: u64, deleted: bool) {
        let chain = &mut self.docs[doc];
        self.acknowledged.push(document(chain.id.clone(), rev, seq, chain.n, deleted));
        chain.n += 1;
        chain.parent = (!deleted).then(|| rev.to_owned());
    }

    async fn write_one(&mut self) {
        let doc = self.rng.random_range(0..DOCS_A_WRITER);
        let (body, deleted) = self.body(doc);
        let path = format!("/{}", self.docs[doc].id);
        let status = if deleted { 200 } else { 201 };
        let answer = self.database.request("PUT", &path).json(&body).expect(status).await;
        self.written(doc, &answer.rev(), answer.seq(), deleted);
    }

    /// The rows of one request follow each other, and its answer names the last one's sequence.
    async fn write_bulk(&mut self) {
        let count = self.rng.random_range(2..=BULK_MAX);
        let docs = (0..DOCS_A_WRITER).choose_multiple(&mut self.rng, count);
        let mut bodies = Vec::new();
        let mut deletions = Vec::new();
        for &doc in &docs {
            let (mut body, deleted) = self.body(doc);
            body["_id"] = json!(self.docs[doc].id);
            bodies.push(body);
            deletions.push(deleted);
        }
        let answer = self.database.post("/_bulk_docs").json(&json!({ "docs": bodies })).expect(201).await;
        let results = answer.json();
        let first = answer.seq() + 1 - count as u64;
        for (at, (doc, deleted)) in docs.into_iter().zip(deletions).enumerate() {
            let rev = results[at]["rev"].as_str().unwrap_or_else(|| panic!("no rev in {}", results[at]));
            self.written(doc, rev, first + at as u64, deleted);
        }
    }

    async fn write_local(&mut self) {
        let local = self.rng.random_range(0..LOCALS_A_WRITER);
        let Chain { id, n, parent } = &mut self.locals[local];
        let mut body = json!({ "n": n });
        if let Some(parent) = &parent {
            body["_rev"] = json!(parent);
        }
        let rev = self.database.request("PUT", &format!("/{id}")).json(&body).expect(201).await.rev();
        let (key, state) = (format!("/{DATABASE}/{id}"), json!({ "rev": rev, "n": n }));
        let answer = Answer::Names { id: id.clone(), rev: rev.clone() };
        self.acknowledged.push(Acknowledged { key, state, answer });
        *n += 1;
        *parent = Some(rev);
    }

    async fn delete_local(&mut self, local: usize) {
        let Chain { id, parent, .. } = &self.locals[local];
        let Some(parent) = parent else { return };
        let rev = self.database.request("DELETE", &format!("/{id}?rev={parent}")).expect(200).await.rev();
        let (key, state) = (format!("/{DATABASE}/{id}"), Value::Null);
        self.acknowledged.push(Acknowledged { key, state, answer: Answer::Names { id: id.clone(), rev } });
    }
}
