//! A connection's socket that can be taken out of the framework: what is left there ends without a word.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use actix_web::rt::time::sleep;
use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::cutting::Cutting;
use super::head::Requests;

/// The socket of a connection, for the framework and for the requests on it.
#[derive(Clone)]
pub struct Detachable(Rc<RefCell<Socket>>);

struct Socket {
    /// `None` once it was taken.
    stream: Option<TcpStream>,
    /// What came and the framework had no room for, once it was made what it means.
    left: Bytes,
    requests: Requests,
    wanted: Wanted,
    /// The framework has written all it was given when it was here last.
    is_written: bool,
    /// Cuts it later, if it is there still.
    cutting: Option<Cutting>,
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
    /// What is written leaves at once: an answer in pieces would wait for the client to acknowledge the one before, and
    /// clients take 40 ms for that.
    pub fn new(stream: TcpStream) -> Detachable {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection's pieces may wait for each other");
        }
        let (stream, left, requests, wanted) = (Some(stream), Bytes::new(), Requests::default(), Wanted::Not);
        let socket = Socket { stream, left, requests, wanted, is_written: true, cutting: None };
        Detachable(Rc::new(RefCell::new(socket)))
    }

    /// Takes the socket when the framework has written all it was given. Whoever waits for it gives it nothing more.
    ///
    /// # Errors
    /// When it was taken before, or the system does not let go of it.
    pub async fn detached(&self) -> io::Result<std::net::TcpStream> {
        poll_fn(|cx| self.poll_flushed(cx)).await;
        self.take()
    }

    /// Takes the socket, if the framework has written all it was given. For who is no part of the framework's
    /// connection: it must have nothing that it was not given yet.
    pub fn detach_if_written(&self) -> Option<io::Result<std::net::TcpStream>> {
        let is_written = self.0.borrow().is_written;
        is_written.then(|| self.take())
    }

    fn take(&self) -> io::Result<std::net::TcpStream> {
        let stream = self.0.borrow_mut().stream.take();
        stream.ok_or_else(taken)?.into_std()
    }

    /// Ends the connection in both directions, whatever was not written yet.
    pub fn cut(&self) {
        if let Some(stream) = &self.0.borrow().stream {
            // It may be over already.
            let _ = SockRef::from(stream).shutdown(Shutdown::Both);
        }
    }

    /// Cuts it when this is ready, unless what is returned has been dropped before. It is not kept for that.
    pub fn cut_when(&self, due: impl Future<Output = ()> + 'static) -> Cutting {
        let socket = Rc::downgrade(&self.0);
        Cutting(Some(actix_web::rt::spawn(async move {
            due.await;
            if let Some(socket) = socket.upgrade() {
                Detachable(socket).cut();
            }
        })))
    }

    /// Cuts it after so long, if it is there still; the first who asks for it says how long.
    pub fn cut_after(&self, patience: Duration) {
        if self.0.borrow().cutting.is_none() {
            let cutting = self.cut_when(sleep(patience));
            self.0.borrow_mut().cutting = Some(cutting);
        }
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
        let Socket { stream, requests, left, .. } = &mut *self.0.borrow_mut();
        let Some(stream) = stream else { return Poll::Ready(Err(taken())) };
        while left.is_empty() && buf.remaining() > 0 {
            let before = buf.filled().len();
            ready!(Pin::new(&mut *stream).poll_read(cx, buf))?;
            let came = &buf.filled()[before..];
            let is_end = came.is_empty();
            let read = if is_end { Some(requests.end()) } else { requests.read(came) };
            let Some(read) = read else { return Poll::Ready(Ok(())) };
            buf.set_filled(before);
            *left = read.into();
            if is_end {
                break;
            }
        }
        let room = buf.remaining().min(left.len());
        buf.put_slice(&left.split_to(room));
        Poll::Ready(Ok(()))
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A connection's two ends: what the framework has, and the client's.
    async fn connection() -> (Detachable, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Detachable::new(listener.accept().await.unwrap().0), client)
    }

    #[tokio::test]
    async fn the_socket_is_taken_when_everything_is_written_and_what_is_left_is_dead() {
        let (mut framework, mut client) = connection().await;
        let handler = framework.clone();
        // What was flushed before says nothing of what the framework has been given since.
        framework.flush().await.unwrap();
        let mut taking = Box::pin(handler.detached());
        assert!((&mut taking).now_or_never().is_none(), "the head is not written yet");
        framework.write_all(b"head").await.unwrap();
        assert!((&mut taking).now_or_never().is_none(), "more may follow");
        framework.flush().await.unwrap();
        let mut taken = taking.now_or_never().expect("all is written").unwrap();
        let aborted = |result: io::Result<()>| assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        aborted(framework.read_u8().await.map(drop));
        aborted(framework.write_all(b"x").await);
        aborted(framework.flush().await);
        aborted(framework.shutdown().await);
        aborted(handler.detached().now_or_never().expect("at once").map(drop));
        drop(framework);
        taken.write_all(b"body").unwrap();
        let mut text = [0; 8];
        client.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"headbody");
        client.write_all(b"?").await.unwrap();
        client.shutdown().await.unwrap();
        taken.set_nonblocking(false).unwrap();
        let mut heard = String::new();
        taken.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "?");
    }

    #[tokio::test]
    async fn what_is_written_leaves_at_once() {
        let (framework, _client) = connection().await;
        assert!(framework.0.borrow().stream.as_ref().is_some_and(|stream| stream.nodelay().unwrap()));
    }

    #[tokio::test]
    async fn what_is_longer_than_it_came_is_given_in_pieces_before_what_came_behind_it() {
        let (mut framework, mut client) = connection().await;
        client.write_all(b"GET /?\"\" HTTP/1.1\r\n\r\n").await.unwrap();
        let mut piece = [0; 22];
        let length = framework.read(&mut piece).await.unwrap();
        client.write_all(b"GET /").await.unwrap();
        client.shutdown().await.unwrap();
        let mut rest = String::new();
        framework.read_to_string(&mut rest).await.unwrap();
        let head = String::from_utf8_lossy(&piece[..length]);
        assert_eq!(format!("{head}{rest}"), "GET /?%22%22 HTTP/1.1\r\n\r\nGET /");
    }

    #[tokio::test]
    async fn who_is_no_part_of_the_connection_takes_it_between_what_is_written() {
        let (mut framework, _client) = connection().await;
        let task = framework.clone();
        framework.write_all(b"half").await.unwrap();
        assert!(task.detach_if_written().is_none(), "not flushed");
        framework.flush().await.unwrap();
        assert!(task.detach_if_written().is_some_and(|taken| taken.is_ok()));
    }
}
