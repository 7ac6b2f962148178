//! A client's connection beneath the framework: the [`listener`] that takes it, what is said on it, its socket, and its
//! end.
//!
//! Requests know the socket of theirs, as the [`Detachable`] among the connection's data. Some need nothing of the
//! framework, and are answered before they come to it: by a [`Shortcut`].

mod chunks;
mod cutting;
mod detachable;
mod head;
pub mod listener;
mod served;
mod shortcut;

pub use self::cutting::{Cutter, Cutting};
pub use self::detachable::{Detachable, SHORTCUT_FOR};
pub use self::head::is_websocket;
pub use self::shortcut::{Answering, Shortcut};
