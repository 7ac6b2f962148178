//! A connection whose reader is behind: it reads pages of its own, as it did before it was taken over, until it has
//! caught up with its group.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use actix::Addr;
use seqtide::storage::model::sequence::Sequence;
use seqtide::{Feed, Likeness, Source};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::feeds::{Attach, Feeds};
use super::reading::{self, News};
use crate::feeds::wire::Wire;

/// A feed that serves one connection.
pub struct Straggler<S: Source, W> {
    pub feed: Feed<S>,
    pub wire: W,
    /// Behind this place the group has all rows.
    pub start: Rc<Cell<Sequence>>,
}

impl<S: Source, W: Wire> Straggler<S, W> {
    /// Serves the connection until it can join its group again, or is over.
    pub async fn serve(mut self, socket: std::net::TcpStream, feeds: Addr<Feeds>) {
        match self.catch_up(socket).await {
            Ok(Some((socket, likeness))) => feeds.do_send(Attach::new(socket, likeness, self.feed, self.wire)),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the connection of a feed is lost"),
        }
    }

    async fn catch_up(&mut self, socket: std::net::TcpStream) -> io::Result<Option<(std::net::TcpStream, Likeness)>> {
        let mut socket = TcpStream::from_std(socket)?;
        let (reader, writer) = socket.split();
        let caught_up = tokio::select! {
            caught_up = self.write_until_caught_up(writer) => caught_up?,
            gone = left(reader) => return gone.map(|()| None),
        };
        let Some(likeness) = caught_up else { return Ok(None) };
        Ok(Some((socket.into_std()?, likeness)))
    }

    /// `None` when the feed has ended.
    async fn write_until_caught_up(&mut self, mut writer: WriteHalf<'_>) -> io::Result<Option<Likeness>> {
        loop {
            if self.feed.position() >= self.start.get()
                && let Some(likeness) = self.feed.likeness()
            {
                return Ok(Some(likeness));
            }
            let Some(news) = reading::next(&mut self.feed, &mut self.wire).await else { return Ok(None) };
            let parts = match news {
                News::Rows(blocks) => {
                    blocks.iter().flat_map(|block| block.parts_behind(Sequence::ZERO).into_owned()).collect()
                }
                News::Notice { words, .. } | News::End(words) => vec![words],
            };
            for part in parts {
                writer.write_all(&part).await?;
                self.feed.metrics().bytes(part.len());
            }
        }
    }
}

/// Waits until the client has left. What it says is thrown away.
async fn left(mut reader: ReadHalf<'_>) -> io::Result<()> {
    let mut said = [0; 1024];
    while reader.read(&mut said).await? > 0 {}
    Ok(())
}
