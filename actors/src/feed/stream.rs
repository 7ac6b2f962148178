//! A feed as a stream inside the program.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::{self, StreamExt};
use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::sequence::Sequence;

use super::Feed;
use super::event::{ChangeEvent, FeedEvent, Portion};
use super::source::Source;
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

/// A stream of what changes. It ends after [`ChangeEvent::End`], or after an error; asked again it says so again.
/// Changes are read a page at a time: those of a page that was read are given also when their documents are purged, or
/// their database is deleted, before they are asked for.
/// Nothing is lost when a future of `next()` is dropped before it is ready, as in `select!` or under a timeout.
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
        Changes { inner: Box::pin(batches.fuse().map(stream::iter).flatten()) }
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

impl<C> fmt::Debug for Changes<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

impl<C> Stream for Changes<C> {
    type Item = Result<ChangeEvent<C>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

fn events<R, C>(event: FeedEvent<R>, show: impl Fn(&R) -> C) -> Vec<Result<ChangeEvent<C>, Error>> {
    match event.said() {
        Ok(said) => vec![Ok(said)],
        Err(Portion::Rows(rows)) => rows.iter().map(|row| Ok(ChangeEvent::Change(show(row)))).collect(),
        // Frames are not asked for.
        Err(Portion::Frames(_) | Portion::Nothing) => Vec::new(),
    }
}
