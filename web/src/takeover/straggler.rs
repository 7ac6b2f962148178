//! A connection between groups: one whose reader is behind, or that goes to another worker. It reads pages of its own,
//! as it did before it was taken over, until it has come to where the others are.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use actix::Addr;
use bytes::Bytes;
use seqtide::storage::model::sequence::Sequence;
use seqtide::{Feed, Likeness, Source};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::READ_TIMEOUT;
use super::feeds::{Attach, Feeds};
use super::lingering;
use super::offer::Last;
use super::reading::{self, News};
use crate::wire::Wire;
use crate::wire::framing::Framing;
use crate::wire::heard::{ANSWERS_MAX, Heard, MESSAGE_BYTES_MAX, Reply, close, reply};

/// A feed that serves one connection.
pub struct Straggler<S: Source, W> {
    pub feed: Feed<S>,
    pub wire: W,
    /// Behind this place the group has all rows; the beginning for one that goes where they are not known.
    pub start: Rc<Cell<Sequence>>,
}

/// How a straggler's way ends.
enum Outcome {
    /// It can join others.
    CaughtUp(Likeness),
    /// All was said.
    Ended,
    /// Its client has left or does not read.
    Gone,
}

/// What is to be said between messages.
#[derive(Default)]
struct Replies {
    answers: RefCell<Vec<Bytes>>,
    /// A last frame; nothing follows it.
    last: RefCell<Option<Bytes>>,
    /// Told when there is something.
    come: Notify,
}

impl Replies {
    /// Says what is to be said, with what comes while it is said; whether nothing follows it.
    async fn write(&self, writer: &mut Writer<'_>) -> io::Result<bool> {
        loop {
            let (mut frames, last) = (self.answers.take(), self.last.take());
            if frames.is_empty() && last.is_none() {
                return Ok(false);
            }
            let is_over = last.is_some();
            frames.extend(last);
            writer.write(&frames).await?;
            if is_over {
                return Ok(true);
            }
        }
    }

