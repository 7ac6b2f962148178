//! A WebSocket connection: what the client says, what it is told, and how it ends.

mod serving;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_http::ws::{Codec, HandshakeError, Item as Fragment, Message, handshake};
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use bytestring::ByteString;
use futures_util::{FutureExt, StreamExt};
use seqtide::{Feed, Likeness, Source};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

pub use self::serving::{Start, serve};
use crate::connection::Cutter;
use crate::error::ApiError;
use crate::takeover::{READ_TIMEOUT, Takeover};
use crate::wire::form::Form;
use crate::wire::heard::{CloseCode, Heard, LATE_OPTIONS, Reply, Said, close, code_of, frame, reply};
use crate::wire::native::{self, Item};
use crate::wire::pieces::Pieces;

/// Most frames that wait for the connection: answers to pings, and one of the feed.
const FRAMES_MAX: usize = 32;

/// Texts that are kept while something is handed over; then the client is not listened to.
const TEXTS_MAX: usize = 16;

/// Bytes of such texts, but for the last one of them, which may be longer by itself.
const TEXTS_BYTES_MAX: usize = 64 << 10;

/// A WebSocket connection.
pub struct Connection {
    /// The way out.
    frames: mpsc::Sender<Bytes>,
    /// The way in.
    incoming: Incoming,
    /// Texts that came while something was handed over, where they are welcome at any time.
    kept: Option<Texts>,
    /// How many frames were put there.
    put: u64,
    /// How many of them the connection has taken.
    taken: watch::Receiver<u64>,
    /// The way out of the framework.
    takeover: Option<Takeover>,
    /// Its end, where the client does not take it.
    cutter: Cutter,
    /// Who is at the other end.
    client: Option<SocketAddr>,
}

/// Why a request is not upgraded.
///
/// Source: RFC 6455, 4.2.1 and 4.2.2.
fn refused(error: HandshakeError) -> ApiError {
    match error {
        HandshakeError::GetMethodRequired => ApiError::method_not_allowed("GET"),
        HandshakeError::NoVersionHeader | HandshakeError::UnsupportedVersion => {
            ApiError::bad_request("`Sec-WebSocket-Version` must be 13")
                .with_header(header::SEC_WEBSOCKET_VERSION, "13".to_owned())
        }
        HandshakeError::BadWebsocketKey => {
            ApiError::bad_request("`Sec-WebSocket-Key` must be there: 16 bytes in Base64")
        }
        other => ApiError::bad_request(other.to_string()),
    }
}

/// Why a connection is over here.
pub enum Over {
    /// The client left or does not read.
    Gone,
    /// We close, with this code and text.
    Close(CloseCode, String),
    /// Its feed goes on elsewhere.
    Elsewhere,
}

impl Connection {
    /// Upgrades a request, whose messages may have so many bytes; gives the answer to be sent.
    ///
    /// # Errors
    /// 400 when it asks for no WebSocket that there is, 405 when it does so by another method than GET.
    pub fn new(
        req: &HttpRequest,
        payload: web::Payload,
        message_bytes_max: usize,
    ) -> Result<(HttpResponse, Connection), ApiError> {
        let mut answer = handshake(req.head()).map_err(refused)?;
        let (frames, waiting) = mpsc::channel(FRAMES_MAX);
        let (telling, taken) = watch::channel(0);
        let answer = answer.finish().set_body(BoxBody::new(Outgoing { waiting, taken: telling }));
        let incoming = Incoming { payload, heard: Heard::new(message_bytes_max) };
        let (takeover, cutter) = (Takeover::of(req), Cutter::of(req));
        let client = req.peer_addr();
        let connection = Connection { frames, incoming, kept: None, put: 0, taken, takeover, cutter, client };
        Ok((answer.into(), connection))
    }

    /// Texts are welcome at any time from now on: those that come while something is handed over wait for
    /// [`Connection::text`], and when there are many of them the client is not listened to.
    pub fn keep_texts(&mut self) {
        self.kept = Some(Texts::default());
    }

    /// Says why it is over, unless the client has left. The connection is not kept for a client that does not take it.
    pub async fn close(&mut self, over: Over) {
        match over {
            Over::Elsewhere => {}
            Over::Gone => self.cutter.cut_soon(),
            Over::Close(code, text) => {
                // Who reads slowly may have the end of its feed before it still; who was refused waits for nothing.
                match code {
                    CloseCode::Normal | CloseCode::Away | CloseCode::Error => self.cutter.cut_after(READ_TIMEOUT),
                    _ => self.cutter.cut_soon(),
                }
                // The client may have left first.
                let _ = self.put(close(code, &text)).await;
            }
        }
    }

