//! A connection's socket that can be taken out of the framework: what is left there ends without a word.
//!
//! The framework is given one request at a time, the next when the answer to the one before is on its way: from those
//! that it has read ahead it takes what it knows of the one that it answers, such as that it is a `HEAD`, and it goes
//! on to those that come behind the last one of a connection. Behind a request whose end is not looked for
//! ([`Requests`]) it reads ahead.
//!
//! Requests that a [`Shortcut`] answers it is not given, and where nothing but those comes it is not polled. It ends a
//! connection that says nothing, so it is given one now and then, the first among them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use actix_web::rt::time::sleep;
use bytes::{Buf, Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::cutting::Cutting;
use super::head::{Ended, Read, Requests};
use super::shortcut::{Answering, Shortcut};

/// What the framework says to who asks before it sends a body: no answer.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How long a client may take to end the head of a request behind its first, of which the framework keeps the time.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// How long it may take to end a body that was answered before it was whole.
const BODY_MAX: Duration = Duration::from_secs(60);

/// For how long behind an answer of the framework's there is a shortcut. The framework sees nothing of what comes by
/// it, and may end a connection that says nothing; when it begins to count is its own affair.
pub const SHORTCUT_FOR: Duration = Duration::from_secs(60);

/// More than so much, and once what is read in one piece, does not wait behind a request: it stays with the system.
const BEHIND_BYTES_MAX: usize = 1 << 16;

/// So much is read in one piece where a shortcut may answer it: requests that are longer have the framework's time.
const SHORTCUT_BYTES: usize = 1 << 14;

/// The socket of a connection, for the framework and for the requests on it.
#[derive(Clone)]
pub struct Detachable(Rc<RefCell<Socket>>);

struct Socket {
    /// `None` once it was taken.
    stream: Option<TcpStream>,
    /// What came and the framework had no room for, once it was made what it means.
    left: Bytes,
    /// What came behind the request that is being answered, as it came.
    behind: BytesMut,
    /// Waits for that.
    reads: Option<Waker>,
    /// Whom what comes wakes, if that is not who reads it.
    task: Option<Waker>,
    requests: Requests,
    /// Answers some of them, if there is one.
    shortcut: Option<Rc<dyn Shortcut>>,
    /// The answer to one of those.
    answering: Option<Answering>,
    /// The framework ends the connection, and waits for that answer itself.
    is_ending: bool,
    /// When the framework has answered one.
    answered: Option<Instant>,
    answer: Answer,
    /// More of that answer comes, piece by piece.
    answer_goes_on: bool,
    wanted: Wanted,
    /// The framework has written all it was given when it was here last.
    is_written: bool,
    /// Cuts it later, if it is there still.
    cutting: Option<Cutting>,
    /// Cuts it if its client does not end what it has begun.
    unfinished: Option<Cutting>,
}

/// How far the answer is to the request that the framework was given last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Nothing of it is written to a request that is not whole, or all of it is on its way.
    NotAwaited,
    /// Nothing of it is written.
    Awaited,
    /// Something of it is written. More of it may come, or of the request.
    Begun,
    /// Nothing is read behind it.
    Last,
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
    fn writes(&mut self, bytes: &[u8]) {
        self.is_written = false;
        // A request may be answered before it is whole.
        let is_asked =
            self.answer == Answer::Awaited || (self.answer == Answer::NotAwaited && self.requests.is_in_body());
        if is_asked && !CONTINUE.ends_with(bytes) {
            self.answer = Answer::Begun;
            if self.requests.is_in_body() {
                // The framework says that it takes nothing behind this, and is not to be proved wrong.
                self.shortcut = None;
            }
        }
    }

    fn flushed(&mut self) {
        self.is_written = true;
        self.read_on();
        if let Wanted::WhenFlushed(waiting) = &self.wanted {
            waiting.wake_by_ref();
            self.wanted = Wanted::Now;
        }
    }

    /// Whether the answer is on its way, as far as it has come.
    fn is_on_its_way(&self) -> bool {
        self.answer == Answer::Begun && self.is_written && !self.answer_goes_on
    }

    /// How long its client may take to end what it has begun, where nobody else waits for that.
    fn patience(&self) -> Option<Duration> {
        if self.requests.is_in_head() {
            Some(HEAD_MAX)
        } else {
            (self.requests.is_in_body() && self.is_on_its_way()).then_some(BODY_MAX)
        }
    }

    /// Has the next request read, if the answer to the one before is on its way.
    fn read_on(&mut self) {
        if self.is_on_its_way() && !self.requests.is_in_body() {
            (self.answer, self.answered) = (Answer::NotAwaited, Some(Instant::now()));
            if let Some(reads) = self.reads.take() {
                reads.wake();
            }
        }
    }

    /// Whether a request that comes may have an answer beneath the framework, or one has it just now.
    fn has_shortcut(&self) -> bool {
        let is_between = self.answer == Answer::NotAwaited && self.left.is_empty() && !self.requests.is_in_body();
        let may_come = || self.shortcut.is_some() && self.stream.is_some() && self.answered.is_some_and(is_short_ago);
        !self.is_ending && (self.answering.is_some() || (is_between && may_come()))
    }

    /// Answers what comes beneath the framework, as long as that goes; ready when there is something for it.
    fn poll_shortcut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.has_shortcut() {
            return Poll::Ready(());
        }
        let mut space = [const { MaybeUninit::uninit() }; SHORTCUT_BYTES];
        let mut read = ReadBuf::uninit(&mut space);
        // What goes wrong, and an end, the framework comes upon as well.
        if ready!(self.poll_read(cx, &mut read)).is_ok() {
            self.left = [read.filled(), &self.left].concat().into();
        }
        Poll::Ready(())
    }

    /// Gives the framework what it may read.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.left.is_empty() && buf.remaining() > 0 {
            ready!(self.poll_answering(cx))?;
            if self.answer != Answer::NotAwaited && !self.requests.is_in_body() {
                return self.poll_end(cx, buf);
            }
            let before = buf.filled().len();
            let is_from_stream = self.behind.is_empty();
            if is_from_stream {
                ready!(self.poll_stream(cx, buf))?;
            } else {
                buf.put_slice(&self.behind[..buf.remaining().min(self.behind.len())]);
            }
            let came = &buf.filled()[before..];
            if came.is_empty() {
                self.left = self.requests.end().into();
                break;
            }
            let shortcut = self.shortcut.as_ref().filter(|_| self.answered.is_some_and(is_short_ago));
            let Read { made, behind, ended } = self.requests.read(came, |head, body| {
                self.answering = shortcut.and_then(|shortcut| shortcut.answer(head, body));
                self.answering.is_some()
            });
            let (read, behind) = came.split_at(came.len() - behind);
            if is_from_stream {
                self.behind.extend_from_slice(behind);
            } else {
                self.behind.advance(read.len());
            }
            let end = before + read.len();
            match ended {
                None => {}
                Some(Ended { is_last: true }) => self.answer = Answer::Last,
                Some(_) if self.answer == Answer::NotAwaited => self.answer = Answer::Awaited,
                Some(_) => self.read_on(),
            }
            let Some(made) = made else {
                buf.set_filled(end);
                return Poll::Ready(Ok(()));
            };
            buf.set_filled(before);
            self.left = made.into();
        }
        let room = buf.remaining().min(self.left.len());
        buf.put_slice(&self.left.split_to(room));
        Poll::Ready(Ok(()))
    }

    /// Answers the request that the framework was not given, if there is one.
    fn poll_answering(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let (Some(answering), Some(stream)) = (&mut self.answering, &mut self.stream) {
            ready!(answering.poll_write(cx, stream))?;
        }
        self.answering = None;
        Poll::Ready(Ok(()))
    }

    /// Gives the framework nothing but the end of what its client says, which it is to know of while it answers, too.
    /// What else comes waits behind the request, as far as there is room.
    fn poll_end(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        while self.behind.len() < BEHIND_BYTES_MAX {
            let Poll::Ready(came) = self.poll_stream(cx, buf) else { break };
            came?;
            if buf.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
            self.behind.extend_from_slice(&buf.filled()[before..]);
            buf.set_filled(before);
        }
        if !self.behind.is_empty() {
            self.reads = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    fn poll_stream(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Some(stream) => Pin::new(stream).poll_read(cx, buf),
            None => Poll::Ready(Err(taken())),
        }
    }
}

