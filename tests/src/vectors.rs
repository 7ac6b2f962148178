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
    /// Each a list of `_bulk_docs` requests with `new_edits:false`.
    pub histories: BTreeMap<String, Vec<Vec<Value>>>,
    /// The requests and their answers.
    pub vectors: Vec<Vector>,
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
    /// Rows after it.
    pub pending: u64,
}

impl Expect {
    /// The rows as text.
    pub fn rows(&self) -> Vec<&str> {
        self.results.iter().map(|row| row.get()).collect()
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
    for batch in &vectors.histories[name] {
        database.push(batch).await;
    }
    database
}