    /// The connection's socket, if the framework has written all that was handed to it.
    fn socket(&mut self) -> Option<Result<std::net::TcpStream, Over>> {
        let takeover = self.takeover.as_ref().filter(|_| *self.taken.borrow() == self.put)?;
        Some(takeover.socket_if_written()?.map_err(|_lost| Over::Gone))
    }

    /// Has the feed go on at the socket.
    fn leave<S: Source>(&mut self, socket: std::net::TcpStream, likeness: Likeness, feed: Feed<S>) -> Over {
        let heard = self.incoming.rest();
        if let Some(takeover) = self.takeover.take() {
            takeover.attach(socket, Some(heard), likeness, feed, Form::Websocket);
        }
        Over::Elsewhere
    }

    /// Waits for a text message, answering pings meanwhile.
    ///
    /// # Errors
    /// [`Over`].
    pub async fn text(&mut self) -> Result<String, Over> {
        if let Some(text) = self.kept.as_mut().and_then(Texts::take) {
            return Ok(text);
        }
        self.new_text().await
    }

    async fn new_text(&mut self) -> Result<String, Over> {
        loop {
            if let Some(text) = self.hear().await? {
                return Ok(text);
            }
        }
    }

    /// Hears what the client says next once there is room for an answer: a text, or what is answered. Nothing is lost
    /// when the future is dropped before it is ready.
    async fn hear(&mut self) -> Result<Option<String>, Over> {
        let room = self.frames.reserve().await.map_err(|_closed| Over::Gone)?;
        match self.incoming.next().await.ok_or(Over::Gone)? {
            Said::Text(text) => {
                let text = String::from_utf8(text.into());
                text.map(Some).map_err(|_| Over::Close(CloseCode::Invalid, "the message is not UTF-8".to_owned()))
            }
            other => match reply(other) {
                Reply::Answer(frame) => {
                    room.send(frame);
                    self.put += 1;
                    Ok(None)
                }
                Reply::Last(code, why) => Err(Over::Close(code, why.to_owned())),
            },
        }
    }

    /// Listens while something else is done, until the connection is over: pings are answered, and texts wait for
    /// [`Connection::text`], if they are welcome. Where there is no room for more of either, what the client says waits
    /// with it.
    pub async fn listen(&mut self) -> Over {
        while self.kept.as_ref().is_none_or(Texts::has_room) {
            match (self.hear().await, &mut self.kept) {
                (Ok(None), _) => {}
                (Ok(Some(text)), Some(kept)) => kept.keep(text),
                (Ok(Some(_)), None) => return late_options(),
                (Err(over), _) => return over,
            }
        }
        pending().await
    }

    async fn send<S: Source>(&mut self, feed: &Feed<S>, item: &Item<S::Row>) -> Result<(), Over> {
        let message = item.message();
        feed.sent(message.bytes());
        self.send_text(message).await?;
        match item.end() {
            None => Ok(()),
            Some(reason) => Err(Over::Close(code_of(reason), reason.name().to_owned())),
        }
    }

    /// Says why the feed cannot go on: a close frame has no room for all of it.
    async fn fail(&mut self, error: &ApiError) -> Result<Over, Over> {
        let mut message = Pieces::default();
        message.add(format!("[{}]", native::failure(error)).into());
        self.send_text(message).await?;
        Ok(Over::Close(CloseCode::Error, error.reason().to_owned()))
    }

    /// Sends a message, in fragments where it is large.
    ///
    /// # Errors
    /// [`Over`].
    pub async fn send_text(&mut self, mut message: Pieces) -> Result<(), Over> {
        let (mut begun, mut codec) = (false, Codec::new());
        while let Some(piece) = message.take() {
            let last = message.bytes() == 0;
            let message = match (std::mem::replace(&mut begun, true), last) {
                (false, true) => Message::Text(text_of(piece)?),
                (false, false) => Message::Continuation(Fragment::FirstText(piece)),
                (true, false) => Message::Continuation(Fragment::Continue(piece)),
                (true, true) => Message::Continuation(Fragment::Last(piece)),
            };
            self.hand_over(frame(&mut codec, message)).await?;
        }
        Ok(())
    }

