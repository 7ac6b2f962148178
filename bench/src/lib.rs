//! A load generator for change feeds over HTTP: subscribers that count what they get, writers that are answered when a
//! document is on disk, readers that catch up, subscribers that wait.
//!
//! All clients of a load are on one thread and take documents apart no further than to find what counts, because they
//! share the machine with the server that they measure. `seqtide bench` is its command line ([`cli`]); the benchmarks
//! below `tests/benches` run the same loads against Seqtide and against others side by side.

pub mod backfill;
pub mod cli;
pub mod connection;
pub mod documents;
mod error;
pub mod fan_out;
pub mod feed;
mod head;
pub mod idle;
pub mod latency;
pub mod load;
pub mod open_files;
pub mod own_server;
pub mod process;
pub mod report;
mod rows;
pub mod service;
mod tally;
pub mod writers;
pub mod writes;

pub use error::Error;

/// A runtime for clients: on one thread, so that they leave the server a core.
///
/// # Errors
/// When the system refuses it.
pub fn current_thread() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|source| Error::io("a runtime", source))
}
