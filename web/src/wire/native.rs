//! The native door's events, the same on SSE, WebSocket and lines: a row is itself, everything else is
//! `{"event":NAME,"seq":N,…}`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seqtide::storage::model::sequence::{SeqFormat, Sequence};
use seqtide::{EndReason, Extent, Feed, FeedEvent, FeedRow, FrameForm, Lag, Portion, RowShape, Source};

use super::Wire;
use super::form::Form;
use super::framing::Framing;
use super::pieces::Pieces;
use crate::error::ApiError;

/// Something to send.
pub enum Item<R> {
    /// Rows.
    Rows(Vec<Arc<R>>, RowShape),
    /// Anything else.
    Event(Event),
}

/// An event: its name, its place, and its JSON.
pub struct Event {
    name: &'static str,
    /// The place to resume from, as text.
    id: String,
    json: String,
    /// When a browser comes back by itself behind the end: of one that says that the feed ends shortly.
    pub retry: Option<Duration>,
    /// Set on the last event.
    pub end: Option<EndReason>,
}

/// What is sent of an event, if anything is.
pub fn item<S: Source>(feed: &Feed<S>, event: FeedEvent<S::Row>) -> Option<Item<S::Row>> {
    match event {
        FeedEvent::Change(Portion::Rows(rows)) => Some(Item::Rows(rows, feed.options().shape)),
        other => event_of(feed.seq_format(), &other).map(Item::Event),
    }
}

/// What is said of an event that is no rows.
fn event_of<R>(format: SeqFormat, event: &FeedEvent<R>) -> Option<Event> {
    let make = |name, seq, more: String, end| {
        let json = format!("{{\"event\":\"{name}\",\"seq\":{}{more}}}", format.json(seq));
        Some(Event { name, id: format.plain(seq).to_string(), json, retry: None, end })
    };
    match event {
        FeedEvent::Change(_) => None,
        FeedEvent::CaughtUp { seq } => make("caught-up", *seq, String::new(), None),
        FeedEvent::Heartbeat { seq, pending } => make("heartbeat", *seq, format!(",\"pending\":{pending}"), None),
        FeedEvent::Lagging { seq, lag: Lag { rows, seconds } } => {
            let seconds = seconds.map_or("null".to_owned(), |seconds| seconds.to_string());
            make("lagging", *seq, format!(",\"rows\":{rows},\"seconds\":{seconds}"), None)
        }
        FeedEvent::Live { seq } => make("live", *seq, String::new(), None),
        FeedEvent::SnapshotEnd { seq } => make("snapshot-end", *seq, String::new(), None),
        FeedEvent::Open { seq, extent, heartbeat } => {
            make("opened", *seq, members_of(format, extent, *heartbeat), None)
        }
        FeedEvent::Rewind { since, extent, heartbeat } => {
            let (since, members) = (format.json(*since), members_of(format, extent, *heartbeat));
            let reason = "`since` is ahead of all there is: the feed starts again from the beginning";
            make("rewind", Sequence::ZERO, format!("{members},\"since\":{since},\"reason\":\"{reason}\""), None)
        }
        FeedEvent::Draining { seq, retry } => {
            let event = make("draining", *seq, format!(",\"retry\":{}", retry.as_millis()), None)?;
            Some(Event { retry: Some(*retry), ..event })
        }
        FeedEvent::End { reason, seq, .. } => {
            make("end", *seq, format!(",\"reason\":\"{}\"", reason.name()), Some(*reason))
        }
    }
}

/// What the first event says of a feed: what there is, and how often it gives a sign of life.
fn members_of(format: SeqFormat, extent: &Extent, heartbeat: Option<Duration>) -> String {
    let (oldest, update) = (format.json(extent.oldest_seq), format.json(extent.update_seq));
    let heartbeat = heartbeat.map(|every| format!(",\"heartbeat\":{}", every.as_millis())).unwrap_or_default();
    format!(",\"oldest_seq\":{oldest},\"update_seq\":{update}{heartbeat}")
}

impl Event {
    /// Its JSON, an object.
    pub fn json(&self) -> Bytes {
        Bytes::copy_from_slice(self.json.as_bytes())
    }

    fn sse(&self) -> String {
        let retry = self.retry.map(|retry| format!("retry: {}\n", retry.as_millis())).unwrap_or_default();
        format!("event: {}\ndata: {}\nid: {}\n{retry}\n", self.name, self.json, self.id)
    }
}

impl Wire for Form {
    fn framing(&self) -> Framing {
        if *self == Form::Websocket { Framing::Messages } else { Framing::Chunks }
    }

    fn add_row<R: FeedRow>(&mut self, row: &R, shape: RowShape, out: &mut impl Extend<Bytes>) {
        let frame = row.frame(shape);
        out.extend([match self {
            Form::Sse => frame.sse(),
            Form::Lines => frame.line(),
            Form::Websocket => frame.json(),
        }]);
    }

    fn frames(&self) -> Option<FrameForm> {
        match self {
            Form::Sse => Some(FrameForm::Sse),
            Form::Lines => Some(FrameForm::Lines),
            Form::Websocket => None,
        }
    }

    fn notice<R>(&self, format: SeqFormat, event: &FeedEvent<R>) -> Bytes {
        let Some(event) = event_of(format, event) else { return Bytes::new() };
        match self {
            Form::Sse => event.sse().into(),
            Form::Lines => format!("{}\n", event.json).into(),
            Form::Websocket => event.json.into(),
        }
    }

    fn failure(&self, error: &ApiError) -> String {
        match self {
            Form::Sse => format!("event: error\ndata: {}\n\n", failure(error)),
            Form::Lines => format!("{}\n", failure(error)),
            Form::Websocket => failure(error),
        }
    }
}

impl<R: FeedRow> Item<R> {
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
            Item::Event(event) => out.add(format!("[{}", event.json).into()),
        }
        out.add(Bytes::from_static(b"]"));
        out
    }

    /// Why the feed ends with this, if it does.
    pub fn end(&self) -> Option<EndReason> {
        match self {
            Item::Event(event) => event.end,
            Item::Rows(..) => None,
        }
    }
}

/// The last event of a feed that cannot go on. It has no place of its own: whoever resumes does so where it stood.
pub fn failure(error: &ApiError) -> String {
    format!("{{\"event\":\"error\",{}}}", error.members())
}