    /// Hands a frame to the connection and waits until it has been taken, so that no more than one waits for a client
    /// that does not read.
    async fn hand_over(&mut self, frame: Bytes) -> Result<(), Over> {
        let handed_over = async {
            self.put(frame).await?;
            let (put, mut taken) = (self.put, self.taken.clone());
            tokio::select! {
                taken = taken.wait_for(|taken| *taken >= put) => taken.map(drop).map_err(|_closed| Over::Gone),
                over = self.listen() => Err(over),
            }
        };
        timeout(READ_TIMEOUT, handed_over).await.map_err(|_elapsed| Over::Gone)?
    }

    async fn put(&mut self, frame: Bytes) -> Result<(), Over> {
        self.frames.send(frame).await.map_err(|_closed| Over::Gone)?;
        self.put += 1;
        Ok(())
    }
}

/// Texts that wait, in their order.
#[derive(Default)]
struct Texts {
    waiting: VecDeque<String>,
    bytes: usize,
}

impl Texts {
    /// Whether another one may be kept, of any length.
    fn has_room(&self) -> bool {
        self.waiting.len() < TEXTS_MAX && self.bytes < TEXTS_BYTES_MAX
    }

    fn keep(&mut self, text: String) {
        self.bytes += text.len();
        self.waiting.push_back(text);
    }

    fn take(&mut self) -> Option<String> {
        let text = self.waiting.pop_front()?;
        self.bytes -= text.len();
        Some(text)
    }
}

/// Options come first, or in the URL.
fn late_options() -> Over {
    let (code, why) = LATE_OPTIONS;
    Over::Close(code, why.to_owned())
}

/// What we encode is UTF-8: ids and bodies were checked when they came.
fn text_of(piece: Bytes) -> Result<ByteString, Over> {
    ByteString::try_from(piece).map_err(|_| Over::Close(CloseCode::Error, "a row is not UTF-8".to_owned()))
}

/// What a client says, as it comes.
struct Incoming {
    payload: web::Payload,
    heard: Heard,
}

impl Incoming {
    /// Waits for what it says next; `None` when it is gone.
    async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(said) = self.heard.next() {
                return Some(said);
            }
            self.heard.add(&self.payload.next().await?.ok()?);
        }
    }

    /// What was said and not heard yet.
    fn rest(&mut self) -> Heard {
        while let Some(Some(Ok(bytes))) = self.payload.next().now_or_never() {
            self.heard.add(&bytes);
        }
        std::mem::replace(&mut self.heard, Heard::new(0))
    }
}

/// A body of frames that tells how many were taken.
struct Outgoing {
    waiting: mpsc::Receiver<Bytes>,
    taken: watch::Sender<u64>,
}

impl MessageBody for Outgoing {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let polled = self.waiting.poll_recv(cx);
        if let Poll::Ready(Some(_)) = polled {
            self.taken.send_modify(|taken| *taken += 1);
        }
        polled.map(|frame| frame.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use actix_web::{FromRequest, dev};
    use futures_util::stream;

    use super::*;

    /// They were dropped as something else was done, and after a minute the connection was.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_for_more_answers_than_it_takes_has_them_all_when_it_does() {
        const PINGS: usize = 2 * FRAMES_MAX;
        let ping = |n: usize| Ok(Bytes::from(vec![0x89, 0x81, 0, 0, 0, 0, n as u8]));
        let says = stream::iter((0..PINGS).map(ping)).chain(stream::pending());
        let req = TestRequest::default().to_http_request();
        let mut says = dev::Payload::from(says.boxed_local());
        let payload = web::Payload::from_request(&req, &mut says).await.unwrap();
        let (frames, mut waiting) = mpsc::channel(FRAMES_MAX);
        let (_telling, taken) = watch::channel(0);
        let mut connection = Connection {
            frames,
            incoming: Incoming { payload, heard: Heard::new(100) },
            kept: None,
            put: 0,
            taken,
            takeover: None,
            cutter: Cutter::of(&req),
            client: None,
        };
        // Other things are done meanwhile, again and again.
        for _ in 0..100 {
            assert!(timeout(READ_TIMEOUT / 10, connection.text()).await.is_err(), "it goes on");
        }
        let takes = async {
            let mut answered = Vec::new();
            while answered.len() < PINGS {
                let frame = timeout(READ_TIMEOUT, waiting.recv()).await.expect("an answer is lost");
                answered.extend(frame.unwrap().last().copied());
            }
            answered
        };
        let answered = tokio::select! {
            answered = takes => answered,
            _text = connection.text() => panic!("it says none"),
        };
        assert_eq!(answered, (0..PINGS as u8).collect::<Vec<u8>>());
    }
}
