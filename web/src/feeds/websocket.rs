//! The native door over WebSocket: what the client says, what the feed gives, and how it ends.

use std::time::Duration;

use actix_ws::{CloseCode, CloseReason, Message, MessageStream, Session};
use futures_util::StreamExt;
use seqtide::{Database, EndReason, Feed, FeedOptions};
use tokio::time::timeout;

use super::native::{self, Item};
use super::portions::Portions;
use crate::error::ApiError;

/// A message that could not be handed to the connection for this long has no reader.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// After so many bytes the client is pinged, and sent more when it has answered: what is encoded ahead of a client that
/// does not read stays small.
const UNREAD_BYTES_MAX: usize = 1 << 20;

/// A client that has not read up to a ping for this long has no reader.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// What is left of a close frame's 125 bytes after the code.
const CLOSE_REASON_BYTES_MAX: usize = 123;

/// A WebSocket connection.
pub struct Connection {
    /// The way out.
    session: Session,
    /// The way in.
    incoming: MessageStream,
    /// Bytes sent that the client may not have read.
    unread_bytes: usize,
}

/// What came from a client.
enum Received {
    Text(String),
    Pong,
}

/// Why a connection is over.
enum Over {
    /// The client left or does not read.
    Gone,
    /// We close, with this code and text.
    Close(CloseCode, String),
}

/// How a connection's feed gets its options.
pub enum Start<P> {
    /// The URL has them.
    Now(FeedOptions),
    /// The first message has them, read by `parse`; without one for so long, they are the defaults.
    AtMessage { parse: P, within: Duration },
}

/// Serves a connection until it is over.
pub async fn serve<P>(mut connection: Connection, database: Database, start: Start<P>)
where
    P: FnOnce(&str) -> Result<FeedOptions, ApiError>,
{
    let over = match follow(&mut connection, database, start).await {
        Err(over) => over,
        Ok(never) => match never {},
    };
    if let Over::Close(code, text) = over {
        let reason = CloseReason { code, description: (!text.is_empty()).then_some(text) };
        // The client may have left first.
        let _ = timeout(SEND_TIMEOUT, connection.session.close(Some(reason))).await;
    }
}

async fn follow<P>(
    connection: &mut Connection,
    database: Database,
    start: Start<P>,
) -> Result<std::convert::Infallible, Over>
where
    P: FnOnce(&str) -> Result<FeedOptions, ApiError>,
{
    let options = match start {
        Start::Now(options) => Ok(options),
        Start::AtMessage { parse, within } => match timeout(within, connection.text()).await {
            Ok(first) => parse(&first?),
            Err(_elapsed) => parse("{}"),
        },
    };
    let options = match options {
        Ok(options) => options,
        Err(refused) => return Err(refuse(&refused)),
    };
    let mut portions = match database.feed(options).await {
        Ok(feed) => Portions::new(feed),
        Err(error) => return Err(refuse(&error.into())),
    };
    loop {
        tokio::select! {
            item = native::next(&mut portions) => match item {
                Ok(Some(item)) => connection.send(&portions.feed, &item).await?,
                Ok(None) => return Err(Over::Close(CloseCode::Normal, String::new())),
                Err(error) => return Err(refuse(&error.into())),
            },
            text = connection.text() => {
                text?;
                return Err(late_options());
            }
        }
    }
}

fn late_options() -> Over {
    Over::Close(CloseCode::Policy, "options are taken from the URL or the first message".to_owned())
}

/// There is no feed, and why: a close frame has room for the beginning of it.
fn refuse(refused: &ApiError) -> Over {
    let mut text = String::new();
    for letter in refused.reason().chars() {
        if text.len() + letter.len_utf8() > CLOSE_REASON_BYTES_MAX {
            break;
        }
        text.push(letter);
    }
    Over::Close(CloseCode::Policy, text)
}

impl Connection {
    /// A connection that was upgraded.
    pub fn new(session: Session, incoming: MessageStream) -> Connection {
        Connection { session, incoming, unread_bytes: 0 }
    }

    /// Waits for a text message.
    async fn text(&mut self) -> Result<String, Over> {
        loop {
            if let Received::Text(text) = self.receive().await? {
                return Ok(text);
            }
        }
    }

    /// Waits for a message that means something here, answering pings meanwhile.
    async fn receive(&mut self) -> Result<Received, Over> {
        loop {
            match self.incoming.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Received::Text(text.to_string())),
                Some(Ok(Message::Pong(_))) => return Ok(Received::Pong),
                Some(Ok(Message::Ping(data))) => {
                    let pong = timeout(SEND_TIMEOUT, self.session.pong(&data)).await;
                    pong.map_err(|_elapsed| Over::Gone)?.map_err(|_closed| Over::Gone)?;
                }
                Some(Ok(Message::Nop)) => {}
                Some(Ok(Message::Binary(_) | Message::Continuation(_))) => {
                    return Err(Over::Close(CloseCode::Unsupported, "send options as one text message".to_owned()));
                }
                Some(Ok(Message::Close(_))) => return Err(Over::Close(CloseCode::Normal, String::new())),
                Some(Err(actix_ws::ProtocolError::Overflow)) => {
                    return Err(Over::Close(CloseCode::Size, "the message is too large".to_owned()));
                }
                Some(Err(error)) => return Err(Over::Close(CloseCode::Protocol, error.to_string())),
                None => return Err(Over::Gone),
            }
        }
    }

    async fn send_text(&mut self, message: Vec<u8>) -> Result<(), Over> {
        // What we encode is UTF-8: ids and bodies were checked when they came.
        let message =
            String::from_utf8(message).map_err(|_| Over::Close(CloseCode::Error, "a row is not UTF-8".to_owned()))?;
        let sent = timeout(SEND_TIMEOUT, self.session.text(message)).await;
        sent.map_err(|_elapsed| Over::Gone)?.map_err(|_closed| Over::Gone)
    }

    async fn send(&mut self, feed: &Feed, item: &Item) -> Result<(), Over> {
        let message = item.message();
        feed.metrics().bytes(message.len());
        self.unread_bytes += message.len();
        self.send_text(message).await?;
        match item.end() {
            None if self.unread_bytes >= UNREAD_BYTES_MAX => self.wait_until_read().await,
            None => Ok(()),
            Some(EndReason::Shutdown) => Err(Over::Close(CloseCode::Away, EndReason::Shutdown.name().to_owned())),
            Some(reason) => Err(Over::Close(CloseCode::Normal, reason.name().to_owned())),
        }
    }

    /// Pings the client and waits for the answer, which comes when it has read everything before.
    async fn wait_until_read(&mut self) -> Result<(), Over> {
        self.session.ping(b"").await.map_err(|_closed| Over::Gone)?;
        match timeout(READ_TIMEOUT, self.receive()).await.map_err(|_elapsed| Over::Gone)?? {
            Received::Pong => self.unread_bytes = 0,
            Received::Text(_) => return Err(late_options()),
        }
        Ok(())
    }
}
