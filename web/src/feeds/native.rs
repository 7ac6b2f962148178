//! The native door's events, the same on SSE, WebSocket and lines: a row is itself, everything else is
//! `{"event":NAME,"seq":N,…}`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};
use seqtide::storage::model::sequence::Sequence;
use seqtide::{EndReason, Error, Feed, FeedEvent, FeedKind, FeedRow, FrameForm, Frames, RowShape, Source};

use super::cut_short::saying_why;
use super::pieces::Pieces;
use crate::error::ApiError;

/// How a streaming answer carries events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Server-Sent Events; each has an `id:`.
    Sse,
    /// A JSON object a line.
    Lines,
}

/// How rows stand in what a feed of this kind sends.
pub fn frames(kind: FeedKind) -> FrameForm {
    match kind {
        FeedKind::Sse => FrameForm::Sse,
        FeedKind::Websocket => FrameForm::List { between: "," },
        _ => FrameForm::Lines,
    }
}

/// Something to send.
pub enum Item<R> {
    /// Rows.
    Rows(Vec<Arc<R>>, RowShape),
    /// Rows as bytes alone.
    Frames(Frames),
    /// Anything else.
    Event(Event),
}

/// An event: its name, its place, and its JSON.
pub struct Event {
    name: &'static str,
    /// The place to resume from, as text.
    id: String,
    json: String,
    /// Set on the last event.
    pub end: Option<EndReason>,
}

/// Waits for what the native door sends next; `None` after the end.
///
/// # Errors
/// As [`Feed::next`].
pub async fn next<S: Source>(feed: &mut Feed<S>) -> Result<Option<Item<S::Row>>, Error> {
    while let Some(event) = feed.next().await? {
        if let Some(item) = item(feed, event) {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

fn item<S: Source>(feed: &Feed<S>, event: FeedEvent<S::Row>) -> Option<Item<S::Row>> {
    let plain = |name, seq, more: String| Some(Item::Event(make(feed, name, seq, &more, None)));
    match event {
        FeedEvent::Rows(rows) => Some(Item::Rows(rows, feed.options().shape)),
        FeedEvent::Frames(frames) => Some(Item::Frames(frames)),
        FeedEvent::Waiting => None,
        FeedEvent::CaughtUp { seq } => plain("caught-up", seq, String::new()),
        FeedEvent::Heartbeat { seq, pending } => plain("heartbeat", seq, format!(",\"pending\":{pending}")),
        FeedEvent::Rewind { since } => {
            let since = feed.seq_format().json(since);
            let reason = "`since` is ahead of all there is: the feed starts again from the beginning";
            plain("rewind", Sequence::ZERO, format!(",\"since\":{since},\"reason\":\"{reason}\""))
        }
        FeedEvent::End { reason, seq, .. } => {
            let more = format!(",\"reason\":\"{}\"", reason.name());
            Some(Item::Event(make(feed, "end", seq, &more, Some(reason))))
        }
    }
}

fn make<S: Source>(feed: &Feed<S>, name: &'static str, seq: Sequence, more: &str, end: Option<EndReason>) -> Event {
    let format = feed.seq_format();
    let json = format!("{{\"event\":\"{name}\",\"seq\":{}{more}}}", format.json(seq));
    Event { name, id: format.plain(seq).to_string(), json, end }
}

impl Event {
    fn sse(&self) -> String {
        format!("event: {}\ndata: {}\nid: {}\n\n", self.name, self.json, self.id)
    }
}

impl<R: FeedRow> Item<R> {
    /// Adds the bytes of a streaming answer.
    fn encode(&self, form: Form, out: &mut Pieces) {
        match (self, form) {
            (Item::Rows(rows, shape), _) => {
                for row in rows {
                    let frame = row.frame(*shape);
                    out.add(if form == Form::Sse { frame.sse() } else { frame.line() });
                }
            }
            (Item::Frames(frames), _) => out.add(frames.bytes()),
            (Item::Event(event), Form::Sse) => out.add(event.sse().into()),
            (Item::Event(event), Form::Lines) => out.add(format!("{}\n", event.json).into()),
        }
    }

    /// A WebSocket message: a JSON array of rows and events.
    pub fn message(&self) -> Pieces {
        let mut out = Pieces::default();
        match self {
            Item::Rows(rows, shape) => {
                for (at, row) in rows.iter().enumerate() {
                    out.add(Bytes::from_static(if at == 0 { b"[" } else { b"," }));
                    out.add(row.frame(*shape).json());
                }
            }
            Item::Frames(frames) => {
                out.add(Bytes::from_static(b"["));
                out.add(frames.bytes());
            }
            Item::Event(event) => out.add(format!("[{}", event.json).into()),
        }
        out.add(Bytes::from_static(b"]"));
        out
    }

    /// Why the feed ends with this, if it does.
    pub fn end(&self) -> Option<EndReason> {
        match self {
            Item::Event(event) => event.end,
            Item::Rows(..) | Item::Frames(_) => None,
        }
    }
}

/// A feed's answer as SSE or lines, piece by piece; when the disk cannot be read, an `error` event, then cut short.
pub fn stream<S: Source>(feed: Feed<S>, form: Form) -> impl Stream<Item = Result<Bytes, Error>> {
    let pieces = stream::unfold(Some((feed, Pieces::default())), move |going_on| async move {
        let (mut feed, mut pieces) = going_on?;
        loop {
            if let Some(piece) = pieces.take() {
                feed.metrics().bytes(piece.len());
                return Some((Ok(piece), Some((feed, pieces))));
            }
            match next(&mut feed).await {
                Ok(Some(item)) => item.encode(form, &mut pieces),
                Ok(None) => return None,
                Err(error) => return Some((Err(error), None)),
            }
        }
    });
    saying_why(pieces, move |error| match form {
        Form::Sse => format!("event: error\ndata: {}\n\n", failure(error)),
        Form::Lines => format!("{}\n", failure(error)),
    })
}

/// The last event of a feed that cannot go on. It has no place of its own: whoever resumes does so where it stood.
pub fn failure(error: &ApiError) -> String {
    format!("{{\"event\":\"error\",{}}}", error.members())
}
