//! The bytes of `_changes`.
//!
//! Source: CouchDB `chttpd_db:changes_callback`.

use bytes::Bytes;
use futures_util::{Stream, stream};
use seqtide::{Error, Feed, FeedEvent, Row, write_row};

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
    /// The answer's content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Object | Form::Lines => "application/json",
            Form::EventSource => "text/event-stream",
        }
    }
}

/// CouchDB's limit where none is given: `seq_interval` counts down from it.
const NO_LIMIT: u64 = 1_000_000_000_000_000;

/// A feed's answer, piece by piece. It ends with an error when the disk cannot be read: a chunked body cut short is
/// the only sign that no client takes for data.
pub fn stream(feed: Feed, form: Form, seq_interval: Option<u64>) -> impl Stream<Item = Result<Bytes, Error>> {
    let rows_left = feed.options().limit.unwrap_or(NO_LIMIT);
    let mut pieces = Pieces::default();
    if form == Form::Object {
        pieces.add(Bytes::from_static(b"{\"results\":[\n"));
    }
    let body = ChangesBody { feed, pieces, form, seq_interval, rows_left, any_row: false };
    stream::unfold(Some(body), |body| async move {
        let mut body = body?;
        match body.next_piece().await {
            Ok(Some(piece)) => {
                body.feed.metrics().bytes(piece.len());
                Some((Ok(piece), Some(body)))
            }
            Ok(None) => None,
            Err(error) => {
                tracing::error!(%error, "a feed is cut short");
                Some((Err(error), None))
            }
        }
    })
}

struct ChangesBody {
    feed: Feed,
    pieces: Pieces,
    form: Form,
    seq_interval: Option<u64>,
    rows_left: u64,
    any_row: bool,
}

impl ChangesBody {
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

    fn encode(&mut self, event: FeedEvent) {
        self.pieces.add(match (event, self.form) {
            (FeedEvent::Rows(rows), _) => return self.encode_rows(&rows),
            (FeedEvent::Waiting, _) | (FeedEvent::Heartbeat { .. }, Form::Object | Form::Lines) => {
                Bytes::from_static(b"\n")
            }
            (FeedEvent::Heartbeat { .. }, Form::EventSource) => Bytes::from_static(b"event: heartbeat\ndata: \n\n"),
            (FeedEvent::End { seq, pending, .. }, Form::Object) => {
                let seq = self.feed.seq_format().json(seq);
                format!("\n],\n\"last_seq\":{seq},\"pending\":{pending}}}\n\n").into()
            }
            (FeedEvent::End { seq, pending, .. }, Form::Lines) => {
                let seq = self.feed.seq_format().json(seq);
                format!("{{\"last_seq\":{seq},\"pending\":{pending}}}\n\n").into()
            }
            (FeedEvent::End { .. }, Form::EventSource) => Bytes::from_static(b"\n"),
            (FeedEvent::CaughtUp { .. } | FeedEvent::Rewind { .. }, _) => return,
        });
    }

    fn encode_rows(&mut self, rows: &[std::sync::Arc<Row>]) {
        let shape = self.feed.options().shape;
        for row in rows {
            let has_seq = self.seq_interval.is_none_or(|interval| self.rows_left.is_multiple_of(interval));
            self.rows_left = self.rows_left.saturating_sub(1);
            if self.form == Form::Object && std::mem::replace(&mut self.any_row, true) {
                self.pieces.add(Bytes::from_static(b",\r\n"));
            }
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

    fn encode_without_seq(&mut self, row: &Row) {
        let mut json = Vec::new();
        write_row(&mut json, row.change(), self.feed.options().shape, None);
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
