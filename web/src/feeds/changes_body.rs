//! The bytes of `_changes` and `_db_updates`.
//!
//! Source: CouchDB `chttpd_db:changes_callback`, `global_changes_httpd:changes_callback`.

use bytes::Bytes;
use futures_util::{Stream, stream};
use seqtide::storage::model::sequence::Sequence;
use seqtide::{Documents, Error, Feed, FeedEvent, FeedRow, FrameForm, Source};

use super::cut_short::saying_why;
use super::pieces::Pieces;

/// The shape of the whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{"results":[…],"last_seq":…}`: normal and longpoll.
    Object,
    /// A row a line: continuous.
    Lines,
    /// Server-Sent Events.
    EventSource,
}

impl Form {
    /// How rows stand in the answer.
    pub fn frames(self) -> FrameForm {
        match self {
            Form::Object => FrameForm::List { between: BETWEEN_ROWS },
            Form::Lines => FrameForm::Lines,
            Form::EventSource => FrameForm::Sse,
        }
    }

    /// The answer's content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Object | Form::Lines => "application/json",
            Form::EventSource => "text/event-stream",
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

/// A feed's answer, piece by piece. When the disk cannot be read, it says why and is cut short: that is the only sign
/// that no client takes for data.
pub fn stream<S: Source>(feed: Feed<S>, form: Form, extras: Extras) -> impl Stream<Item = Result<Bytes, Error>> {
    let rows_left = feed.options().limit.unwrap_or(NO_LIMIT);
    let mut pieces = Pieces::default();
    if form == Form::Object {
        pieces.add(Bytes::from_static(b"{\"results\":[\n"));
    }
    let body = ChangesBody { feed, pieces, form, extras, rows_left, any_row: false };
    let pieces = stream::unfold(Some(body), |body| async move {
        let mut body = body?;
        match body.next_piece().await {
            Ok(Some(piece)) => {
                body.feed.metrics().bytes(piece.len());
                Some((Ok(piece), Some(body)))
            }
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    saying_why(pieces, move |error| match form {
        Form::Object | Form::Lines => format!("\n{{{}}}\n", error.members()),
        Form::EventSource => format!("event: error\ndata: {{{}}}\n\n", error.members()),
    })
}

struct ChangesBody<S: Source = Documents> {
    feed: Feed<S>,
    pieces: Pieces,
    form: Form,
    extras: Extras,
    rows_left: u64,
    any_row: bool,
}

impl<S: Source> ChangesBody<S> {
    async fn next_piece(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(piece) = self.pieces.take() {
                return Ok(Some(piece));
            }
            match self.feed.next().await? {
                Some(event) => self.encode(event),
                None => return Ok(None),
            }
        }
    }

    fn encode(&mut self, event: FeedEvent<S::Row>) {
        self.pieces.add(match (event, self.form) {
            (FeedEvent::Rows(rows), _) => return self.encode_rows(&rows),
            (FeedEvent::Frames(frames), _) => {
                self.begin_rows();
                return self.pieces.add(frames.bytes());
            }
            (FeedEvent::Waiting, _) | (FeedEvent::Heartbeat { .. }, Form::Object | Form::Lines) => {
                Bytes::from_static(b"\n")
            }
            (FeedEvent::Heartbeat { .. }, Form::EventSource) => Bytes::from_static(b"event: heartbeat\ndata: \n\n"),
            (FeedEvent::End { seq, pending, .. }, Form::Object) => {
                format!("\n],\n{}}}\n\n", self.last_seq(seq, pending)).into()
            }
            (FeedEvent::End { seq, pending, .. }, Form::Lines) => {
                format!("{{{}}}\n\n", self.last_seq(seq, pending)).into()
            }
            (FeedEvent::End { .. }, Form::EventSource) => Bytes::from_static(b"\n"),
            (FeedEvent::CaughtUp { .. } | FeedEvent::Rewind { .. }, _) => return,
        });
    }

    fn last_seq(&self, seq: Sequence, pending: u64) -> String {
        let seq = self.feed.seq_format().json(seq);
        if self.extras.pending {
            format!("\"last_seq\":{seq},\"pending\":{pending}")
        } else {
            format!("\"last_seq\":{seq}")
        }
    }

    fn encode_rows(&mut self, rows: &[std::sync::Arc<S::Row>]) {
        let shape = self.feed.options().shape;
        for row in rows {
            let has_seq = self.extras.seq_interval.is_none_or(|interval| self.rows_left.is_multiple_of(interval));
            self.rows_left = self.rows_left.saturating_sub(1);
            self.begin_rows();
            if !has_seq {
                self.encode_without_seq(row);
                continue;
            }
            let frame = row.frame(shape);
            self.pieces.add(match self.form {
                Form::Object => frame.json(),
                Form::Lines => frame.line(),
                Form::EventSource => frame.sse(),
            });
        }
    }

    /// Sets what follows apart from the rows before it.
    fn begin_rows(&mut self) {
        if self.form == Form::Object && std::mem::replace(&mut self.any_row, true) {
            self.pieces.add(Bytes::from_static(BETWEEN_ROWS.as_bytes()));
        }
    }

    fn encode_without_seq(&mut self, row: &S::Row) {
        let mut json = Vec::new();
        row.write_without_seq(&mut json, self.feed.options().shape);
        let (before, after): (&[u8], &[u8]) = match self.form {
            Form::Object => (b"", b""),
            Form::Lines => (b"", b"\n"),
            Form::EventSource => (b"data: ", b"\nid: null\n\n"),
        };
        self.pieces.add(Bytes::from_static(before));
        self.pieces.add(json.into());
        self.pieces.add(Bytes::from_static(after));
    }
}
