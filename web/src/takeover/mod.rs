//! Live feeds off the framework's buffers: once an answer's head is written and its feed is live, the connection's
//! socket leaves the framework, and one actor a worker serves all that did.
//!
//! A connection's way: the body of a feed's answer takes its socket, which is [`Detachable`], and hands it to
//! [`Feeds`], its own worker's or the one that [`homes`] names, where it is a [`member`] of the [`group`] of feeds that
//! give the same. A [`straggler`] reads for itself until it has caught up with its group.

mod block;
mod draining;
mod feeds;
mod group;
mod homes;
mod lingering;
mod member;
mod offer;
mod readiness;
mod reading;
pub mod roll;
mod straggler;
pub mod worker;

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use actix::Addr;
use actix_web::HttpRequest;
use actix_web::http::{Method, Version};
use seqtide::{Feed, Likeness, Source};
use socket2::SockRef;

use self::feeds::{Attach, Feeds};
use self::homes::Homes;
use self::worker::Worker;
use crate::connection::Detachable;
use crate::wire::Wire;
use crate::wire::heard::Heard;

/// A client that has taken nothing of what it was sent for this long has no reader.
pub const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// However often its feed beats, a peer may be silent for this long.
const PATIENCE_MIN: Duration = Duration::from_secs(10);

/// The system takes so many bytes that it cannot send yet: who reads slowly is known for it before long.
#[cfg(target_os = "linux")]
const UNSENT_MAX: u32 = 16 << 10;

/// A connection that can be taken over.
pub struct Takeover {
    socket: Detachable,
    feeds: Addr<Feeds>,
    homes: Homes,
}

impl Takeover {
    /// The way out of the framework for the answer to a request; `None` where there is none, and where an answer is not
    /// in chunks.
    pub fn of(req: &HttpRequest) -> Option<Takeover> {
        let (socket, worker) = (req.conn_data::<Detachable>()?, req.conn_data::<Worker>()?);
        let in_chunks = req.version() == Version::HTTP_11 && req.method() != Method::HEAD;
        if !in_chunks {
            return None;
        }
        match worker.feeds() {
            Ok(feeds) => Some(Takeover { socket: socket.clone(), feeds, homes: worker.homes().clone() }),
            Err(error) => {
                tracing::error!(%error, "connections of feeds cannot be taken over");
                None
            }
        }
    }

    /// Takes the connection when all that was said before is written, and has the feed served there.
    pub async fn serve<S: Source, W: Wire>(self, likeness: Likeness, feed: Feed<S>, wire: W) {
        match self.socket.detached().await {
            Ok(socket) => self.attach(socket, None, likeness, feed, wire),
            Err(error) => tracing::debug!(%error, "the connection of a feed is lost"),
        }
    }

    /// Takes the socket, if all that was said is written. Whoever takes it says nothing more on the connection.
    pub fn socket_if_written(&self) -> Option<io::Result<TcpStream>> {
        self.socket.detach_if_written()
    }

    /// Has the feed served at a socket that was taken, whose client has begun to say this.
    pub fn attach<S: Source, W: Wire>(
        self,
        socket: TcpStream,
        heard: Option<Heard>,
        likeness: Likeness,
        feed: Feed<S>,
        wire: W,
    ) {
        if let Err(error) = prepare(&socket) {
            tracing::debug!(%error, "the connection of a feed is lost");
            return;
        }
        let feeds = self.homes.of(&likeness).unwrap_or(self.feeds);
        if let Some(attach) = Attach::new(socket, heard.map(Box::new), likeness, feed, wire) {
            // The mailbox takes it however full it is: no more come than feeds may be open.
            feeds.do_send(attach);
        }
    }
}

/// What is said leaves at once, and does not pile up where it is not taken.
fn prepare(socket: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_notsent_lowat(UNSENT_MAX)?;
    Ok(())
}

/// Has the system end a connection whose peer acknowledges nothing for so long: it has gone without a word. A peer that
/// reads slowly is ended likewise, whatever it takes, while there is more for it than it has room for: who is known for
/// that is given up by what it takes.
fn give_up_silent(socket: SockRef<'_>, patience: Option<Duration>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(patience)?;
    Ok(())
}

/// How long a peer may acknowledge nothing where that does not pile up: two heartbeats, within bounds.
fn patience(heartbeat: Option<Duration>) -> Duration {
    heartbeat.map_or(READ_TIMEOUT, |heartbeat| heartbeat.saturating_mul(2).clamp(PATIENCE_MIN, READ_TIMEOUT))
}
