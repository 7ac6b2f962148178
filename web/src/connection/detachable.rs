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
pub(super) mod tests {
    use std::io::{Read, Write};
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;
    use tokio_util::task::TaskTracker;

    use super::*;

    /// A connection's two ends: what the framework has, and the client's.
    async fn connection() -> (Detachable, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Detachable::new(listener.accept().await.unwrap().0, None), client)
    }

    /// Answers a `PUT` with its body, once it is told to.
    struct Echo {
        told: Rc<Notify>,
        under_way: TaskTracker,
    }

    impl Shortcut for Echo {
        fn answer(&self, head: &httparse::Request<'_, '_>, body: &[u8]) -> Option<Answering> {
            let (told, body) = (Rc::clone(&self.told), body.to_vec());
            let is_put = head.method == Some("PUT");
            is_put.then(|| {
                Answering::new(self.under_way.token(), async move {
                    told.notified().await;
                    body
                })
            })
        }
    }

    /// A connection with a shortcut, whose framework has answered a first request.
    pub async fn connection_with_shortcut() -> (Detachable, TcpStream, Rc<Notify>, TaskTracker) {
        let (told, under_way) = (Rc::<Notify>::default(), TaskTracker::new());
        under_way.close();
        let (mut framework, mut client) = connection().await;
        let echo = Echo { told: Rc::clone(&told), under_way: under_way.clone() };
        framework.0.borrow_mut().shortcut = Some(Rc::new(echo));
        told.notify_one();
        client.write_all(PUT.as_bytes()).await.unwrap();
        is_given(&mut framework, PUT).await;
        framework.write_all(b"0").await.unwrap();
        framework.flush().await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'0');
        assert!(told.notified().now_or_never().is_some(), "nobody else asked whether they were told");
        (framework, client, told, under_way)
    }

    pub const PUT: &str = "PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
    pub const GET: &str = "GET / HTTP/1.1\r\n\r\n";

    async fn is_given(framework: &mut Detachable, request: &str) {
        let mut piece = [0; 1000];
        let length = framework.read(&mut piece).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&piece[..length]), request);
    }

    #[tokio::test]
    async fn what_the_shortcut_answers_the_framework_is_not_given() {
        let (mut framework, mut client, told, under_way) = connection_with_shortcut().await;
        client.write_all([PUT, PUT, GET].concat().as_bytes()).await.unwrap();
        let mut answers = [0; 4];
        {
            let mut given = pin!(is_given(&mut framework, GET));
            let mut answer = pin!(client.read_exact(&mut answers));
            poll_fn(|cx| {
                assert!(given.as_mut().poll(cx).is_pending() && answer.as_mut().poll(cx).is_pending());
                if under_way.is_empty() { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            told.notify_one();
            let telling_again = async {
                tokio::task::yield_now().await;
                told.notify_one();
            };
            let (_, answer, ()) = tokio::join!(given, answer, telling_again);
            assert_eq!(answer.unwrap(), 4);
        }
        assert_eq!(&answers, b"{}{}");
        under_way.wait().await;
        framework.write_all(b"1").await.unwrap();
        framework.flush().await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'1');
    }

    #[tokio::test]
    async fn there_is_a_shortcut_for_some_time_behind_an_answer_of_the_framework() {
        let (mut framework, mut client, _told, _) = connection_with_shortcut().await;
        let long_ago = Instant::now().checked_sub(SHORTCUT_FOR).unwrap();
        framework.0.borrow_mut().answered = Some(long_ago);
        client.write_all(PUT.as_bytes()).await.unwrap();
        is_given(&mut framework, PUT).await;
        framework.write_all(b"1").await.unwrap();
        framework.flush().await.unwrap();
        assert!(framework.0.borrow().answered.is_some_and(is_short_ago));
    }

    #[actix_web::test]
    async fn behind_a_request_that_was_answered_before_it_was_whole_there_is_no_shortcut() {
        let (mut framework, mut client, _told, _) = connection_with_shortcut().await;
        let (head, body) = PUT.split_at(PUT.len() - 2);
        client.write_all(head.as_bytes()).await.unwrap();
        is_given(&mut framework, head).await;
        framework.write_all(b"refused").await.unwrap();
        framework.flush().await.unwrap();
        client.write_all([body, PUT].concat().as_bytes()).await.unwrap();
        is_given(&mut framework, body).await;
        is_given(&mut framework, PUT).await;
    }

    #[tokio::test]
    async fn a_connection_that_is_ended_is_ended_behind_the_answer_that_is_under_way() {
        let (mut framework, mut client, told, under_way) = connection_with_shortcut().await;
        client.write_all(PUT.as_bytes()).await.unwrap();
        poll_fn(|cx| {
            let mut piece = [0; 1000];
            assert!(pin!(framework.read(&mut piece)).poll(cx).is_pending());
            if under_way.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        assert!(framework.shutdown().now_or_never().is_none());
        told.notify_one();
        framework.shutdown().await.unwrap();
        assert!(under_way.is_empty());
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "{}");
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
        let mut rest = [0; 100];
        let more = framework.read(&mut rest).await.unwrap();
        framework.write_all(b"answer").await.unwrap();
        framework.flush().await.unwrap();
        let mut last = String::new();
        framework.read_to_string(&mut last).await.unwrap();
        let head = String::from_utf8_lossy(&[&piece[..length], &rest[..more]].concat()).into_owned();
        assert_eq!((&*head, &*last), ("GET /?%22%22 HTTP/1.1\r\n\r\n", "GET /"));
    }

    #[tokio::test]
    async fn a_request_is_given_when_the_answer_to_the_one_before_is_on_its_way_and_none_behind_the_last() {
        let (mut framework, mut client) = connection().await;
        let requests = ["PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "HEAD /<a> HTTP/1.1\r\n\r\n"];
        let (last, refused) = ("GET /b HTTP/1.1\r\nConnection: close\r\n\r\n", "PUT /c HTTP/1.1\r\n\r\n");
        client.write_all([requests[0], requests[1], last, refused].concat().as_bytes()).await.unwrap();
        let mut piece = [0; 1000];
        for expected in [requests[0], "HEAD /%3Ca%3E HTTP/1.1\r\n\r\n", last] {
            let length = framework.read(&mut piece).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&piece[..length]), expected);
            let mut next = [0; 1];
            assert!(framework.read(&mut next).now_or_never().is_none(), "nothing is written");
            framework.flush().await.unwrap();
            assert!(framework.read(&mut next).now_or_never().is_none(), "nor is it by a flush");
            framework.write_all(b"answer").await.unwrap();
            assert!(framework.read(&mut next).now_or_never().is_none(), "more of it may follow");
            framework.flush().await.unwrap();
        }
        assert!(framework.read(&mut piece).now_or_never().is_none(), "nothing comes behind the last");
    }

    #[tokio::test]
    async fn no_request_is_given_while_an_answer_goes_on() {
        for last in [&b"last"[..], b""] {
            let (mut framework, mut client) = connection().await;
            let handler = framework.clone();
            let request = "GET /a HTTP/1.1\r\n\r\n";
            client.write_all(request.repeat(2).as_bytes()).await.unwrap();
            let mut piece = [0; 1000];
            assert_eq!(framework.read(&mut piece).await.unwrap(), request.len());
            let going_on = handler.answer_goes_on();
            for _ in 0..3 {
                framework.write_all(b"piece").await.unwrap();
                framework.flush().await.unwrap();
                assert!(framework.read(&mut piece).now_or_never().is_none());
            }
            drop(going_on);
            assert!(framework.read(&mut piece).now_or_never().is_none(), "its end may not be written yet");
            framework.write_all(last).await.unwrap();
            framework.flush().await.unwrap();
            assert_eq!(framework.read(&mut piece).await.unwrap(), request.len());
        }
    }

    #[tokio::test]
    async fn what_asks_for_a_body_is_no_answer() {
        let head = "PUT /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        for (first, rest) in [(head, "{}"), (&*[head, "{}"].concat(), "")] {
            let (mut framework, mut client) = connection().await;
            let mut piece = [0; 1000];
            client.write_all(first.as_bytes()).await.unwrap();
            assert_eq!(framework.read(&mut piece).await.unwrap(), first.len());
            // Whole, and what is left of it where the client's end took a part.
            for written in [CONTINUE, &CONTINUE[9..]] {
                framework.write_all(written).await.unwrap();
                framework.flush().await.unwrap();
            }
            client.write_all([rest, head].concat().as_bytes()).await.unwrap();
            if !rest.is_empty() {
                assert_eq!(framework.read(&mut piece).await.unwrap(), rest.len());
            }
            assert!(framework.read(&mut piece).now_or_never().is_none());
            framework.write_all(b"answer").await.unwrap();
            framework.flush().await.unwrap();
            assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
        }
    }

    #[actix_web::test]
    async fn behind_a_request_that_was_answered_before_it_was_whole_the_next_is_given() {
        let (mut framework, mut client) = connection().await;
        let (head, body) = ("PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n", "{}");
        let mut piece = [0; 1000];
        client.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
        framework.write_all(b"refused").await.unwrap();
        framework.flush().await.unwrap();
        client.write_all([body, head].concat().as_bytes()).await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), body.len());
        assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
    }

    #[tokio::test]
    async fn behind_a_request_whose_early_answer_goes_on_the_next_is_not_given() {
        let (mut framework, mut client) = connection().await;
        let (head, body) = ("PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n", "{}");
        let mut piece = [0; 1000];
        client.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
        let going_on = framework.answer_goes_on();
        framework.write_all(b"piece").await.unwrap();
        framework.flush().await.unwrap();
        client.write_all([body, head].concat().as_bytes()).await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), body.len());
        assert!(framework.read(&mut piece).now_or_never().is_none());
        drop(going_on);
        framework.flush().await.unwrap();
        assert_eq!(framework.read(&mut piece).await.unwrap(), head.len());
    }

    #[actix_web::test]
    async fn what_a_client_has_begun_is_watched_until_it_ends() {
        let (mut framework, mut client) = connection().await;
        let handler = framework.clone();
        let is_watched = || handler.0.borrow().unfinished.is_some();
        let mut piece = [0; 1000];
        let chunked = ["PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\n{}\r\n", "0\r\n\r\n"];
        for _ in 0..2 {
            let (line, rest) = ("GET / HTTP/1.1\r\n", "Host: a\r\n\r\n");
            client.write_all(line.as_bytes()).await.unwrap();
            {
                let mut reading = pin!(framework.read(&mut piece));
                poll_fn(|cx| {
                    assert!(reading.as_mut().poll(cx).is_pending(), "it is no head yet");
                    if is_watched() { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                client.write_all(rest.as_bytes()).await.unwrap();
                assert_eq!(reading.await.unwrap(), line.len() + rest.len());
            }
            assert!(!is_watched(), "its head is whole");
            framework.write_all(b"answer").await.unwrap();
            framework.flush().await.unwrap();
            assert!(!is_watched(), "nothing is begun");
            for part in &chunked[..2] {
                client.write_all(part.as_bytes()).await.unwrap();
                assert_eq!(framework.read(&mut piece).await.unwrap(), part.len());
                assert!(!is_watched(), "who reads the body has a patience of its own");
            }
            framework.write_all(b"answer").await.unwrap();
            framework.flush().await.unwrap();
            assert!(is_watched(), "nobody reads it any more");
            client.write_all(chunked[2].as_bytes()).await.unwrap();
            assert_eq!(framework.read(&mut piece).await.unwrap(), chunked[2].len());
            assert!(!is_watched(), "it is whole");
        }
    }

    #[tokio::test]
    async fn a_client_that_leaves_before_its_answer_is_noticed() {
        let (mut framework, mut client) = connection().await;
        let request = b"GET / HTTP/1.1\r\n\r\n";
        for behind in [0, 1, 2] {
            let mut piece = [0; 100];
            client.write_all(&request.repeat(1 + behind)).await.unwrap();
            assert_eq!(framework.read(&mut piece).await.unwrap(), request.len());
            assert!(framework.read(&mut piece).now_or_never().is_none());
            drop(client);
            assert_eq!(framework.read(&mut piece).await.unwrap(), 0, "{behind} behind it");
            (framework, client) = connection().await;
        }
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
