//! How a server takes documents and gives them out again: Seqtide's way, or that of another that is held beside it.

use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::Error;
use crate::connection::{Connection, request};
use crate::documents::{self, Stamp};
use crate::head::first_line;

/// Seqtide's answer to a request for a feed that has nothing more to send for the moment.
const CAUGHT_UP: &[u8] = br#"{"event":"caught-up""#;

/// What asks for a WebSocket. Whoever answers proves with the key that it speaks the protocol; that it does is not what
/// is measured.
pub(crate) const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2VxdGlkZS1iZW5jaCEhIQ==\r\n";

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
            Transport::Websocket => UPGRADE,
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
        let request = request("PUT", &format!("/{}?seq_format=integer", self.database), "");
        answered(&request, async { Ok(connection) }, pending::<()>()).await
    }

    /// Deletes the database; once that is asked for, its answer is waited for only until `interrupted`.
    ///
    /// # Errors
    /// As [`Seqtide::create`], when it does not listen, and when that is interrupted.
    pub async fn delete(&self, interrupted: impl Future) -> Result<(), Error> {
        let request = request("DELETE", &format!("/{}", self.database), "");
        answered(&request, Connection::open(self.address), interrupted).await
    }
}

/// Sends a request, whether its answer is waited for or not, and so has to end by itself.
async fn answered(
    request: &str,
    connection: impl Future<Output = Result<Connection, Error>>,
    interrupted: impl Future,
) -> Result<(), Error> {
    let unknown = format!("{}, which may be done all the same,", first_line(request.as_bytes()));
    let answer = async {
        let mut connection = connection.await?;
        connection.send(request.as_bytes()).await?;
        tokio::select! {
            answer = connection.answer(request.as_bytes()) => answer.map(drop),
            _ = interrupted => Err(Error::Interrupted(format!("{unknown} was not waited for"))),
        }
    };
    let late = |_| Error::Late { what: unknown.clone(), limit: ANSWER_MAX };
    timeout(ANSWER_MAX, answer).await.map_err(late)?
}
