//! Doors whose items come in the body of an HTTP answer.

use std::collections::VecDeque;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;

use super::{Door, Item};
use crate::Database;
use crate::http::{Request, escaped};
use crate::sse::{SseEvent, SseParser};

/// A feed read from the body of an answer.
pub struct HttpDoor {
    name: &'static str,
    database: Database,
    path: &'static str,
    options: String,
    framing: Framing,
}

/// How items stand in the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Lines,
    Events,
}

impl HttpDoor {
    /// `_changes?feed=continuous`; `options` as a query, without `since`.
    pub fn continuous(database: &Database, options: &str) -> HttpDoor {
        HttpDoor::new("continuous", database, "/_changes", &format!("feed=continuous&{options}"), Framing::Lines)
    }

    /// `_changes?feed=eventsource`, resumed by `Last-Event-ID` as a browser does.
    pub fn eventsource(database: &Database, options: &str) -> HttpDoor {
        HttpDoor::new("eventsource", database, "/_changes", &format!("feed=eventsource&{options}"), Framing::Events)
    }

    /// `_feed` as server-sent events, resumed by `Last-Event-ID` as a browser does.
    pub fn sse(database: &Database, options: &str) -> HttpDoor {
        HttpDoor::new("_feed over SSE", database, "/_feed", options, Framing::Events)
    }

    /// `_feed` as lines.
    pub fn lines(database: &Database, options: &str) -> HttpDoor {
        HttpDoor::new("_feed over lines", database, "/_feed", options, Framing::Lines)
    }

    fn new(name: &'static str, database: &Database, path: &'static str, options: &str, framing: Framing) -> HttpDoor {
        HttpDoor { name, database: database.clone(), path, options: options.to_owned(), framing }
    }

    fn request(&self, since: Option<&str>) -> Request {
        let HttpDoor { path, options, .. } = self;
        match (self.framing, since) {
            (Framing::Lines, _) => {
                let since = escaped(since.unwrap_or("0"));
                self.database.get(&format!("{path}?{options}&since={since}"))
            }
            (Framing::Events, None) => self.events_from_the_start(),
            (Framing::Events, Some(id)) => self.events_from_the_start().header("last-event-id", id),
        }
    }

    fn events_from_the_start(&self) -> Request {
        let HttpDoor { path, options, .. } = self;
        self.database.get(&format!("{path}?{options}&since=0")).header("accept", "text/event-stream")
    }
}

impl Door for HttpDoor {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(&self, since: Option<String>, cut: usize) -> BoxFuture<'_, BoxStream<'static, Item>> {
        async move {
            let opened = self.request(since.as_deref()).open().await;
            assert_eq!(opened.status(), 200, "{} from {since:?}", self.name);
            let decoder = match self.framing {
                Framing::Lines => Decoder::Lines(Vec::new()),
                Framing::Events => Decoder::Events(SseParser::default()),
            };
            let reader = Reader { body: opened.into_stream().boxed(), left: cut, decoder, ready: VecDeque::new() };
            stream::unfold(reader, |mut reader| async { reader.next().await.map(|item| (item, reader)) }).boxed()
        }
        .boxed()
    }
}

struct Reader {
    body: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    left: usize,
    decoder: Decoder,
    ready: VecDeque<Item>,
}

impl Reader {
    async fn next(&mut self) -> Option<Item> {
        while self.ready.is_empty() && self.left > 0 {
            // A body that breaks off (a killed server) is cut like any other.
            let piece = self.body.next().await?.ok()?;
            let taken = piece.len().min(self.left);
            self.left -= taken;
            self.ready.extend(self.decoder.push(&piece[..taken]));
        }
        self.ready.pop_front()
    }
}

enum Decoder {
    Lines(Vec<u8>),
    Events(SseParser),
}

impl Decoder {
    fn push(&mut self, bytes: &[u8]) -> Vec<Item> {
        match self {
            Decoder::Lines(unread) => {
                unread.extend_from_slice(bytes);
                complete_lines(unread)
            }
            Decoder::Events(parser) => parser.push(bytes).into_iter().map(item_of_event).collect(),
        }
    }
}

/// Takes the whole lines off the front of `unread`; empty ones are heartbeats without content.
fn complete_lines(unread: &mut Vec<u8>) -> Vec<Item> {
    let Some(end) = unread.iter().rposition(|&byte| byte == b'\n') else {
        return Vec::new();
    };
    let complete: Vec<u8> = unread.drain(..=end).collect();
    let lines = complete.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Item::from_json(json(line))).collect()
}

fn item_of_event(event: SseEvent) -> Item {
    if event.name != "message" {
        let body = if event.data.is_empty() { Value::Null } else { json(event.data.as_bytes()) };
        return Item::Event { name: event.name, token: event.id, body };
    }
    let token = event.id.unwrap_or_else(|| panic!("a row without id: {}", event.data));
    Item::Row { token, row: json(event.data.as_bytes()) }
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(text)))
}
