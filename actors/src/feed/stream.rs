//! A feed as a stream inside the program.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::{self, StreamExt};
use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::sequence::Sequence;

use super::source::{Lag, Source};
use super::{EndReason, Extent, Feed, FeedEvent};
use crate::error::Error;
use crate::row::Row;

/// A changed document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its latest sequence: the token to resume from.
    pub seq: Sequence,
    /// The document.
    pub id: DocId,
    /// The winner's revision.
    pub rev: RevId,
    /// Whether the document is deleted.
    pub deleted: bool,
    /// The leaves: the winner alone, or all that pass the filter if they were asked for.
    pub leaves: Vec<RevId>,
    /// The winner's body, if it was asked for.
    pub body: Option<Body>,
    /// Whether the document was given before and does not pass any more, or is deleted.
    pub left: bool,
}

impl Change {
    pub(crate) fn of(row: &Row, all_leaves: bool, with_body: bool) -> Change {
        let change = row.change();
        let winner = change.winner();
        Change {
            seq: change.seq,
            id: change.id.clone(),
            rev: winner.rev.clone(),
            deleted: winner.deleted,
            leaves: row.listed(all_leaves).iter().map(|leaf| leaf.rev.clone()).collect(),
            body: change.body.clone().filter(|_| with_body && !row.left()),
            left: row.left(),
        }
    }
}

/// What a stream of changes gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeEvent<C = Change> {
    /// The first of all, unless the stream is rewound: where it begins.
    Open {
        /// The token to resume from.
        seq: Sequence,
        /// What there is.
        extent: Extent,
        /// Its heartbeat: silence of more than this is a fault.
        heartbeat: Option<Duration>,
    },
    /// A changed document, or what else the stream is of.
    Change(C),
    /// Everything there is has been given; what follows happens from now on.
    CaughtUp {
        /// The token to resume from.
        seq: Sequence,
    },
    /// Nothing was given for the heartbeat's time.
    Heartbeat {
        /// The token to resume from.
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
    /// The first of all where the token asked for is from the future: the stream starts from the beginning.
    Rewind {
        /// What was asked for.
        since: Sequence,
        /// What there is.
        extent: Extent,
        /// Its heartbeat: silence of more than this is a fault.
        heartbeat: Option<Duration>,
    },
    /// The stream ends shortly, because the engine does.
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
        /// The token to resume from.
        seq: Sequence,
    },
}

/// A stream of what changes. It ends after [`ChangeEvent::End`], or after an error.
pub struct Changes<C = Change> {
    inner: Pin<Box<dyn Stream<Item = Result<ChangeEvent<C>, Error>> + Send>>,
}

impl<C: Send + 'static> Changes<C> {
    /// The stream of a feed whose rows are shown so.
    pub(crate) fn new<S: Source>(feed: Feed<S>, show: impl Fn(&S::Row) -> C + Clone + Send + 'static) -> Changes<C> {
        let batches = stream::unfold(Some(feed), move |feed| {
            let show = show.clone();
            async move {
                let mut feed = feed?;
                match feed.next().await {
                    Ok(Some(event)) => Some((events(event, show), Some(feed))),
                    Ok(None) => None,
                    Err(error) => Some((vec![Err(error)], None)),
                }
            }
        });
        Changes { inner: Box::pin(batches.map(stream::iter).flatten()) }
    }

    /// The changes alone: whatever else the stream says is passed over.
    pub fn only_changes(self) -> impl Stream<Item = Result<C, Error>> + Send + Unpin {
        let changes = self.inner.filter_map(|event| {
            std::future::ready(match event {
                Ok(ChangeEvent::Change(change)) => Some(Ok(change)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            })
        });
        Box::pin(changes)
    }
}

impl<C> Stream for Changes<C> {
    type Item = Result<ChangeEvent<C>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

fn events<R, C>(event: FeedEvent<R>, show: impl Fn(&R) -> C) -> Vec<Result<ChangeEvent<C>, Error>> {
    match event {
        FeedEvent::Rows(rows) => rows.iter().map(|row| Ok(ChangeEvent::Change(show(row)))).collect(),
        // Frames are not asked for.
        FeedEvent::Frames(_) | FeedEvent::Waiting => Vec::new(),
        FeedEvent::Open { seq, extent, heartbeat } => vec![Ok(ChangeEvent::Open { seq, extent, heartbeat })],
        FeedEvent::CaughtUp { seq } => vec![Ok(ChangeEvent::CaughtUp { seq })],
        FeedEvent::Heartbeat { seq, pending } => vec![Ok(ChangeEvent::Heartbeat { seq, pending })],
        FeedEvent::Lagging { seq, lag } => vec![Ok(ChangeEvent::Lagging { seq, lag })],
        FeedEvent::Live { seq } => vec![Ok(ChangeEvent::Live { seq })],
        FeedEvent::SnapshotEnd { seq } => vec![Ok(ChangeEvent::SnapshotEnd { seq })],
        FeedEvent::Rewind { since, extent, heartbeat } => vec![Ok(ChangeEvent::Rewind { since, extent, heartbeat })],
        FeedEvent::Draining { seq, retry } => vec![Ok(ChangeEvent::Draining { seq, retry })],
        FeedEvent::End { reason, seq, .. } => vec![Ok(ChangeEvent::End { reason, seq })],
    }
}
