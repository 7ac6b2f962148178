//! The servers under test: Seqtide as it was built, and as it was before where that binary is given.

use std::path::Path;

use seqtide_bench::connection::Connection;
use seqtide_bench::service::{self, Service, Transport};
use seqtide_tests::Server;
use tokio::runtime::Runtime;

/// Names the binary of Seqtide before.
const BEFORE: &str = "SEQTIDE_BEFORE_BIN";
/// The database that it has.
pub const DATABASE: &str = "db";
/// Longer than a turn takes: heartbeats are measured where they are named.
const NO_HEARTBEATS_MS: u64 = 3_600_000;

/// A server with the database `/db`.
pub struct Seqtide {
    pub name: &'static str,
    /// Whether it is the one that figures are required of.
    pub is_judged: bool,
    pub server: Server,
}

impl Seqtide {
    fn new(runtime: &Runtime, name: &'static str, is_judged: bool, server: Server) -> Seqtide {
        let seqtide = Seqtide { name, is_judged, server };
        let created = async {
            let connection = Connection::open(seqtide.server.address()).await?;
            seqtide.asked(Transport::Sse, NO_HEARTBEATS_MS).create(connection).await
        };
        runtime.block_on(created).expect("a database");
        seqtide
    }

    pub fn now(runtime: &Runtime) -> Seqtide {
        Seqtide::new(runtime, "seqtide", true, Server::start())
    }

    /// None, and a line that says so, where there is no binary to compare with.
    pub fn before(runtime: &Runtime) -> Option<Seqtide> {
        let Some(binary) = std::env::var_os(BEFORE) else {
            eprintln!("{BEFORE} is not set: Seqtide is not compared with what it was before");
            return None;
        };
        assert!(Path::new(&binary).is_file(), "{BEFORE} should be the path of a binary, not {}", binary.display());
        Some(Seqtide::new(runtime, "seqtide before", false, Server::launch().binary(binary).start()))
    }

    /// How documents are written to it and read from it.
    pub fn service(&self, transport: Transport) -> Service {
        self.asked(transport, NO_HEARTBEATS_MS).service()
    }

    /// The same with heartbeats.
    pub fn beating(&self, transport: Transport, heartbeat_ms: u64) -> Service {
        self.asked(transport, heartbeat_ms).service()
    }

    fn asked(&self, transport: Transport, heartbeat_ms: u64) -> service::Seqtide<'static> {
        let (address, pid) = (self.server.address(), Some(self.server.pid()));
        service::Seqtide { address, pid, database: DATABASE, transport, heartbeat_ms }
    }
}
