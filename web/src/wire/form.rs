//! How a client is given feeds at the native door, whether one or many on a connection.

use std::time::Duration;

use actix_web::HttpRequest;
use bytes::Bytes;
use seqtide::FeedKind;

use crate::accept::{wants_events, wants_websocket};

/// How rows and events are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Server-Sent Events; each has an `id:`.
    Sse,
    /// A JSON object a line.
    Lines,
    /// Messages of a WebSocket, each a JSON array.
    Websocket,
}

impl Form {
    /// What a request asks for.
    pub fn of(req: &HttpRequest) -> Form {
        if wants_websocket(req) {
            Form::Websocket
        } else if wants_events(req) {
            Form::Sse
        } else {
            Form::Lines
        }
    }

    /// What its feeds are counted as.
    pub fn kind(self) -> FeedKind {
        match self {
            Form::Sse => FeedKind::Sse,
            Form::Lines => FeedKind::Lines,
            Form::Websocket => FeedKind::Websocket,
        }
    }

    /// Whether what is sent has ids, with which a client comes back.
    pub fn has_ids(self) -> bool {
        self == Form::Sse
    }

    /// The content type of the answer that a feed is; a WebSocket has none.
    pub fn content_type(self) -> &'static str {
        if self == Form::Sse { "text/event-stream" } else { "application/x-ndjson" }
    }

    /// What comes before everything, as a part of the first event: when a browser comes back by itself if its
    /// connection breaks. Not every client passes over an event of nothing else.
    pub fn opening(self, comeback: Duration) -> Bytes {
        if self == Form::Sse { format!("retry: {}\n", comeback.as_millis()).into() } else { Bytes::new() }
    }
}
