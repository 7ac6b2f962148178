//! Requests that are answered beneath the framework, which never hears of them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use httparse::Request;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Knows requests that need nothing of the framework, and answers them.
pub trait Shortcut {
    /// Begins to answer a request that has come as a whole, unless that is left to the framework: `None`.
    fn answer(&self, head: &Request<'_, '_>, body: &[u8]) -> Option<Answering>;
}

/// The answer to a request, until all of it is written.
pub struct Answering {
    /// Its bytes, once it is there.
    answer: Pin<Box<dyn Future<Output = Vec<u8>>>>,
    /// What is not written of it; `None` before it is there.
    left: Option<Bytes>,
    _under_way: TaskTrackerToken,
}

impl Answering {
    /// An answer that is under way for as long as there is no more than a part of it with its client.
    pub fn new(under_way: TaskTrackerToken, answer: impl Future<Output = Vec<u8>> + 'static) -> Answering {
        Answering { answer: Box::pin(answer), left: None, _under_way: under_way }
    }

    /// Writes it; ready once all of it is written.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, stream: &mut TcpStream) -> Poll<io::Result<()>> {
        let left = match &mut self.left {
            Some(left) => left,
            none => none.insert(ready!(self.answer.as_mut().poll(cx)).into()),
        };
        while !left.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            left.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}
