//! The servers under test: Seqtide as it was built, and as it was before where that binary is given.

use std::path::Path;

use seqtide_tests::Server;
use seqtide_tests::connection::Connection;
use tokio::runtime::Runtime;

/// Names the binary of Seqtide before.
const BEFORE: &str = "SEQTIDE_BEFORE_BIN";

/// A server with the database `/db`.
pub struct Seqtide {
    pub name: &'static str,
    /// Whether it is the one that figures are required of.
    pub is_judged: bool,
    pub server: Server,
}

impl Seqtide {
    fn new(runtime: &Runtime, name: &'static str, is_judged: bool, server: Server) -> Seqtide {
        runtime.block_on(async {
            Connection::open(server.address()).await.request("PUT", "/db", "").await;
        });
        Seqtide { name, is_judged, server }
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
}
