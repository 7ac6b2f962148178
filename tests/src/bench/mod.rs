//! What the benches share: figures, parts that can be chosen, the clients' runtime, and the rival.

pub mod durable_streams;
pub mod figure;
pub mod parts;

use tokio::runtime::{Builder, Runtime};

/// A runtime for clients: on one thread, so that they leave the server a core.
///
/// # Panics
/// When the system refuses it.
pub fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
