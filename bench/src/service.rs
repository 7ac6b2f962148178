//! How a server takes documents and gives them out again: Seqtide's way, or that of another that is held beside it.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::Error;
use crate::connection::Connection;
use crate::documents::{self, Stamp};

/// Seqtide's answer to a request for a feed that has nothing more to send for the moment.
const CAUGHT_UP: &[u8] = br#"{"event":"caught-up""#;

/// How long a database may take to be made or deleted.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A server, and the words it understands.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, where that is on this machine and its processor time and memory are to be measured.
    pub pid: Option<u32>,
    /// How documents are written to it.
    pub publish: Publish,
    /// How a feed of them is opened.
    pub feed: FeedRequest,
}

/// How a document is written.
#[derive(Debug, Clone)]
pub enum Publish {
    /// With a `PUT` of its own, to its id below this path.
    Put(String),
    /// With a `POST` to this path.
    Post {
        /// Where it is sent.
        path: String,
        /// What it is called there.
        content_type: &'static str,
    },
}

impl Publish {
    /// Writes the request for a document.
    pub fn write(&self, stamp: Stamp, into: &mut Vec<u8>) {
        match self {
            Publish::Put(path) => documents::write_put(path, stamp, into),
            Publish::Post { path, content_type } => documents::write_post(path, content_type, stamp, into),
        }
    }
}

/// How a feed is opened.
#[derive(Debug, Clone)]
pub struct FeedRequest {
    /// The request as it is sent.
    pub bytes: Vec<u8>,
    /// What the server sends once nothing that is written from then on can be missed; empty: the head of its answer.
    pub live: &'static [u8],
    /// Whether each document comes in a row that begins with its place in the one order there is, as `{"seq":1,…`.
    pub has_sequences: bool,
}

/// What carries a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Server-Sent Events
    Sse,
    /// A WebSocket
    Websocket,
    /// A line a change
    Lines,
}

impl Transport {
    /// The request for a feed at a path.
    pub fn request(self, path: &str) -> Vec<u8> {
        let more = match self {
            Transport::Sse => "Accept: text/event-stream\r\n",
            Transport::Lines => "Accept: application/x-ndjson\r\n",
            // Whoever answers proves with the key that it speaks the protocol; that it does is not what is measured.
            Transport::Websocket => {
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2VxdGlkZS1iZW5jaCEhIQ==\r\n"
            }
        };
        format!("GET {path} HTTP/1.1\r\nHost: bench\r\n{more}\r\n").into_bytes()
    }
}

/// What a load asks of a Seqtide.
#[derive(Debug, Clone, Copy)]
pub struct Seqtide<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, where that is on this machine and is to be measured.
    pub pid: Option<u32>,
    /// The name of the database that the load makes for itself.
    pub database: &'a str,
    /// What carries its feeds.
    pub transport: Transport,
    /// Milliseconds between heartbeats.
    pub heartbeat_ms: u64,
}

impl Seqtide<'_> {
    /// The service: live feeds with documents from now on.
    pub fn service(&self) -> Service {
        let Seqtide { address, pid, database, transport, heartbeat_ms } = *self;
        let path = format!("/{database}/_feed?since=now&include_docs=true&heartbeat={heartbeat_ms}");
        let feed = FeedRequest { bytes: transport.request(&path), live: CAUGHT_UP, has_sequences: true };
        Service { address, pid, publish: Publish::Put(format!("/{database}")), feed }
    }

    /// Makes the database, over a connection that has carried nothing yet.
    ///
    /// # Errors
    /// When the server refuses, or does not answer within half a minute.
    pub async fn create(&self, connection: Connection) -> Result<(), Error> {
        answered("PUT", &format!("/{}?seq_format=integer", self.database), async { Ok(connection) }).await
    }

    /// Deletes the database.
    ///
    /// # Errors
    /// As [`Seqtide::create`], and when it does not listen.
    pub async fn delete(&self) -> Result<(), Error> {
        answered("DELETE", &format!("/{}", self.database), Connection::open(self.address)).await
    }
}

/// Sends a request that no signal breaks off, and so has to end by itself.
async fn answered(
    method: &str,
    path: &str,
    connection: impl Future<Output = Result<Connection, Error>>,
) -> Result<(), Error> {
    let answer = async { connection.await?.request(method, path, "").await.map(drop) };
    let late = |_| Error::Late { what: format!("{method} {path}, which may be done all the same,"), limit: ANSWER_MAX };
    timeout(ANSWER_MAX, answer).await.map_err(late)?
}
