//! What the benches share: figures, parts that can be chosen, rounds of sides, the clients' runtime, and the peers that
//! Seqtide is held against.

pub mod bare_writer;
pub mod durable_streams;
pub mod figure;
pub mod nchan;
pub mod parts;
pub mod peer;
pub mod pouchdb_server;
pub mod rounds;
pub mod stolen;

use tokio::runtime::Runtime;

/// A runtime for clients: on one thread, so that they leave the server a core.
///
/// # Panics
/// When the system refuses it.
pub fn current_thread() -> Runtime {
    seqtide_bench::current_thread().expect("a runtime")
}
