//! Functions in design documents: as filters, and to validate writes.

mod filters;
mod hostile;
mod leave;
mod refusals;
mod validation;

use serde_json::{Value, json};

use seqtide_tests::Database;
use seqtide_tests::database::fresh;

/// Writes the design document `_design/NAME`, or a new revision of it.
async fn design(database: &Database, name: &str, body: &Value) {
    let path = format!("/_design/{name}");
    let mut body = body.clone();
    let before = database.get(&path).send().await;
    if before.status == 200 {
        body["_rev"] = before.json()["_rev"].clone();
    }
    database.request("PUT", &path).json(&body).expect(201).await;
}

/// A design document with one filter, `f`.
fn filter(code: &str) -> Value {
    json!({ "filters": { "f": code } })
}

/// A design document that validates writes.
fn validator(code: &str) -> Value {
    json!({ "validate_doc_update": code })
}

/// The ids in `_changes` with this query.
async fn changed(database: &Database, query: &str) -> Vec<String> {
    let answer = database.get(&format!("/_changes?{query}")).expect(200).await.json();
    ids(&answer["results"])
}

fn ids(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().expect("rows");
    rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}