    /// Says what is to be said until something else is done, which is not begun anew for a ping; `None` where nothing
    /// follows what was said.
    async fn write_until<T>(
        &self,
        writer: &mut Writer<'_>,
        something: impl Future<Output = T>,
    ) -> io::Result<Option<T>> {
        let mut something = pin!(something);
        loop {
            tokio::select! {
                done = &mut something => return Ok(Some(done)),
                () = self.come.notified() => {
                    if self.write(writer).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

impl<S: Source, W: Wire> Straggler<S, W> {
    /// Serves the connection until it can join those who give the same there, or is over.
    pub async fn serve(self, socket: std::net::TcpStream, heard: Option<Box<Heard>>, feeds: Addr<Feeds>) {
        let heard = heard.unwrap_or_else(|| Box::new(Heard::new(MESSAGE_BYTES_MAX)));
        let served = match TcpStream::from_std(socket) {
            Ok(socket) => self.catch_up_and_join(socket, heard, &feeds).await,
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            tracing::debug!(%error, "the connection of a feed is lost");
        }
    }

    async fn catch_up_and_join(
        mut self,
        mut socket: TcpStream,
        mut heard: Box<Heard>,
        feeds: &Addr<Feeds>,
    ) -> io::Result<()> {
        match self.catch_up(&mut socket, &mut heard).await? {
            Outcome::CaughtUp(likeness) => {
                let heard = Some(heard).filter(|heard| !heard.is_empty());
                if let Some(attach) = Attach::new(socket.into_std()?, heard, likeness, self.feed, self.wire) {
                    feeds.do_send(attach);
                }
            }
            Outcome::Ended => lingering::end(socket).await,
            Outcome::Gone => {}
        }
        Ok(())
    }

    async fn catch_up(&mut self, socket: &mut TcpStream, heard: &mut Heard) -> io::Result<Outcome> {
        let framing = self.wire.framing();
        let replies = Replies::default();
        let (reader, half) = socket.split();
        let writer = Writer { half, patience: READ_TIMEOUT };
        let overdue = self.feed.overdue();
        tokio::select! {
            outcome = self.write_until_caught_up(writer, &replies) => outcome,
            () = overdue => Ok(Outcome::Gone),
            gone = hear(reader, framing, heard, &replies) => gone.map(|()| Outcome::Gone),
        }
    }

    async fn write_until_caught_up(&mut self, mut writer: Writer<'_>, replies: &Replies) -> io::Result<Outcome> {
        loop {
            if replies.write(&mut writer).await? {
                return Ok(Outcome::Ended);
            }
            // Nothing is left to be said, and nothing can come in between: who joins takes along what was not heard yet
            // alone.
            if self.feed.position() >= self.start.get()
                && let Some(likeness) = self.feed.likeness()
            {
                return Ok(Outcome::CaughtUp(likeness));
            }
            // It may have a long way to what comes next.
            let next = reading::next(&mut self.feed, &mut self.wire);
            let Some(Some(news)) = replies.write_until(&mut writer, next).await? else { return Ok(Outcome::Ended) };
            let written = match news {
                News::Rows { blocks, .. } => {
                    let mut written = 0;
                    for block in blocks {
                        written += writer.write(&block.parts_behind(Sequence::ZERO)).await?;
                    }
                    written
                }
                News::Notice { words, .. }
                | News::Lags { words, .. }
                | News::IsLive { words }
                | News::End(Last { words, .. }) => writer.write(&[words]).await?,
            };
            self.feed.sent(written);
        }
    }
}

/// What is said goes here.
struct Writer<'a> {
    half: WriteHalf<'a>,
    /// So long its client may take nothing.
    patience: Duration,
}

impl Writer<'_> {
    /// Writes all of it; how many bytes that are.
    ///
    /// # Errors
    /// When the client is gone, or takes nothing.
    async fn write(&mut self, parts: &[Bytes]) -> io::Result<usize> {
        for part in parts {
            let mut left = &part[..];
            while !left.is_empty() {
                match timeout(self.patience, self.half.write(left)).await?? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => left = &left[written..],
                }
            }
        }
        Ok(parts.iter().map(Bytes::len).sum())
    }
}

/// Hears what the client says until it has left. On a WebSocket pings are answered, and what ends
/// the connection is; else all is thrown away.
async fn hear(mut reader: ReadHalf<'_>, framing: Framing, heard: &mut Heard, replies: &Replies) -> io::Result<()> {
    let (mut said, mut is_over) = ([0; 1024], false);
    loop {
        // Whole frames may have come with the socket.
        while framing == Framing::Messages
            && !is_over
            && let Some(said) = heard.next()
        {
            match reply(said) {
                Reply::Answer(frame) => {
                    let mut answers = replies.answers.borrow_mut();
                    // RFC 6455, 5.5.3: of pings that come before one is answered, the last counts.
                    if answers.len() == ANSWERS_MAX {
                        answers.remove(0);
                    }
                    answers.push(frame);
                }
                Reply::Last(code, why) => {
                    is_over = true;
                    replies.last.replace(Some(close(code, why)));
                }
            }
            replies.come.notify_one();
        }
        let length = reader.read(&mut said).await?;
        if length == 0 {
            return Ok(());
        }
        if framing == Framing::Messages && !is_over {
            heard.add(&said[..length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use seqtide::{Engine, FeedKind, FeedOptions};
    use tokio::net::TcpListener;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::wire::form::Form;

    #[tokio::test]
    async fn who_takes_something_now_and_then_is_written_to_and_who_takes_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut socket, _) = listener.accept().await.unwrap();
        // More than the system's buffers take.
        let much = [Bytes::from(vec![b'x'; 32 << 20])];
        let mut writer = Writer { half: socket.split().1, patience: Duration::from_secs(2) };
        let reads = async {
            let mut piece = vec![0; 2 << 20];
            for _ in 0..16 {
                sleep(Duration::from_millis(200)).await;
                client.read_exact(&mut piece).await?;
            }
            Ok(())
        };
        let (written, ()) = tokio::try_join!(writer.write(&much), reads).unwrap();
        assert_eq!(written, much[0].len(), "in more than its patience");
        assert_eq!(writer.write(&much).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn what_comes_while_something_is_said_is_said_behind_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut writer = Writer { half: socket.split().1, patience: Duration::from_secs(60) };
        // More than the system's buffers take.
        let answer = Bytes::from(vec![b'x'; 32 << 20]);
        let replies = Replies { answers: RefCell::new(vec![answer.clone()]), ..Replies::default() };
        let reads = async {
            client.read_u8().await.unwrap();
            replies.answers.borrow_mut().push(Bytes::from("more"));
            replies.last.replace(Some(Bytes::from("the last")));
            let mut rest = vec![0; answer.len() - 1 + "morethe last".len()];
            timeout(Duration::from_secs(60), client.read_exact(&mut rest)).await.expect("all of it").unwrap();
            rest
        };
        let (is_over, rest) = tokio::join!(replies.write(&mut writer), reads);
        assert!(is_over.unwrap() && rest.ends_with(b"xmorethe last"));
    }

    #[tokio::test]
    async fn pings_are_answered_while_a_feed_is_on_its_way_to_its_next_row() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let database = engine.create_database("db").await.unwrap();
        let feed = database.feed(FeedOptions::live(FeedKind::Websocket)).await.unwrap();
        // Nothing comes, and the others are never reached.
        let start = Rc::new(Cell::new(Sequence::MAX));
        let mut straggler = Straggler { feed, wire: Form::Websocket, start };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut socket, _) = listener.accept().await.unwrap();
        let (mut heard, mut said) = (Heard::new(MESSAGE_BYTES_MAX), Vec::new());
        let reads = async {
            let mut asked = false;
            while !said.ends_with(b"\x8a\x02hi") {
                assert!(client.read_buf(&mut said).await.unwrap() > 0, "{said:?}");
                if !asked && said.windows(9).any(|words| words == b"caught-up") {
                    asked = true;
                    client.write_all(&[0x89, 0x82, 0, 0, 0, 0, b'h', b'i']).await.unwrap();
                }
            }
        };
        tokio::select! {
            outcome = straggler.catch_up(&mut socket, &mut heard) => panic!("over, {}", outcome.is_ok()),
            read = timeout(Duration::from_secs(10), reads) => read.expect("the answer"),
        }
        drop(straggler);
        engine.shutdown().await.unwrap();
    }
}
