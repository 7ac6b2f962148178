//! What the server says of all its databases: `/_db_updates`, `/_feed`, `/_dbs_info`, `/_active_tasks`.

mod db_updates;
mod feed;
mod info;
mod restarts;

use serde_json::json;

use seqtide_tests::{Api, Database, Server};

/// A server with the databases `a` (made by update 1, written to by 3) and `b` (made by update 2).
async fn fresh() -> (Server, Api) {
    let server = Server::start();
    fill(&server).await;
    let api = Api::new(&server);
    (server, api)
}

async fn fill(server: &Server) {
    let a = Database::create(server, "a").await;
    Database::create(server, "b").await;
    a.put("x", &json!({})).await;
}

fn row(name: &str, kind: &str, seq: u64) -> String {
    format!("{{\"db_name\":\"{name}\",\"type\":\"{kind}\",\"seq\":{seq}}}")
}

/// The rows that tell of [`fresh`].
fn rows() -> [String; 3] {
    [row("a", "created", 1), row("b", "created", 2), row("a", "updated", 3)]
}
