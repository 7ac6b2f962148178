//! Which of a worker's sockets can be read from or written to.

use std::io;
use std::time::Duration;

use futures_util::{Stream, stream};
use mio::{Events, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;

/// So many sockets are told of in one go: everything else on the worker waits meanwhile.
const READY_AT_ONCE: usize = 128;

/// A socket at which something may be done. It may be another by now, at which there is nothing to do.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// Its place among the sockets that are watched.
    pub watched: usize,
    /// It says something, or is gone.
    pub readable: bool,
    /// It has room.
    pub writable: bool,
}

/// Tells of sockets as they become ready. One epoll set lies in another: a socket costs the runtime nothing.
///
/// # Errors
/// When the runtime cannot watch the set.
#[expect(deprecated, reason = "a `Poll` has one descriptor for its life, which is what its unsafe successor asks for")]
pub fn readiness(poll: Poll) -> io::Result<impl Stream<Item = Vec<Ready>>> {
    let watching = AsyncFd::with_interest(poll, Interest::READABLE)?;
    let events = Events::with_capacity(READY_AT_ONCE);
    Ok(stream::unfold((watching, events), |(mut watching, mut events)| async move {
        match next(&mut watching, &mut events).await {
            Ok(ready) => {
                // Others have their turn before the next.
                yield_now().await;
                Some((ready, (watching, events)))
            }
            Err(error) => {
                tracing::error!(%error, "the sockets of feeds are not watched any more");
                None
            }
        }
    }))
}

async fn next(watching: &mut AsyncFd<Poll>, events: &mut Events) -> io::Result<Vec<Ready>> {
    loop {
        let mut some = watching.readable_mut().await?;
        match some.get_inner_mut().poll(events, Some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ if events.is_empty() => some.clear_ready(),
            _ => return Ok(events.iter().map(ready).collect()),
        }
    }
}

fn ready(event: &mio::event::Event) -> Ready {
    let readable = event.is_readable() || event.is_read_closed() || event.is_error();
    Ready { watched: event.token().0, readable, writable: event.is_writable() }
}
