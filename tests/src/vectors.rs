//! The vectors of `data/changes-vectors.json`: histories of writes and what `_changes` answers after them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::Request;
use crate::{Database, Server};

/// The data file.
#[derive(Deserialize)]
pub struct Vectors {
    /// Each a list of requests.
    pub histories: BTreeMap<String, Vec<Step>>,
    /// The requests and their answers.
    pub vectors: Vec<Vector>,
}

/// One request of a history.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// The documents of a `_bulk_docs` with `new_edits:false`.
    Push(Vec<Value>),
    /// The body of a `_purge`.
    Purge {
        /// Leaves by document.
        purge: Value,
    },
}

/// One request after one history.
#[derive(Deserialize)]
pub struct Vector {
    /// `C01` and so on.
    pub id: String,
    /// The name of the history.
    pub history: String,
    method: String,
    query: String,
    body: Option<Value>,
    /// What it answers.
    pub expect: Expect,
}

/// An answer; rows are kept as text, so that their bytes count.
#[derive(Deserialize)]
pub struct Expect {
    results: Vec<Box<RawValue>>,
    /// Where to continue.
    pub last_seq: u64,
    last_seq_live: Option<u64>,
    /// Rows after it.
    pub pending: u64,
}

impl Expect {
    /// The rows as text.
    pub fn rows(&self) -> Vec<&str> {
        self.results.iter().map(|row| row.get()).collect()
    }

    /// Where to continue after a feed that may wait: up to where it has looked.
    pub fn last_seq_live(&self) -> u64 {
        self.last_seq_live.unwrap_or(self.last_seq)
    }

    /// The rows with the text of their `seq`.
    pub fn rows_with_ids(&self) -> Vec<(&str, String)> {
        let id_of = |row: &str| serde_json::from_str::<Value>(row).expect("a row")["seq"].to_string();
        self.rows().into_iter().map(|row| (row, id_of(row))).collect()
    }
}

impl Vector {
    /// Whether its query asks for no rows.
    pub fn asks_for_no_rows(&self) -> bool {
        self.query.split('&').any(|option| option == "limit=0")
    }

    /// Its request to this database, with more options.
    pub fn request(&self, database: &Database, options: &str) -> Request {
        let query = self.query.replace('@', "");
        let request = database.request(&self.method, &format!("/_changes?{query}&{options}"));
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

/// The vectors.
///
/// # Panics
/// When the file does not parse.
pub fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../data/changes-vectors.json")).expect("the vectors parse")
}

/// Writes a history into a new database named after it.
///
/// # Panics
/// When the server does not take it.
pub async fn database_with_history(server: &Server, vectors: &Vectors, name: &str) -> Database {
    let database = Database::create(server, &name.to_lowercase()).await;
    for step in &vectors.histories[name] {
        match step {
            Step::Push(docs) => database.push(docs).await,
            Step::Purge { purge } => {
                assert_eq!(database.purge(purge).await, *purge, "every leaf is there to be purged")
            }
        }
    }
    database
}
