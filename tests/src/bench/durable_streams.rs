//! The rival that durable writes are held against: `durable-streams` of crates.io, a server of append-only logs over HTTP.
//!
//! It has no documents, revisions or index: an append is bytes at the end of a stream. What it has in common with a `PUT`
//! here is the promise: what was answered is on disk, in one order.

use std::env;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::connection::Connection;
use crate::process::Process;
use crate::server::DEADLINE;

/// The version that is compared with.
const VERSION: &str = "0.1.5";

/// The server with its defaults: an append is answered when a log shared by its streams was synced (`fdatasync`), one
/// sync for all that wait for it. Killed when dropped.
pub struct DurableStreams {
    address: SocketAddr,
    _process: Process,
    _data: TempDir,
}

impl DurableStreams {
    /// Installs it, below the target folder, unless it is there.
    ///
    /// # Panics
    /// When that fails: without it nothing can be compared.
    fn install() -> PathBuf {
        // From `target/release/deps/BENCH`.
        let bench = env::current_exe().expect("the path of this bench");
        let target = bench.ancestors().nth(3).expect("the target folder");
        let root = target.join(format!("durable-streams-{VERSION}"));
        let binary = root.join(format!("bin/durable-streams-server{}", env::consts::EXE_SUFFIX));
        if !binary.is_file() {
            eprintln!("installing durable-streams {VERSION} in {}", root.display());
            let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.args(["install", "durable-streams", "--locked", "--version", &format!("={VERSION}")]);
            // Built in a temporary folder: nothing of it stays but the binary.
            cargo.arg("--root").arg(&root).env_remove("CARGO_TARGET_DIR");
            assert!(cargo.status().expect("cargo").success(), "{cargo:?} failed");
        }
        binary
    }

    /// Starts it on a temporary data folder and waits until it listens.
    ///
    /// # Panics
    /// When it does not within [`DEADLINE`].
    pub fn start() -> DurableStreams {
        let data = tempfile::Builder::new().prefix("durable-streams-").tempdir().expect("a temporary folder");
        let address = free_address();
        let mut command = Command::new(DurableStreams::install());
        command.arg("--host").arg(address.ip().to_string()).arg("--port").arg(address.port().to_string());
        command.args(["--durability", "wal", "--data-dir"]).arg(data.path());
        let process = Process::spawn(command);
        let line = process.stdout.wait_for("listening on", DEADLINE);
        line.unwrap_or_else(|| process.fail("(durable-streams) does not listen"));
        DurableStreams { address, _process: process, _data: data }
    }

    /// Makes a stream of bytes.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn create(&self, path: &str) {
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/octet-stream\r\nContent-Length: 0\r\n\r\n"
        );
        Connection::open(self.address).await.exchange(request.as_bytes()).await;
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A port of loopback that nobody listens on: this server does not tell which one it took.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}
