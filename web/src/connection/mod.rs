//! A client's connection beneath the framework: the [`listener`] that takes it, what is said on it, its socket, and its
//! end.
//!
//! Requests know the socket of theirs, as the [`Detachable`] among the connection's data.

mod chunks;
mod cutting;
mod detachable;
mod head;
pub mod listener;

pub use self::cutting::{Cutter, Cutting};
pub use self::detachable::Detachable;
