//! A connection's socket that can be taken out of the framework: what is left there ends without a word.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The socket of a connection, for the framework and for the requests on it.
#[derive(Clone)]
pub struct Detachable(Rc<RefCell<Socket>>);

struct Socket {
    /// `None` once it was taken.
    stream: Option<TcpStream>,
    wanted: Wanted,
    /// The framework has written all it was given when it was here last.
    is_written: bool,
}

enum Wanted {
    /// Nobody wants it.
    Not,
    /// It may be taken when everything is written; who wants it is told.
    WhenFlushed(Waker),
    /// Everything is written.
    Now,
}

impl Socket {
    fn flushed(&mut self) {
        self.is_written = true;
        if let Wanted::WhenFlushed(waiting) = &self.wanted {
            waiting.wake_by_ref();
            self.wanted = Wanted::Now;
        }
    }
}

impl Detachable {
    pub fn new(stream: TcpStream) -> Detachable {
        Detachable(Rc::new(RefCell::new(Socket { stream: Some(stream), wanted: Wanted::Not, is_written: true })))
    }

    /// Takes the socket when the framework has written all it was given. Whoever waits for it gives it nothing more.
    ///
    /// # Errors
    /// When it was taken before, or the system does not let go of it.
    pub async fn detached(&self) -> io::Result<std::net::TcpStream> {
        poll_fn(|cx| self.poll_flushed(cx)).await;
        self.take()
    }

    /// Takes the socket, if the framework has written all it was given. For who is no part of the framework's connection:
    /// it must have nothing that it was not given yet.
    pub fn detach_if_written(&self) -> Option<io::Result<std::net::TcpStream>> {
        let is_written = self.0.borrow().is_written;
        is_written.then(|| self.take())
    }

    fn take(&self) -> io::Result<std::net::TcpStream> {
        let stream = self.0.borrow_mut().stream.take();
        stream.ok_or_else(taken)?.into_std()
    }

    fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut socket = self.0.borrow_mut();
        if let Wanted::Now = socket.wanted {
            return Poll::Ready(());
        }
        socket.wanted = Wanted::WhenFlushed(cx.waker().clone());
        Poll::Pending
    }

    fn with_stream<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.0.borrow_mut().stream {
            Some(stream) => poll(Pin::new(stream), cx),
            None => Poll::Ready(Err(taken())),
        }
    }
}

/// The framework ends a connection without a word that was aborted.
fn taken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was taken over")
}

impl AsyncRead for Detachable {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.with_stream(cx, |stream, cx| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Detachable {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().is_written = false;
        self.with_stream(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    /// The framework calls this when it has written all it has.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().flushed();
        self.with_stream(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with_stream(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}
