//! A feed as the body of an answer, piece by piece, until it is live and its connection can be taken over.

use std::future::pending;

use bytes::Bytes;
use futures_util::{Stream, stream};
use seqtide::{Error, Feed, FeedEvent, Likeness, Portion, Source};

use super::saying_why::saying_why;
use crate::connection::Cutting;
use crate::cut_short;
use crate::takeover::Takeover;
use crate::wire::Wire;
use crate::wire::pieces::Pieces;

/// A feed's answer, which begins with `opening`. When it cannot go on, it says why, where its form has words for that,
/// and is cut short: that is the only sign that no client takes for data. Where the connection can be taken over, the
/// answer goes on there as soon as the feed is live; until then `cutting` is kept.
pub fn stream<S: Source, W: Wire>(
    mut feed: Feed<S>,
    wire: W,
    opening: Bytes,
    takeover: Option<Takeover>,
    cutting: Cutting,
) -> impl Stream<Item = Result<Bytes, Error>> {
    let failing = wire.clone();
    feed.give_frames(wire.frames());
    let takeover = takeover.filter(|_| wire.is_alike_for_all());
    let mut pieces = Pieces::default();
    pieces.add(opening);
    let body = Body { feed, wire, pieces, takeover, cutting };
    let pieces = stream::unfold(Some(body), |body| async move {
        let mut body = body?;
        match body.next().await {
            Ok(Next::Piece(piece)) => Some((Ok(piece), Some(body))),
            Ok(Next::Live(takeover, likeness)) => {
                // What is read there is shared.
                body.feed.give_frames(None);
                takeover.serve(likeness, body.feed, body.wire).await;
                drop(body.cutting);
                // The connection is not the framework's any more.
                pending().await
            }
            Ok(Next::End) => None,
            Err(error) => {
                cut_short::feed(&body.feed, &error);
                Some((Err(error), None))
            }
        }
    });
    saying_why(pieces, move |error| failing.failure(error))
}

struct Body<S: Source, W> {
    feed: Feed<S>,
    wire: W,
    pieces: Pieces,
    takeover: Option<Takeover>,
    /// Of a client that does not read, the body is not asked for more.
    cutting: Cutting,
}

enum Next {
    Piece(Bytes),
    /// What is left can be served elsewhere.
    Live(Takeover, Likeness),
    End,
}

impl<S: Source, W: Wire> Body<S, W> {
    async fn next(&mut self) -> Result<Next, Error> {
        loop {
            if let Some(piece) = self.pieces.take() {
                self.feed.sent(piece.len());
                return Ok(Next::Piece(piece));
            }
            if self.takeover.is_some()
                && let Some(likeness) = self.feed.likeness()
                && let Some(takeover) = self.takeover.take()
            {
                return Ok(Next::Live(takeover, likeness));
            }
            match self.feed.next().await? {
                Some(event) => self.add(event),
                None => return Ok(Next::End),
            }
        }
    }

    fn add(&mut self, event: FeedEvent<S::Row>) {
        let (format, shape) = (self.feed.seq_format(), self.feed.options().shape);
        match event {
            FeedEvent::Change(Portion::Rows(rows)) => {
                rows.iter().for_each(|row| self.wire.add_row(&**row, shape, &mut self.pieces));
            }
            FeedEvent::Change(Portion::Frames(frames)) => self.wire.add_frames(&frames, &mut self.pieces),
            other => self.pieces.add(self.wire.notice(format, &other)),
        }
    }
}
