//! A client over SSE that does what a browser's `EventSource` does: it knows its request and the last `id:`.

use std::collections::VecDeque;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::time::timeout;

use seqtide_tests::Api;
use seqtide_tests::http::{Answer, SOON, escaped};
use seqtide_tests::sse::SseParser;

/// An open connection.
pub struct Client {
    api: Api,
    pieces: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    parser: SseParser,
    items: VecDeque<Value>,
    /// The last `id:` of a whole event.
    pub last_event_id: Option<String>,
    /// Its own id, with which its subscriptions are changed.
    pub connection: String,
}

impl Client {
    /// Opens one with these subscriptions in its URL.
    pub async fn open(api: &Api, subscriptions: &Value) -> Client {
        let client = Client::try_open(api, &url(subscriptions), None).await;
        client.unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Opens `url`, coming back with an id if there is one.
    ///
    /// # Errors
    /// When the server is away, or goes away before it has said anything.
    pub async fn try_open(api: &Api, url: &str, last_event_id: Option<String>) -> Result<Client, String> {
        let mut request = api.get(url).header("accept", "text/event-stream");
        if let Some(id) = &last_event_id {
            request = request.header("last-event-id", id);
        }
        let answer = request.try_open().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        if status != 200 {
            let body = answer.to_end().await;
            panic!("{url} answered {status}: {}", body.text());
        }
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let mut client = Client {
            api: api.clone(),
            pieces: answer.into_stream().boxed(),
            parser: SseParser::default(),
            items: VecDeque::new(),
            last_event_id,
            connection: String::new(),
        };
        let first = client.next().await.ok_or("it is over before it began")?;
        assert_eq!(first["event"], "connection", "{first}");
        first["id"].as_str().expect("an id").clone_into(&mut client.connection);
        Ok(client)
    }

    /// The next row or event; `None` when the connection is over or cut.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            let piece = timeout(SOON, self.pieces.next()).await.expect("something in time")?.ok()?;
            for event in self.parser.push(&piece) {
                assert_eq!(event.name, "message", "events are unnamed");
                let items: Vec<Value> = serde_json::from_str(&event.data).expect("a list");
                assert!(!items.is_empty(), "never nothing");
                self.items.extend(items);
                self.last_event_id = event.id;
            }
        }
    }

    /// Reads up to the item that `is_last` names, and gives all.
    pub async fn until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut items = Vec::new();
        loop {
            let Some(item) = self.next().await else { panic!("it is over after {items:?}") };
            items.push(item);
            if items.last().is_some_and(&is_last) {
                return items;
            }
        }
    }

    /// Asks for changes of its subscriptions.
    pub async fn change(&self, change: &Value) -> Answer {
        self.api.post(&format!("/_feed/{}", self.connection)).json(change).send().await
    }
}

/// Where a connection with these subscriptions is opened.
pub fn url(subscriptions: &Value) -> String {
    url_with(1000, subscriptions)
}

/// The same with a heartbeat of so many milliseconds.
pub fn url_with(heartbeat: u64, subscriptions: &Value) -> String {
    format!("/_feed/many?heartbeat={heartbeat}&subscriptions={}", escaped(&subscriptions.to_string()))
}

/// Whether an item is this event of this subscription.
pub fn is(item: &Value, event: &str, sub: &str) -> bool {
    item["event"] == event && item["sub"] == sub
}
