//! A connection whose reader is behind: it reads pages of its own, as it did before it was taken over, until it has
//! caught up with its group.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use actix::Addr;
use bytes::Bytes;
use seqtide::storage::model::sequence::Sequence;
use seqtide::{Feed, Likeness, Source};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::feeds::{Attach, Feeds};
use super::framing::Framing;
use super::member::MESSAGE_BYTES_MAX;
use super::reading::{self, News};
use crate::feeds::heard::{ANSWERS_MAX, Heard, Said, pong};
use crate::feeds::wire::Wire;

/// A feed that serves one connection.
pub struct Straggler<S: Source, W> {
    pub feed: Feed<S>,
    pub wire: W,
    /// Behind this place the group has all rows.
    pub start: Rc<Cell<Sequence>>,
}

/// Answers that wait until a message is written.
type Answers = RefCell<Vec<Bytes>>;

impl<S: Source, W: Wire> Straggler<S, W> {
    /// Serves the connection until it can join its group again, or is over.
    pub async fn serve(mut self, socket: std::net::TcpStream, heard: Option<Box<Heard>>, feeds: Addr<Feeds>) {
        let mut heard = heard.unwrap_or_else(|| Box::new(Heard::new(MESSAGE_BYTES_MAX)));
        match self.catch_up(socket, &mut heard).await {
            Ok(Some((socket, likeness))) => {
                let heard = Some(heard).filter(|heard| !heard.is_empty());
                if let Some(attach) = Attach::new(socket, heard, likeness, self.feed, self.wire) {
                    feeds.do_send(attach);
                }
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the connection of a feed is lost"),
        }
    }

    async fn catch_up(
        &mut self,
        socket: std::net::TcpStream,
        heard: &mut Heard,
    ) -> io::Result<Option<(std::net::TcpStream, Likeness)>> {
        let framing = self.wire.framing();
        let mut socket = TcpStream::from_std(socket)?;
        let answers = Answers::default();
        let (reader, writer) = socket.split();
        let caught_up = tokio::select! {
            caught_up = self.write_until_caught_up(writer, &answers) => caught_up?,
            gone = hear(reader, framing, heard, &answers) => return gone.map(|()| None),
        };
        let Some(likeness) = caught_up else { return Ok(None) };
        Ok(Some((socket.into_std()?, likeness)))
    }

    /// `None` when the feed has ended.
    async fn write_until_caught_up(
        &mut self,
        mut writer: WriteHalf<'_>,
        answers: &Answers,
    ) -> io::Result<Option<Likeness>> {
        loop {
            let waiting = answers.take();
            if !waiting.is_empty() {
                write_all(&mut writer, &waiting).await?;
                continue;
            }
            if self.feed.position() >= self.start.get()
                && let Some(likeness) = self.feed.likeness()
            {
                if let Some(live) = self.feed.rejoin::<S::Row>() {
                    let words = self.wire.framing().around(&self.wire.notice(self.feed.seq_format(), &live));
                    self.feed.metrics().bytes(write_all(&mut writer, &[words.into()]).await?);
                }
                return Ok(Some(likeness));
            }
            let Some(news) = reading::next(&mut self.feed, &mut self.wire).await else { return Ok(None) };
            let written = match news {
                News::Rows { blocks, .. } => {
                    let mut written = 0;
                    for block in blocks {
                        written += write_all(&mut writer, &block.parts_behind(Sequence::ZERO)).await?;
                    }
                    written
                }
                News::IsLive => 0,
                News::Notice { words, .. } | News::Lags { words, .. } | News::End(words) => {
                    write_all(&mut writer, &[words]).await?
                }
            };
            self.feed.metrics().bytes(written);
        }
    }
}

async fn write_all(writer: &mut WriteHalf<'_>, parts: &[Bytes]) -> io::Result<usize> {
    for part in parts {
        writer.write_all(part).await?;
    }
    Ok(parts.iter().map(Bytes::len).sum())
}

/// Hears what the client says until it has left or wants to. On a WebSocket pings are answered; else all is thrown away.
async fn hear(mut reader: ReadHalf<'_>, framing: Framing, heard: &mut Heard, answers: &Answers) -> io::Result<()> {
    let mut said = [0; 1024];
    loop {
        // Whole frames may have come with the socket.
        while framing == Framing::Messages
            && let Some(said) = heard.next()
        {
            let Said::Ping(data) = said else { return Ok(()) };
            if answers.borrow().len() == ANSWERS_MAX {
                return Ok(());
            }
            answers.borrow_mut().push(pong(&data));
        }
        let length = reader.read(&mut said).await?;
        if length == 0 {
            return Ok(());
        }
        if framing == Framing::Messages {
            heard.add(&said[..length]);
        }
    }
}
