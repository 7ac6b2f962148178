//! The native door over WebSocket: what the client says, what the feed gives, and how it ends.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_ws::{CloseCode, CloseReason, Item as Fragment, Message, MessageStream, Session};
use bytes::Bytes;
use bytestring::ByteString;
use futures_util::{SinkExt, StreamExt};
use seqtide::{EndReason, Feed, Source};
use tokio::sync::watch;
use tokio::time::timeout;

use super::native::{self, Item};
use super::pieces::Pieces;
use crate::error::ApiError;

/// A message that could not be handed to the connection for this long has no reader.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// A client that has taken nothing of what it was sent for this long has no reader.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// What is left of a close frame's 125 bytes after the code.
const CLOSE_REASON_BYTES_MAX: usize = 123;

/// A WebSocket connection.
pub struct Connection {
    /// The way out.
    session: Session,
    /// The way in.
    incoming: MessageStream,
    /// Tells when the connection has taken what was handed to it.
    taken: watch::Receiver<()>,
}

/// Why a connection is over.
enum Over {
    /// The client left or does not read.
    Gone,
    /// We close, with this code and text.
    Close(CloseCode, String),
}

/// How a connection's feed gets its options.
pub enum Start<O, P> {
    /// The URL has them.
    Now(O),
    /// The first message has them, read by `parse`; without one for so long, they are the defaults.
    AtMessage { parse: P, within: Duration },
}

/// Serves a connection until it is over. `open` opens its feed.
pub async fn serve<O, S: Source>(
    mut connection: Connection,
    start: Start<O, impl FnOnce(&str) -> Result<O, ApiError>>,
    open: impl AsyncFnOnce(O) -> Result<Feed<S>, seqtide::Error>,
) {
    let over = match follow(&mut connection, start, open).await {
        Err(over) => over,
        Ok(never) => match never {},
    };
    if let Over::Close(code, text) = over {
        let reason = CloseReason { code, description: (!text.is_empty()).then_some(text) };
        // The client may have left first.
        let _ = timeout(SEND_TIMEOUT, connection.session.close(Some(reason))).await;
    }
}

async fn follow<O, S: Source>(
    connection: &mut Connection,
    start: Start<O, impl FnOnce(&str) -> Result<O, ApiError>>,
    open: impl AsyncFnOnce(O) -> Result<Feed<S>, seqtide::Error>,
) -> Result<std::convert::Infallible, Over> {
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
    let mut feed = match open(options).await {
        Ok(feed) => feed,
        Err(error) => return Err(refuse(&error.into())),
    };
    loop {
        tokio::select! {
            item = native::next(&mut feed) => match item {
                Ok(Some(item)) => connection.send(&feed, &item).await?,
                Ok(None) => return Err(Over::Close(CloseCode::Normal, String::new())),
                Err(error) => return Err(connection.fail(&error.into()).await?),
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
    refuse_with(CloseCode::Policy, refused)
}

fn refuse_with(code: CloseCode, refused: &ApiError) -> Over {
    let mut text = String::new();
    for letter in refused.reason().chars() {
        if text.len() + letter.len_utf8() > CLOSE_REASON_BYTES_MAX {
            break;
        }
        text.push(letter);
    }
    Over::Close(code, text)
}

impl Connection {
    /// A connection that was upgraded, by the answer, the way out and the way in; gives the answer to be sent.
    pub fn new(answer: HttpResponse, session: Session, incoming: MessageStream) -> (HttpResponse, Connection) {
        let (telling, taken) = watch::channel(());
        let answer = answer.map_body(|_, body| BoxBody::new(Told { body, taken: telling }));
        (answer, Connection { session, incoming, taken })
    }

    /// Waits for a text message, answering pings meanwhile.
    async fn text(&mut self) -> Result<String, Over> {
        loop {
            match self.incoming.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.to_string()),
                Some(Ok(Message::Ping(data))) => {
                    let pong = timeout(SEND_TIMEOUT, self.session.pong(&data)).await;
                    pong.map_err(|_elapsed| Over::Gone)?.map_err(|_closed| Over::Gone)?;
                }
                Some(Ok(Message::Nop | Message::Pong(_))) => {}
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

    async fn send<S: Source>(&mut self, feed: &Feed<S>, item: &Item<S::Row>) -> Result<(), Over> {
        let message = item.message();
        feed.metrics().bytes(message.bytes());
        self.send_text(message).await?;
        match item.end() {
            None => Ok(()),
            Some(EndReason::Shutdown) => Err(Over::Close(CloseCode::Away, EndReason::Shutdown.name().to_owned())),
            Some(reason) => Err(Over::Close(CloseCode::Normal, reason.name().to_owned())),
        }
    }

    /// Says why the feed cannot go on: a close frame has no room for all of it.
    async fn fail(&mut self, error: &ApiError) -> Result<Over, Over> {
        tracing::error!(%error, "a feed is cut short");
        let mut message = Pieces::default();
        message.add(format!("[{}]", native::failure(error)).into());
        self.send_text(message).await?;
        Ok(refuse_with(CloseCode::Error, error))
    }

    /// Sends a message, in fragments where it is large.
    async fn send_text(&mut self, mut message: Pieces) -> Result<(), Over> {
        let mut begun = false;
        while let Some(piece) = message.take() {
            let last = message.bytes() == 0;
            self.hand_over(match (std::mem::replace(&mut begun, true), last) {
                (false, true) => Message::Text(text_of(piece)?),
                (false, false) => Message::Continuation(Fragment::FirstText(piece)),
                (true, false) => Message::Continuation(Fragment::Continue(piece)),
                (true, true) => Message::Continuation(Fragment::Last(piece)),
            })
            .await?;
        }
        Ok(())
    }

    /// Hands a frame to the connection and waits until it has been taken, so that no more than one waits for a client
    /// that does not read.
    async fn hand_over(&mut self, frame: Message) -> Result<(), Over> {
        let mut taken = self.taken.clone();
        taken.mark_unchanged();
        let handed = timeout(SEND_TIMEOUT, self.session.send(frame)).await;
        handed.map_err(|_elapsed| Over::Gone)?.map_err(|_closed| Over::Gone)?;
        tokio::select! {
            taken = timeout(READ_TIMEOUT, taken.changed()) => {
                taken.map_err(|_elapsed| Over::Gone)?.map_err(|_closed| Over::Gone)
            }
            text = self.text() => {
                text?;
                Err(late_options())
            }
        }
    }
}

/// What we encode is UTF-8: ids and bodies were checked when they came.
fn text_of(piece: Bytes) -> Result<ByteString, Over> {
    ByteString::try_from(piece).map_err(|_| Over::Close(CloseCode::Error, "a row is not UTF-8".to_owned()))
}

/// A body that tells when something of it was taken.
struct Told {
    body: BoxBody,
    taken: watch::Sender<()>,
}

impl MessageBody for Told {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_next(cx);
        if let Poll::Ready(Some(Ok(_))) = polled {
            self.taken.send_replace(());
        }
        polled
    }
}