/// Whether the framework will not end a connection soon for what it said last.
fn is_short_ago(answered: Instant) -> bool {
    answered.elapsed() < SHORTCUT_FOR
}

impl Detachable {
    /// What is written leaves at once: an answer in pieces would wait for the client to acknowledge the one before, and
    /// clients take 40 ms for that.
    pub fn new(stream: TcpStream, shortcut: Option<Rc<dyn Shortcut>>) -> Detachable {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection's pieces may wait for each other");
        }
        Detachable(Rc::new(RefCell::new(Socket {
            stream: Some(stream),
            left: Bytes::new(),
            behind: BytesMut::new(),
            reads: None,
            task: None,
            requests: Requests::default(),
            shortcut,
            answering: None,
            is_ending: false,
            answered: None,
            answer: Answer::NotAwaited,
            answer_goes_on: false,
            wanted: Wanted::Not,
            is_written: true,
            cutting: None,
            unfinished: None,
        })))
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

    /// The answer to the request that is answered goes on until what is returned is dropped.
    pub fn answer_goes_on(&self) -> GoingOn {
        self.0.borrow_mut().answer_goes_on = true;
        GoingOn(self.clone())
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

    /// Has its client end what it has begun in time, if nobody else does.
    fn watch_unfinished(&self) {
        let (patience, is_watched) = {
            let socket = self.0.borrow();
            (socket.patience(), socket.unfinished.is_some())
        };
        if patience.is_some() != is_watched {
            let unfinished = patience.map(|patience| self.cut_when(sleep(patience)));
            self.0.borrow_mut().unfinished = unfinished;
        }
    }

    /// Answers what comes beneath the framework, as long as that goes; ready when there is something for it.
    pub fn poll_shortcut(&self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.0.borrow_mut().poll_shortcut(cx);
        self.watch_unfinished();
        polled
    }

    /// Has what comes wake this task, whoever reads it.
    pub fn wake_by_reads(&self, task: &Waker) {
        let known = &mut self.0.borrow_mut().task;
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
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

/// An answer that goes on, piece by piece, until this is dropped.
pub struct GoingOn(Detachable);

impl Drop for GoingOn {
    fn drop(&mut self) {
        // The end of the answer is flushed behind this.
        self.0.0.borrow_mut().answer_goes_on = false;
    }
}

/// The framework ends a connection without a word that was aborted.
fn taken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was taken over")
}

impl AsyncRead for Detachable {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.0.borrow().stream.is_none() {
            return Poll::Ready(Err(taken()));
        }
        let read = {
            let mut socket = self.0.borrow_mut();
            match socket.task.clone() {
                Some(task) => socket.poll_read(&mut Context::from_waker(&task), buf),
                None => socket.poll_read(cx, buf),
            }
        };
        self.watch_unfinished();
        read
    }
}

impl AsyncWrite for Detachable {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().writes(bytes);
        self.with_stream(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    /// The framework calls this when it has written all it has.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().flushed();
        self.watch_unfinished();
        self.with_stream(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Of what it was not given the framework does not know that it is under way.
        let mut socket = self.0.borrow_mut();
        socket.is_ending = true;
        ready!(socket.poll_answering(cx))?;
        drop(socket);
        self.with_stream(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
pub(super) mod tests;
