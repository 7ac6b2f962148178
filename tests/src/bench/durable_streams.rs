//! The peer that durable writes and feeds are held against: `durable-streams` of crates.io, a server of append-only
//! logs over HTTP.
//!
//! It has no documents, revisions or index: an append is bytes at the end of a stream. What it has in common with a
//! `PUT` here is the promise: what was answered is on disk, in one order.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use seqtide_bench::connection::Connection;
use seqtide_bench::service::{FeedRequest, Publish, Service, Transport};

use super::current_thread;
use super::peer::{self, Peer};

/// The version that is compared with.
pub const VERSION: &str = "0.1.5";
/// The stream that everything is appended to.
const STREAM: &str = "/stream";
/// Bytes of this type it neither parses nor encodes for a feed.
const CONTENT_TYPE: &str = "text/plain";

/// Starts the server with its defaults: an append is answered when a log shared by its streams was synced
/// (`fdatasync`), one sync for all that wait for it.
///
/// # Panics
/// When it cannot be installed or does not listen.
pub fn start() -> Peer {
    let (address, data) = (peer::free_address(), peer::folder("durable-streams"));
    let mut command = Command::new(installed());
    command.arg("--host").arg(address.ip().to_string()).arg("--port").arg(address.port().to_string());
    command.args(["--durability", "wal", "--data-dir"]).arg(data.path());
    let bytes = Transport::Sse.request(&format!("{STREAM}?offset=now&live=sse"));
    let feed = FeedRequest { bytes, live: br#""upToDate":true"#, has_sequences: false };
    let publish = Publish::Post { path: STREAM.to_owned(), content_type: CONTENT_TYPE };
    let peer = Peer::start("durable-streams", command, Service { address, pid: None, publish, feed }, data);
    let create =
        format!("PUT {STREAM} HTTP/1.1\r\nHost: bench\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: 0\r\n\r\n");
    current_thread().block_on(async {
        let mut connection = Connection::open(address).await.expect("a connection");
        connection.exchange(create.as_bytes()).await.expect("a stream");
    });
    peer
}

/// The program, installed unless it is there.
fn installed() -> PathBuf {
    let root = peer::home(&format!("durable-streams-{VERSION}"));
    let binary = root.join(format!("bin/durable-streams-server{}", env::consts::EXE_SUFFIX));
    if !binary.is_file() {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["install", "durable-streams", "--locked", "--version", &format!("={VERSION}")]);
        // Built in a temporary folder: nothing of it stays but the binary.
        cargo.arg("--root").arg(&root).env_remove("CARGO_TARGET_DIR");
        peer::install(&mut cargo);
    }
    binary
}
