//! Through the real server, over connections that stay open: single `PUT`s, and `_bulk_docs`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use seqtide_bench::connection::Connection;
use seqtide_tests::Server;
use seqtide_tests::bench::current_thread;
use serde_json::{Value, json};

use crate::comparison::{self, Comparison, Kind, Turn};
use crate::{DOCUMENTS, LONG, UPDATED_HERE, staggered};

const CONNECTIONS: usize = 64;
/// Documents of a `_bulk_docs`: each request of a turn goes over a connection of its own.
const BULK: usize = 1000;

/// A document, and the revision it is at.
#[derive(Clone)]
struct Doc {
    id: String,
    rev: Option<String>,
}

pub fn compare() -> [Comparison; 2] {
    let server = Server::start();
    let runtime = current_thread();
    let mut ids = Ids(0);
    let mut long = ids.new_docs();
    runtime.block_on(make_long_histories(server.address(), &mut long));
    let mut clients = runtime.block_on(Clients::connect(server.address()));
    runtime.block_on(async {
        for later in staggered() {
            clients.put_all(&mut long[later]).await;
        }
    });
    [false, true].map(|in_bulk| {
        let mut fresh = Vec::new();
        let way = if in_bulk {
            format!("HTTP, _bulk_docs, {} connections", DOCUMENTS / BULK)
        } else {
            format!("HTTP, {CONNECTIONS} connections")
        };
        comparison::compare(way, |Turn { kind, renews_fresh }| {
            let mut new = Vec::new();
            runtime.block_on(async {
                if renews_fresh {
                    fresh = ids.new_docs();
                    clients.put_all(&mut fresh).await;
                }
                let docs = match kind {
                    Kind::Insert => {
                        new = ids.new_docs();
                        &mut new
                    }
                    Kind::Fresh => &mut fresh,
                    Kind::Long => &mut long,
                };
                let took = if in_bulk { clients.post_all(docs).await } else { clients.put_all(docs).await };
                DOCUMENTS as f64 / took.as_secs_f64()
            })
        })
    })
}

struct Ids(usize);

impl Ids {
    fn new_docs(&mut self) -> Vec<Doc> {
        let from = self.0;
        self.0 += DOCUMENTS;
        (from..self.0).map(|number| Doc { id: format!("document-{number:08}"), rev: None }).collect()
    }
}

/// Makes the database, and in it documents with 1,000 revisions; those made by updates first.
async fn make_long_histories(address: SocketAddr, docs: &mut [Doc]) {
    let mut connection = Connection::open(address).await.expect("a connection");
    connection.request("PUT", "/db", "").await.expect("a database");
    let (updated, replicated) = docs.split_at_mut(UPDATED_HERE);
    for _ in 0..LONG {
        let bodies: Vec<Value> = updated.iter().map(body_of).collect();
        let body = json!({ "docs": bodies }).to_string();
        let results = connection.request("POST", "/db/_bulk_docs", &body).await.expect("an answer");
        for (doc, result) in updated.iter_mut().zip(results.as_array().expect("a list")) {
            doc.rev = Some(text(result, "rev"));
        }
    }
    for docs in replicated.chunks_mut(32) {
        let bodies: Vec<Value> = docs.iter_mut().map(with_long_path).collect();
        let body = json!({ "new_edits": false, "docs": bodies }).to_string();
        let failures = connection.request("POST", "/db/_bulk_docs", &body).await.expect("an answer");
        assert_eq!(failures, json!([]));
    }
    for doc in [&docs[0], &docs[DOCUMENTS - 1]] {
        let found = connection.request("GET", &format!("/db/{}?revs=true", doc.id), "").await.expect("a document");
        assert_eq!(found["_revisions"]["ids"].as_array().map(Vec::len), Some(LONG as usize), "{}", doc.id);
    }
}

/// Connections that are never idle for long: the server would close them.
struct Clients(Vec<Connection>);

impl Clients {
    async fn connect(address: SocketAddr) -> Clients {
        Clients(try_join_all((0..CONNECTIONS).map(|_| Connection::open(address))).await.expect("connections"))
    }

    /// Each connection writes its share, one document after the other; how long it takes.
    async fn put_all(&mut self, docs: &mut [Doc]) -> Duration {
        let started = Instant::now();
        let share = docs.len().div_ceil(self.0.len());
        let puts = self.0.iter_mut().zip(docs.chunks_mut(share)).map(async |(connection, docs)| {
            for doc in docs {
                let body = body_of(doc).to_string();
                let answer = connection.request("PUT", &format!("/db/{}", doc.id), &body).await.expect("an answer");
                doc.rev = Some(text(&answer, "rev"));
            }
        });
        join_all(puts).await;
        started.elapsed()
    }

    /// Writes them in bulk; how long it takes to have the answers to requests that are made before.
    async fn post_all(&mut self, docs: &mut [Doc]) -> Duration {
        let request = |docs: &[Doc]| json!({ "docs": docs.iter().map(body_of).collect::<Vec<_>>() }).to_string();
        let requests: Vec<String> = docs.chunks(BULK).map(request).collect();
        let started = Instant::now();
        let posts = self.0.iter_mut().zip(&requests);
        let posts = posts.map(async |(connection, body)| connection.request("POST", "/db/_bulk_docs", body).await);
        let answers = try_join_all(posts).await.expect("answers");
        let took = started.elapsed();
        let results = answers.iter().flat_map(|answer| answer.as_array().expect("a list"));
        for (doc, result) in docs.iter_mut().zip(results) {
            doc.rev = Some(text(result, "rev"));
        }
        took
    }
}

fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_else(|| panic!("no {name} in {object}")).to_owned()
}

/// About 200 bytes, and the members that make it an edit of its document.
fn body_of(doc: &Doc) -> Value {
    let mut body = json!({ "_id": doc.id, "text": "x".repeat(190) });
    if let Some(rev) = &doc.rev {
        body["_rev"] = json!(rev);
    }
    body
}

/// The same as another server would have made it, with 1,000 revisions.
fn with_long_path(doc: &mut Doc) -> Value {
    let ids: Vec<String> = (0..LONG).map(|_| format!("{:032x}", rand::random::<u128>())).collect();
    doc.rev = Some(format!("{LONG}-{}", ids[0]));
    let mut body = body_of(doc);
    body["_revisions"] = json!({ "start": LONG, "ids": ids });
    body
}
