//! The doors of the feed, read alike: each gives rows and events with their tokens, can be cut anywhere and
//! opened again after any token.

mod embedded;
mod http;
mod interrupted;
mod item;
mod websocket;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

pub use embedded::{EmbeddedDoor, EmbeddedStore};
pub use http::HttpDoor;
pub use interrupted::{CUTS_MIN, follow_interrupted};
pub use item::{Item, follows};
pub use websocket::{FeedSocket, WebSocketDoor, feed_url};

/// One way to follow a database's changes.
pub trait Door: Send + Sync {
    /// What failure messages call it.
    fn name(&self) -> &'static str;

    /// The largest cut that still lets a test cut often.
    fn largest_cut(&self) -> usize {
        500
    }

    /// Opens the feed after the change that `since` stands for (from the start without one). The stream ends when
    /// the feed does, or after `cut` of the door's units: bytes of the body, or items where there are no bytes.
    fn open(&self, since: Option<String>, cut: usize) -> BoxFuture<'_, BoxStream<'static, Item>>;
}
