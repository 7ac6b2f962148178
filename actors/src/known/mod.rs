//! What is known of a feed from outside while it is open: what it is of, how far it has come and what its reader was
//! sent; and what it is told from outside.

mod feed;
mod feeds;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};

use crate::drain::Drain;
use crate::end_reason::EndReason;
use crate::feed::kind::FeedKind;

pub(crate) use self::feed::KnownFeed;
pub(crate) use self::feeds::KnownFeeds;

/// A feed's number: one opened later has a higher one, also after a restart.
pub type FeedId = u64;

/// What a feed is; it does not change.
#[derive(Debug, PartialEq, Eq)]
pub struct FeedAbout {
    /// What it is served as.
    pub kind: FeedKind,
    /// The database it is of; `None` of a feed of all databases' updates.
    pub database: Option<DbName>,
    /// What it leaves out, for people; `None` where it shows everything.
    pub filter: Option<String>,
    /// How its sequences are written.
    pub seq_format: SeqFormat,
}

/// How a feed stands, as its reader was told last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    /// It has not given everything there was yet.
    CatchingUp,
    /// It has, and gives what happens.
    Live,
    /// It was live, and has fallen behind what is in memory: it reads the disk.
    Lagging,
    /// It ends shortly, because the engine does.
    Draining,
}

impl FeedState {
    /// The state's name in answers.
    pub fn name(self) -> &'static str {
        match self {
            FeedState::CatchingUp => "catching-up",
            FeedState::Live => "live",
            FeedState::Lagging => "lagging",
            FeedState::Draining => "draining",
        }
    }
}

/// What goes with a feed wherever it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedRecord {
    /// Its number.
    pub id: FeedId,
    /// When it was opened, in seconds since 1970.
    pub opened_secs: u64,
    /// Rows it was given.
    pub rows: u64,
    /// Bytes that were handed to its connection.
    pub bytes: u64,
}

/// An open feed as it stands.
#[derive(Debug, Clone)]
pub struct FeedInfo {
    /// Its number, and what its reader was sent.
    pub record: FeedRecord,
    /// What it is.
    pub about: Arc<FeedAbout>,
    /// Who reads it, where that is known.
    pub client: Option<SocketAddr>,
    /// How it stands.
    pub state: FeedState,
    /// Everything up to here has been given, as far as it passes the filter.
    pub position: Sequence,
    /// Since when there are rows that it has not given; `None` of a feed that has everything.
    pub behind_since: Option<Instant>,
}

/// What a feed is told from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// To end at once.
    End(EndReason),
    /// To end in its turn.
    Drain(Drain),
}
