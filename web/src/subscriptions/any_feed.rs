//! The feed of a subscription, which may be of a database's documents or of the server's databases.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use seqtide::storage::model::sequence::{SeqFormat, Sequence};
use seqtide::{Databases, Feed, FeedEvent, FeedRow, Source, Turn};
use tokio::time::Instant;

use super::resume_id::Progress;
use crate::cut_short;
use crate::wire::native::{self, Event, Item};

/// A feed of the one or the other.
pub enum AnyFeed {
    /// Of a database's documents.
    Documents(Feed),
    /// Of the server's databases.
    Databases(Feed<Databases>),
}

/// What a feed does with a turn.
pub enum Turned {
    /// It gives rows: the place of each, and its JSON.
    Rows(Vec<(Sequence, Bytes)>),
    /// It says something; heartbeats are the connection's.
    Says(Event),
    /// It has nothing to give so far, and is to have another turn.
    GoesOn,
    /// It has given all there is: it [waits](AnyFeed::wait), at most until this moment.
    Waits(Option<Instant>),
    /// It has ended.
    Over,
}

/// Does the same with either.
macro_rules! with {
    ($any:expr, $feed:ident => $does:expr) => {
        match $any {
            AnyFeed::Documents($feed) => $does,
            AnyFeed::Databases($feed) => $does,
        }
    };
}

impl AnyFeed {
    /// [`Feed::turn`].
    ///
    /// # Errors
    /// As there.
    pub async fn turn(&mut self) -> Result<Turned, seqtide::Error> {
        with!(self, feed => turn_of(feed).await)
    }

    /// [`Feed::wait`].
    pub async fn wait(&mut self, until: Option<Instant>) {
        with!(self, feed => feed.wait(until).await);
    }

    /// [`Feed::position`].
    pub fn position(&self) -> Sequence {
        with!(self, feed => feed.position())
    }

    /// How far it has come: who comes back goes on there.
    pub fn progress(&self) -> Progress {
        with!(self, feed => Progress { position: feed.position(), rows_left: feed.rows_left() })
    }

    /// [`Feed::seq_format`].
    pub fn seq_format(&self) -> SeqFormat {
        with!(self, feed => feed.seq_format())
    }

    /// [`Feed::comeback`].
    pub fn comeback(&self, least: Duration) -> Duration {
        with!(self, feed => feed.comeback(least))
    }

    /// [`Feed::read_by`].
    pub fn read_by(&self, client: Option<SocketAddr>) {
        with!(self, feed => feed.read_by(client));
    }

    /// [`Feed::sent`].
    pub fn sent(&self, bytes: usize) {
        with!(self, feed => feed.sent(bytes));
    }

    /// [`cut_short::feed`].
    pub fn cut_short(&self, error: &seqtide::Error) {
        with!(self, feed => cut_short::feed(feed, error));
    }

    /// [`Feed::overdue`].
    pub fn overdue(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        with!(self, feed => Box::pin(feed.overdue()))
    }
}

async fn turn_of<S: Source>(feed: &mut Feed<S>) -> Result<Turned, seqtide::Error> {
    let event = match feed.turn().await? {
        Turn::Gives(event) => event,
        Turn::GoesOn => return Ok(Turned::GoesOn),
        Turn::Waits(until) => return Ok(Turned::Waits(until)),
        Turn::Over => return Ok(Turned::Over),
    };
    let is_heartbeat = matches!(event, FeedEvent::Heartbeat { .. });
    Ok(match native::item(feed, event).filter(|_| !is_heartbeat) {
        Some(Item::Rows(rows, shape)) => {
            Turned::Rows(rows.iter().map(|row| (row.seq(), row.frame(shape).json())).collect())
        }
        Some(Item::Event(event)) => Turned::Says(event),
        None => Turned::GoesOn,
    })
}
