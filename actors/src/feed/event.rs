//! What a feed gives: changes, and where it stands.

use std::sync::Arc;
use std::time::Duration;

use seqtide_storage::model::sequence::Sequence;

use super::Extent;
use super::source::Lag;
use super::stream::Change;
use crate::end_reason::EndReason;
use crate::feed::frames::Frames;
use crate::row::Row;

/// What a [`Feed`](super::Feed) gives.
pub type FeedEvent<R = Row> = ChangeEvent<Portion<R>>;

/// As many changes as a feed gives at once.
#[derive(Debug, Clone)]
pub enum Portion<R = Row> {
    /// Rows, in order; at least one.
    Rows(Vec<Arc<R>>),
    /// The same as bytes alone, where the feed was [asked](super::options::FeedOptions::frames) for no more.
    Frames(Frames),
    /// None: the feed starts to wait and has sent nothing yet; or it has no heartbeat, and has given nothing for 5 s in
    /// which it read. A sign of life for its reader.
    Nothing,
}

/// What a feed or a stream of changes gives: changes, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeEvent<C = Change> {
    /// The first of all, unless it is rewound: where it begins.
    Open {
        /// The token to resume from.
        seq: Sequence,
        /// What there is.
        extent: Extent,
        /// Its heartbeat: silence of more than this is a fault.
        heartbeat: Option<Duration>,
    },
    /// A changed document, or what else it is of.
    Change(C),
    /// Everything there is has been given; what follows happens from now on.
    CaughtUp {
        /// The token to resume from.
        seq: Sequence,
    },
    /// Nothing was given for the heartbeat's time.
    Heartbeat {
        /// The token to resume from: everything up to here has been examined.
        seq: Sequence,
        /// How many rows lie behind it, before any filter.
        pending: u64,
    },
    /// It was live and fell behind what is in memory: it reads the disk.
    Lagging {
        /// The token to resume from.
        seq: Sequence,
        /// How far that lies behind.
        lag: Lag,
    },
    /// It is live again.
    Live {
        /// The token to resume from.
        seq: Sequence,
    },
    /// What there was when it was opened has been given; what changed since follows.
    SnapshotEnd {
        /// The update sequence then: the token to resume from.
        seq: Sequence,
    },
    /// The first of all where the token asked for is from the future: it starts from the beginning.
    Rewind {
        /// What was asked for.
        since: Sequence,
        /// What there is.
        extent: Extent,
        /// Its heartbeat: silence of more than this is a fault.
        heartbeat: Option<Duration>,
    },
    /// It ends shortly, because the engine does.
    Draining {
        /// The token to resume from.
        seq: Sequence,
        /// How long to wait, once it has ended, before coming back.
        retry: Duration,
    },
    /// Nothing follows.
    End {
        /// Why.
        reason: EndReason,
        /// The token to resume from. Of a descending feed, the last row given.
        seq: Sequence,
        /// How many rows, before any filter, lie behind it; of a descending feed, before it. `None` where they cannot
        /// be counted any more.
        pending: Option<u64>,
    },
}

impl<C> ChangeEvent<C> {
    /// What it says of where the feed stands.
    ///
    /// # Errors
    /// The change, where it is one.
    pub(super) fn said<D>(self) -> Result<ChangeEvent<D>, C> {
        Ok(match self {
            ChangeEvent::Change(change) => return Err(change),
            ChangeEvent::Open { seq, extent, heartbeat } => ChangeEvent::Open { seq, extent, heartbeat },
            ChangeEvent::CaughtUp { seq } => ChangeEvent::CaughtUp { seq },
            ChangeEvent::Heartbeat { seq, pending } => ChangeEvent::Heartbeat { seq, pending },
            ChangeEvent::Lagging { seq, lag } => ChangeEvent::Lagging { seq, lag },
            ChangeEvent::Live { seq } => ChangeEvent::Live { seq },
            ChangeEvent::SnapshotEnd { seq } => ChangeEvent::SnapshotEnd { seq },
            ChangeEvent::Rewind { since, extent, heartbeat } => ChangeEvent::Rewind { since, extent, heartbeat },
            ChangeEvent::Draining { seq, retry } => ChangeEvent::Draining { seq, retry },
            ChangeEvent::End { reason, seq, pending } => ChangeEvent::End { reason, seq, pending },
        })
    }
}
