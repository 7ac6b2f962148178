//! One database of a server under test: the calls that tests make over and over.

use serde_json::{Value, json};

use crate::Server;
use crate::http::{Answer, Api, Request, escaped};

/// A server with one empty database, `db`. Keep the server: it ends when dropped.
///
/// # Panics
/// When the server does not start, or refuses.
pub async fn fresh() -> (Server, Database) {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    (server, database)
}

/// A database, by name; cheap to clone.
#[derive(Clone)]
pub struct Database {
    /// The client it is reached through.
    pub api: Api,
    path: String,
}

impl Database {
    /// Creates it.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn create(server: &Server, name: &str) -> Database {
        let database = Database::at(server, name);
        database.request("PUT", "").expect(201).await;
        database
    }

    /// A handle to a database that may be there.
    pub fn at(server: &Server, name: &str) -> Database {
        Database { api: Api::new(server), path: format!("/{}", escaped(name)) }
    }

    /// Its path, `/name`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A request below the database; `rest` is empty, begins with a slash or is a query.
    pub fn request(&self, method: &str, rest: &str) -> Request {
        self.api.request(method, &format!("{}{rest}", self.path))
    }

    /// `GET` below the database.
    pub fn get(&self, rest: &str) -> Request {
        self.request("GET", rest)
    }

    /// `POST` below the database.
    pub fn post(&self, rest: &str) -> Request {
        self.request("POST", rest)
    }

    /// Writes a document that the server must take.
    ///
    /// # Panics
    /// When it does not answer 201.
    pub async fn put(&self, id: &str, body: &Value) -> Answer {
        self.request("PUT", &format!("/{}", escaped(id))).json(body).expect(201).await
    }

    /// `_bulk_docs` with new revisions; the results in the order of `docs`.
    ///
    /// # Panics
    /// When the server does not answer 201.
    pub async fn bulk(&self, docs: &[Value]) -> Value {
        self.post("/_bulk_docs").json(&json!({ "docs": docs })).expect(201).await.json()
    }

    /// `_bulk_docs` with `new_edits=false`: revisions as another server made them.
    ///
    /// # Panics
    /// When the server does not take all of them.
    pub async fn push(&self, docs: &[Value]) {
        let answer = self.post("/_bulk_docs").json(&json!({ "docs": docs, "new_edits": false })).expect(201).await;
        assert_eq!(answer.json(), json!([]), "failures while pushing");
    }

    /// `_purge`; the leaves that were purged, by document.
    ///
    /// # Panics
    /// When the server does not answer 201.
    pub async fn purge(&self, leaves: &Value) -> Value {
        self.post("/_purge").json(leaves).expect(201).await.json()["purged"].clone()
    }

    /// The body of `GET _changes?query`.
    ///
    /// # Panics
    /// When the server does not answer 200.
    pub async fn changes(&self, query: &str) -> Value {
        self.get(&format!("/_changes?{query}")).expect(200).await.json()
    }

    /// The database's information.
    ///
    /// # Panics
    /// When the server does not answer 200.
    pub async fn info(&self) -> Value {
        self.get("").expect(200).await.json()
    }
}
