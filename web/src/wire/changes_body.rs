//! The bytes of `_changes` and `_db_updates`.
//!
//! Source: CouchDB `chttpd_db:changes_callback`, `global_changes_httpd:changes_callback`.

use bytes::Bytes;
use seqtide::storage::model::sequence::{SeqFormat, Sequence};
use seqtide::{EndReason, FeedEvent, FeedRow, FrameForm, Frames, Portion, RowShape};

use super::Wire;
use super::draining;
use crate::error::ApiError;

/// The shape of the whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{"results":[…],"last_seq":…}`: normal and longpoll.
    Object,
    /// A row a line: continuous.
    Lines,
    /// Server-Sent Events.
    EventSource,
}

impl Shape {
    /// What comes before everything.
    pub fn opening(self) -> Bytes {
        Bytes::from_static(if self == Shape::Object { b"{\"results\":[\n" } else { b"" })
    }

    /// The answer's content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Shape::Object | Shape::Lines => "application/json",
            Shape::EventSource => "text/event-stream",
        }
    }
}

/// What the answer says besides rows, of what the two feeds do not have in common.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    /// Rows whose number from the end of the limit is no multiple of this have no `seq`.
    pub seq_interval: Option<u64>,
    /// Whether the end says how many rows lie behind it.
    pub pending: bool,
}

/// What stands between two rows of an object.
const BETWEEN_ROWS: &str = ",\r\n";

/// CouchDB's limit where none is given: `seq_interval` counts down from it.
const NO_LIMIT: u64 = 1_000_000_000_000_000;

/// The bytes of one answer.
#[derive(Debug, Clone)]
pub struct Changes {
    shape: Shape,
    extras: Extras,
    rows_left: u64,
    any_row: bool,
}

impl Changes {
    /// The bytes of an answer with at most so many rows.
    pub fn new(shape: Shape, extras: Extras, limit: Option<u64>) -> Changes {
        Changes { shape, extras, rows_left: limit.unwrap_or(NO_LIMIT), any_row: false }
    }

    /// Sets what follows apart from the rows before it.
    fn begin_rows(&mut self, out: &mut impl Extend<Bytes>) {
        if self.shape == Shape::Object && std::mem::replace(&mut self.any_row, true) {
            out.extend([Bytes::from_static(BETWEEN_ROWS.as_bytes())]);
        }
    }

    fn last_seq(&self, format: SeqFormat, seq: Sequence, pending: Option<u64>) -> String {
        let seq = format.json(seq);
        if let Some(pending) = pending.filter(|_| self.extras.pending) {
            format!("\"last_seq\":{seq},\"pending\":{pending}")
        } else {
            format!("\"last_seq\":{seq}")
        }
    }

    fn add_without_seq<R: FeedRow>(&self, row: &R, row_shape: RowShape, out: &mut impl Extend<Bytes>) {
        let mut json = Vec::new();
        row.write_without_seq(&mut json, row_shape);
        let (before, after): (&[u8], &[u8]) = match self.shape {
            Shape::Object => (b"", b""),
            Shape::Lines => (b"", b"\n"),
            Shape::EventSource => (b"data: ", b"\nid: null\n\n"),
        };
        out.extend([Bytes::from_static(before), json.into(), Bytes::from_static(after)]);
    }
}

impl Wire for Changes {
    fn is_alike_for_all(&self) -> bool {
        self.shape != Shape::Object && self.extras.seq_interval.is_none()
    }

    fn add_row<R: FeedRow>(&mut self, row: &R, row_shape: RowShape, out: &mut impl Extend<Bytes>) {
        let has_seq = self.extras.seq_interval.is_none_or(|interval| self.rows_left.is_multiple_of(interval));
        self.rows_left = self.rows_left.saturating_sub(1);
        self.begin_rows(out);
        if !has_seq {
            return self.add_without_seq(row, row_shape, out);
        }
        let frame = row.frame(row_shape);
        out.extend([match self.shape {
            Shape::Object => frame.json(),
            Shape::Lines => frame.line(),
            Shape::EventSource => frame.sse(),
        }]);
    }

    /// A row without its `seq` has other bytes.
    fn frames(&self) -> Option<FrameForm> {
        let form = match self.shape {
            Shape::Object => FrameForm::List { between: BETWEEN_ROWS },
            Shape::Lines => FrameForm::Lines,
            Shape::EventSource => FrameForm::Sse,
        };
        self.extras.seq_interval.is_none().then_some(form)
    }

    fn add_frames(&mut self, frames: &Frames, out: &mut impl Extend<Bytes>) {
        self.begin_rows(out);
        out.extend([frames.bytes()]);
    }

    fn notice<R>(&self, format: SeqFormat, event: &FeedEvent<R>) -> Bytes {
        match (event, self.shape) {
            (FeedEvent::Change(Portion::Nothing), _) | (FeedEvent::Heartbeat { .. }, Shape::Object | Shape::Lines) => {
                Bytes::from_static(b"\n")
            }
            (FeedEvent::Heartbeat { .. }, Shape::EventSource) => Bytes::from_static(b"event: heartbeat\ndata: \n\n"),
            (FeedEvent::End { seq, pending, .. }, Shape::Object) => {
                format!("\n],\n{}}}\n\n", self.last_seq(format, *seq, *pending)).into()
            }
            // A browser waits by itself, where it would not get through to a server that is not there yet.
            (FeedEvent::Draining { retry, .. }, Shape::EventSource) => {
                draining::come_back(*retry, draining::EVENT).into()
            }
            // Whoever reads a `last_seq` here takes it for the end of all; without it for a connection that broke.
            (FeedEvent::End { reason: EndReason::Shutdown, .. }, Shape::Lines) => Bytes::new(),
            (FeedEvent::End { seq, pending, .. }, Shape::Lines) => {
                format!("{{{}}}\n\n", self.last_seq(format, *seq, *pending)).into()
            }
            (FeedEvent::End { .. }, Shape::EventSource) => Bytes::from_static(b"\n"),
            // The rest is the native door's.
            _ => Bytes::new(),
        }
    }

    /// CouchDB's replicator takes any object without `changes` for the last line. Source: CouchDB
    /// `chttpd:send_delayed_error`.
    fn failure(&self, _error: &ApiError) -> String {
        String::new()
    }
}
