//! A feed as its subscriber sees it: bytes, of which the reader takes what it understands. Nothing is allocated for an
//! event.

mod body;
mod chunks;
mod frames;

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Error;
use crate::connection::connect;
use crate::head::{Head, first_line};
use crate::service::{FeedRequest, UPGRADE};
use body::Body;

/// Bytes read at once at most, with what was left of those before.
const ROOM: usize = 256 * 1024;
/// Bytes kept of what the reader has not taken: more than an event of a load.
const UNREAD_MAX: usize = ROOM / 2;
/// How long a feed may take to be open.
const OPENING_MAX: Duration = Duration::from_secs(30);

/// Feeds being opened at once: fewer than a listener lets wait.
const OPENING: usize = 64;

/// What is said of feeds that were to stay open.
pub(crate) const ENDED: &str = "feeds ended by themselves";

/// Opens so many feeds, and waits until all are live.
///
/// # Errors
/// As [`Feed::open`].
pub async fn open_many(
    address: SocketAddr,
    request: &FeedRequest,
    count: usize,
    room: &Room,
) -> Result<Vec<Feed>, Error> {
    let opening = stream::iter((0..count).map(|_| Feed::open(address, request, room)));
    opening.buffered(OPENING).try_collect().await
}

/// What is made of the bytes.
pub trait Reader {
    /// Takes bytes from the beginning of these, and returns how many. The others are shown again, with more behind
    /// them.
    fn take(&mut self, bytes: &[u8]) -> usize;
}

/// How many bytes, of some in which a sign is not found, need not be shown again: the rest may be its beginning.
pub(crate) fn without(sign: &[u8], bytes: &[u8]) -> usize {
    (bytes.len() + 1).saturating_sub(sign.len())
}

/// Room for one read, shared by all feeds of a thread.
pub struct Room(RefCell<Vec<u8>>);

impl Default for Room {
    fn default() -> Room {
        Room(RefCell::new(vec![0; ROOM]))
    }
}

/// An open feed.
pub struct Feed {
    socket: TcpStream,
    body: Body,
    /// What its reader has not taken yet.
    unread: Vec<u8>,
    name: String,
}

impl Feed {
    /// Opens a feed and waits until it is live.
    ///
    /// # Errors
    /// When the server refuses it or does not say within half a minute that it is live.
    pub async fn open(address: SocketAddr, request: &FeedRequest, room: &Room) -> Result<Feed, Error> {
        let opening = async {
            let mut feed = Feed::send(address, &request.bytes).await?;
            let mut live = Live::new(request.live);
            feed.show(0, &mut room.0.borrow_mut(), &mut live);
            while !live.is_seen {
                if !feed.read(room, &mut live).await? {
                    return Err(Error::Protocol(format!("{}: the feed ended before it was live", feed.name)));
                }
            }
            Ok(feed)
        };
        let late = |_| Error::Late { what: format!("{}: a live feed", first_line(&request.bytes)), limit: OPENING_MAX };
        timeout(OPENING_MAX, opening).await.map_err(late)?
    }

    /// Sends a request and reads the head of its answer.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn send(address: SocketAddr, request: &[u8]) -> Result<Feed, Error> {
        let mut socket = connect(address).await?;
        let name = first_line(request);
        let failed = |source| Error::io(name.clone(), source);
        socket.write_all(request).await.map_err(failed)?;
        let mut answer = Vec::new();
        let head = loop {
            if socket.read_buf(&mut answer).await.map_err(failed)? == 0 {
                return Err(Error::Protocol(format!("{name}: the server closed the connection")));
            }
            if let Some(head) = Head::parse(&answer)? {
                break head;
            }
        };
        let is_upgrade = memchr::memmem::find(request, UPGRADE.as_bytes()).is_some();
        match head.status {
            101 if is_upgrade => {}
            200..300 if !is_upgrade => {}
            status @ (101 | 200..300) => {
                let right = if is_upgrade { "101, a WebSocket," } else { "a success without a WebSocket" };
                let why = format!("{right} would be right; does a proxy change what is asked for?");
                return Err(Error::Protocol(format!("{name} was answered with {status}, where {why}")));
            }
            status => {
                let body = String::from_utf8_lossy(&answer[head.bytes..]).trim_end().to_owned();
                return Err(Error::Refused { request: name, status, body });
            }
        }
        let mut body = Body::of(&head);
        let mut unread = answer.split_off(head.bytes);
        let decoded = body.decode(&mut unread)?;
        unread.truncate(decoded);
        Ok(Feed { socket, body, unread, name })
    }

    /// Waits for bytes and shows them to the reader; false when the feed has ended.
    ///
    /// # Errors
    /// When the connection fails, or the server does not keep to its protocol.
    pub async fn read(&mut self, room: &Room, reader: &mut impl Reader) -> Result<bool, Error> {
        poll_fn(|context| self.poll_read(context, room, reader)).await
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &Room,
        reader: &mut impl Reader,
    ) -> Poll<Result<bool, Error>> {
        if self.body.is_ended() {
            self.show(0, &mut room.0.borrow_mut(), reader);
            return Poll::Ready(Ok(false));
        }
        let mut room = room.0.borrow_mut();
        let kept = self.unread.len();
        let mut read = ReadBuf::new(&mut room[kept..]);
        let polled = ready!(Pin::new(&mut self.socket).poll_read(context, &mut read));
        let length = read.filled().len();
        polled.map_err(|source| Error::io(self.name.clone(), source))?;
        if length == 0 {
            self.show(0, &mut room, reader);
            return Poll::Ready(self.body.end().map(|()| false).map_err(|why| self.protocol(why)));
        }
        let decoded = self.body.decode(&mut room[kept..kept + length])?;
        if let Some(pong) = self.body.take_pong() {
            // A pong that does not fit is one that nobody waits for: the next ping is answered.
            let _ = self.socket.try_write(&pong);
        }
        self.show(decoded, &mut room, reader);
        Poll::Ready(Ok(true))
    }

    /// Shows the reader what it left and so many bytes that lie behind the place for that.
    fn show(&mut self, decoded: usize, room: &mut [u8], reader: &mut impl Reader) {
        let kept = self.unread.len();
        room[..kept].copy_from_slice(&self.unread);
        let bytes = &room[..kept + decoded];
        let taken = reader.take(bytes).max(bytes.len().saturating_sub(UNREAD_MAX));
        self.unread.clear();
        self.unread.extend_from_slice(&bytes[taken..]);
    }

    fn protocol(&self, why: impl std::fmt::Display) -> Error {
        Error::Protocol(format!("{}: {why}", self.name))
    }
}

/// Waits for the bytes that say that a feed is live, and takes them.
struct Live {
    sign: &'static [u8],
    is_seen: bool,
}

impl Live {
    /// No sign is seen at once.
    fn new(sign: &'static [u8]) -> Live {
        Live { sign, is_seen: sign.is_empty() }
    }
}

impl Reader for Live {
    fn take(&mut self, bytes: &[u8]) -> usize {
        match memchr::memmem::find(bytes, self.sign) {
            Some(at) => {
                self.is_seen = true;
                at + self.sign.len()
            }
            None => without(self.sign, bytes),
        }
    }
}
