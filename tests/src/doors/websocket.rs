//! The WebSocket door, over a socket that can be cut at any byte.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::{Door, Item};
use crate::http::{SOON, escaped};
use crate::{Database, Server};

/// An open WebSocket on `_feed`.
pub struct FeedSocket {
    socket: WebSocketStream<CutSocket>,
}

impl FeedSocket {
    /// Opens `/{database}/_feed?query`; an empty query names no option.
    ///
    /// # Errors
    /// What the server answered instead, when it refuses.
    ///
    /// # Panics
    /// When nothing is answered [`SOON`].
    pub async fn open(url: &str) -> Result<FeedSocket, Box<Error>> {
        let authority = url.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).expect("a ws:// address");
        FeedSocket::over(TcpStream::connect(authority).await.expect("a connection"), url).await
    }

    /// The same over a connection that is there.
    ///
    /// # Errors
    /// As [`FeedSocket::open`].
    ///
    /// # Panics
    /// As [`FeedSocket::open`].
    pub async fn over(socket: TcpStream, url: &str) -> Result<FeedSocket, Box<Error>> {
        let socket = CutSocket { socket, left: usize::MAX };
        let handshake = timeout(SOON, tokio_tungstenite::client_async(url, socket)).await;
        let (socket, _) = handshake.expect("a handshake in time").map_err(Box::new)?;
        Ok(FeedSocket { socket })
    }

    /// The next message, close messages too; pings are answered and skipped. None when the connection is gone.
    ///
    /// # Panics
    /// When nothing comes [`SOON`].
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            let message = timeout(SOON, self.socket.next()).await.expect("a message in time")?;
            match message {
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(message) => return Some(message),
                Err(_) => return None,
            }
        }
    }

    /// The items of the next text message.
    ///
    /// # Panics
    /// When the next message is not a text message.
    pub async fn items(&mut self) -> Vec<Item> {
        match self.next().await {
            Some(Message::Text(text)) => items_of(&text),
            other => panic!("expected a text message, got {other:?}"),
        }
    }

    /// What the next messages carry but for heartbeats, up to the one that completes so many items.
    ///
    /// # Panics
    /// When anything but a text message comes before.
    pub async fn at_least(&mut self, count: usize) -> Vec<Item> {
        let mut items = Vec::new();
        while items.len() < count {
            items.extend(self.items().await.into_iter().filter(|item| !item.is_heartbeat()));
        }
        items
    }

    /// All items up to the close, and its code.
    ///
    /// # Panics
    /// When anything but a text message or a close with a code comes.
    pub async fn to_close(&mut self) -> (Vec<Item>, CloseCode) {
        let mut items = Vec::new();
        loop {
            match self.next().await {
                Some(Message::Text(text)) => items.extend(items_of(&text)),
                Some(Message::Close(Some(frame))) => return (items, frame.code),
                other => panic!("expected a close after {items:?}, got {other:?}"),
            }
        }
    }

    /// Sends a text message.
    ///
    /// # Panics
    /// When the connection is gone.
    pub async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.expect("the message should be sent");
    }

    fn cut_after(&mut self, bytes: usize) {
        self.socket.get_mut().left = bytes;
    }
}

/// Where a WebSocket on this database's `_feed` is opened; `query` without its question mark.
pub fn feed_url(server: &Server, database: &Database, query: &str) -> String {
    let separator = if query.is_empty() { "" } else { "?" };
    format!("ws://{}{}/_feed{separator}{query}", server.address(), database.path())
}

/// `_feed` over WebSocket.
pub struct WebSocketDoor {
    url: String,
}

impl WebSocketDoor {
    /// The door of this database; `options` as a query, without `since`.
    pub fn new(server: &Server, database: &Database, options: &str) -> WebSocketDoor {
        WebSocketDoor { url: feed_url(server, database, options) }
    }
}

impl Door for WebSocketDoor {
    fn name(&self) -> &'static str {
        "_feed over WebSocket"
    }

    fn open(&self, since: Option<String>, cut: usize) -> BoxFuture<'_, BoxStream<'static, Item>> {
        async move {
            let since = escaped(since.as_deref().unwrap_or("0"));
            let opened = FeedSocket::open(&format!("{}&since={since}", self.url)).await;
            let mut socket = opened.unwrap_or_else(|error| panic!("{} from {since}: {error}", self.url));
            socket.cut_after(cut);
            stream::unfold(socket, |mut socket| async {
                match socket.next().await? {
                    Message::Text(text) => Some((stream::iter(items_of(&text)), socket)),
                    _ => None,
                }
            })
            .flatten()
            .boxed()
        }
        .boxed()
    }
}

fn items_of(text: &Utf8Bytes) -> Vec<Item> {
    let items: Vec<Value> = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text:?}"));
    assert!(!items.is_empty(), "a message carries one item at least");
    items.into_iter().map(Item::from_json).collect()
}

/// A socket that ends for its reader after a number of bytes.
struct CutSocket {
    socket: TcpStream,
    left: usize,
}

impl AsyncRead for CutSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Ok(()));
        }
        let mut piece = vec![0; buffer.remaining().min(self.left)];
        let mut limited = ReadBuf::new(&mut piece);
        ready!(Pin::new(&mut self.socket).poll_read(context, &mut limited))?;
        let read = limited.filled().len();
        buffer.put_slice(limited.filled());
        self.left -= read;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CutSocket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
