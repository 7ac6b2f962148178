//! The peer that speaks the same protocol: `pouchdb-server` of npm, on LevelDB, which it does not sync with each write.

use std::path::PathBuf;
use std::process::Command;

use seqtide_bench::connection::Connection;
use seqtide_bench::service::{FeedRequest, Publish, Service, Transport};

use super::current_thread;
use super::peer::{self, Peer};

/// The version that is compared with.
pub const VERSION: &str = "4.2.0";
/// Its program, below the folder in which npm installs it.
const PROGRAM: &str = "node_modules/pouchdb-server/bin/pouchdb-server";

/// Starts the server with a database; its feed is `_changes`, a line a change.
///
/// # Panics
/// When it cannot be installed or does not listen.
pub fn start() -> Peer {
    let (address, folder) = (peer::free_address(), peer::folder("pouchdb-server"));
    let mut command = Command::new("node");
    command.arg(installed().join(PROGRAM)).current_dir(folder.path());
    command.arg("--host").arg(address.ip().to_string()).arg("--port").arg(address.port().to_string());
    command.args(["--no-color", "--no-stdout-logs", "--dir"]).arg(folder.path());
    // It sends no head before it has something to say: the first document is there for that.
    let path = "/db/_changes?feed=continuous&since=0&include_docs=true&heartbeat=60000";
    let feed = FeedRequest { bytes: Transport::Sse.request(path), live: br#""id":"first""#, has_sequences: false };
    let publish = Publish::Put("/db".to_owned());
    let peer = Peer::start("pouchdb-server", command, Service { address, pid: None, publish, feed }, folder);
    current_thread().block_on(async {
        let mut connection = Connection::open(address).await.expect("a connection");
        connection.request("PUT", "/db", "").await.expect("a database");
        connection.request("PUT", "/db/first", "{}").await.expect("a document");
    });
    peer
}

/// The folder with the program, installed unless it is there.
fn installed() -> PathBuf {
    let root = peer::home(&format!("pouchdb-server-{VERSION}"));
    if !root.join(PROGRAM).is_file() {
        std::fs::create_dir_all(&root).expect("a folder");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(&root);
        npm.arg(format!("pouchdb-server@{VERSION}"));
        peer::install(&mut npm);
    }
    root
}
