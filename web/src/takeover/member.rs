//! A taken-over connection that reads along with others.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::time::Duration;

use bytes::Bytes;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use seqtide::storage::model::sequence::Sequence;
use seqtide::{EndReason, FeedState, Seat};
use socket2::SockRef;
use tokio::time::Instant;

use super::give_up_silent;
use super::lingering;
use super::offer::{BEHIND_THE_END, Next, Offer};
use super::reading::Apart;
use crate::wire::framing::Framing;
use crate::wire::heard::{ANSWERS_MAX, Heard, MESSAGE_BYTES_MAX, Reply, close, is_pong, reply};

/// Who has said so much at once is heard on when others have had their turn.
const READS_AT_ONCE: usize = 32;

/// What is read at a time.
const READ_BYTES: usize = 4096;

/// What sockets are watched for.
pub const WATCHED_FOR: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Several blocks that have come are written in one go, up to so many parts: a block has one, or a few of a large row.
const PARTS_AT_ONCE: usize = 16;

/// And up to so many bytes: more than one block of usual size is not left to who does not read.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Who has had nothing left so often when it was looked at is likely to have taken what there was, and not only its
/// system.
const GUARDED: u8 = 2;

/// A connection in a group. There are thousands: it has no buffer, and no more than what follows.
pub struct Member {
    pub socket: TcpStream,
    /// Its place among the sockets that are watched.
    pub watched: usize,
    /// Everything up to here was written, or is left to be.
    pub position: Sequence,
    /// What the system had no room for: shares of what is sent to all. Boxed, because hardly anyone has it.
    left: Option<Box<Left>>,
    /// What its client has begun to say, where that is heard.
    heard: Option<Box<Heard>>,
    /// How its feed stands, as it was told last.
    pub state: FeedState,
    /// It is to end with this once everything is written.
    pub ends: Option<EndReason>,
    /// How often it was looked at since something was left to be written last, up to [`GUARDED`].
    calm: u8,
    pub seat: Seat,
}

/// Bytes that are left to be written.
struct Left {
    /// In order.
    parts: VecDeque<Bytes>,
    /// Since when something has been.
    since: Instant,
    /// When some of it was taken last.
    taken: Instant,
}

impl Left {
    fn now(parts: VecDeque<Bytes>) -> Box<Left> {
        let now = Instant::now();
        Box::new(Left { parts, since: now, taken: now })
    }
}

/// What was handed to the system.
#[derive(Debug, Default)]
pub struct Sent {
    pub rows: usize,
    pub bytes: usize,
}

/// How a member stands after it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has all there is.
    UpToDate,
    /// It does not read fast enough: the system says when there is room.
    Full,
    /// It lacks what is not here any more.
    Behind,
    /// It is to end with this, which is not said here.
    Ends(EndReason),
    /// It has the end too.
    Finished,
}

impl Member {
    /// A connection whose socket is watched at this place.
    pub fn new(apart: Apart, watched: usize) -> Member {
        let Apart { socket, heard, position, state, seat } = apart;
        let (socket, left, ends) = (TcpStream::from_std(socket), None, None);
        Member { socket, watched, position, left, heard, state, ends, calm: 0, seat }
    }

    /// The connection, its socket being watched no more.
    pub fn apart(mut self) -> Apart {
        // Whoever has it next comes upon it if it is lost.
        let _ = self.unguard();
        let Member { socket, heard, position, state, seat, .. } = self;
        Apart { socket: socket.into(), heard, position, state, seat }
    }

    /// Ends the connection, on which everything was said and whose socket is watched no more.
    pub fn linger(self) {
        let Apart { socket, seat, .. } = self.apart();
        actix_web::rt::spawn(async move {
            match tokio::net::TcpStream::from_std(socket) {
                Ok(socket) => lingering::end(socket).await,
                Err(error) => tracing::debug!(%error, "the connection of a feed is lost behind its end"),
            }
            // Counted as open until its connection is over.
            drop(seat);
        });
    }

    /// Since when there has been something that is not written.
    pub fn behind_since(&self) -> Option<std::time::Instant> {
        self.left.as_ref().map(|left| left.since.into_std())
    }

    /// Whether something has been left for longer than this of which nothing was taken.
    pub fn has_stalled(&self, longest: Duration) -> bool {
        self.left.as_ref().is_some_and(|left| left.taken.elapsed() > longest)
    }

    /// Writes what it does not have yet, as far as there is room.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn serve(&mut self, offer: &Offer, sent: &mut Sent) -> io::Result<Standing> {
        let (before, rows, bytes) = (self.left.as_ref().map(|left| (left.since, left.taken)), sent.rows, sent.bytes);
        let standing = self.write_on(offer, sent);
        let (rows, bytes) = (sent.rows - rows, sent.bytes - bytes);
        self.seat.count(rows, bytes);
        if let (Some(left), Some((since, taken))) = (&mut self.left, before) {
            left.since = since;
            left.taken = if bytes == 0 { taken } else { Instant::now() };
        }
        standing
    }

    /// Looks at it: the system gives its client up from the second look on that finds nothing left if that acknowledges
    /// nothing for so long, until something is left once more.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn look(&mut self, patience: Duration) -> io::Result<()> {
        if self.left.is_none() && self.calm < GUARDED {
            self.calm += 1;
            if self.calm == GUARDED {
                give_up_silent(SockRef::from(&self.socket), Some(patience))?;
            }
        }
        Ok(())
    }

    fn unguard(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.calm) == GUARDED {
            give_up_silent(SockRef::from(&self.socket), None)?;
        }
        Ok(())
    }

    fn write_on(&mut self, offer: &Offer, sent: &mut Sent) -> io::Result<Standing> {
        loop {
            if !self.write_left(sent)? {
                return Ok(Standing::Full);
            }
            if self.position == BEHIND_THE_END {
                return Ok(Standing::Finished);
            }
            if let Some(reason) = self.ends {
                return Ok(Standing::Ends(reason));
            }
            match offer.next(self.position) {
                Next::Nothing => return Ok(Standing::UpToDate),
                Next::Elsewhere => return Ok(Standing::Behind),
                Next::Blocks(blocks) => {
                    let mut parts: Cow<'_, [Bytes]> = Cow::default();
                    let (mut bytes, mut position) = (0, self.position);
                    for block in blocks {
                        bytes += block.bytes();
                        if !parts.is_empty() && (bytes > BYTES_AT_ONCE || parts.len() >= PARTS_AT_ONCE) {
                            break;
                        }
                        sent.rows += block.rows_behind(position);
                        append(&mut parts, block.parts_behind(position));
                        position = block.to();
                    }
                    self.write(&parts, sent)?;
                    self.position = position;
                }
                Next::OwnEnd(reason) => return Ok(Standing::Ends(reason)),
                Next::End(last) => {
                    self.write(std::slice::from_ref(last), sent)?;
                    self.position = BEHIND_THE_END;
                }
            }
        }
    }

    /// Writes a notice behind all that it was given so far, and what is left of that.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn tell(&mut self, notice: &Bytes, sent: &mut Sent) -> io::Result<()> {
        let before = sent.bytes;
        match &mut self.left {
            Some(left) => left.parts.push_back(notice.clone()),
            None => self.write(std::slice::from_ref(notice), sent)?,
        }
        self.seat.count(0, sent.bytes - before);
        Ok(())
    }

    /// Hears what the client says. On a WebSocket it is answered; else nothing is expected, and it is thrown away. If
    /// there is much of it, the registry says soon that there is more.
    ///
    /// # Errors
    /// When it is gone, or cannot be watched any more.
    pub fn hear(&mut self, framing: Framing, registry: &Registry) -> io::Result<()> {
        let mut said = [0; READ_BYTES];
        for _ in 0..READS_AT_ONCE {
            match self.socket.read(&mut said) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) if framing == Framing::Messages => self.listen(&said[..length])?,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // It is told once that something has come, and anew to who is watched anew.
        registry.reregister(&mut self.socket, Token(self.watched), WATCHED_FOR)
    }

    /// Hears this behind what was said before, and answers.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn listen(&mut self, said: &[u8]) -> io::Result<()> {
        if self.position == BEHIND_THE_END {
            return Ok(());
        }
        let mut heard = self.heard.take().unwrap_or_else(|| Box::new(Heard::new(MESSAGE_BYTES_MAX)));
        heard.add(said);
        while self.position < BEHIND_THE_END
            && let Some(said) = heard.next()
        {
            match reply(said) {
                Reply::Answer(frame) => self.answer(frame)?,
                Reply::Last(code, why) => self.end(close(code, why))?,
            }
        }
        self.heard = Some(heard).filter(|heard| !heard.is_empty() && self.position < BEHIND_THE_END);
        Ok(())
    }

    /// Writes a frame behind what is left.
    fn answer(&mut self, frame: Bytes) -> io::Result<()> {
        match &mut self.left {
            Some(left) => {
                // RFC 6455, 5.5.3: of pings that come before one is answered, the last counts.
                if left.parts.len() >= ANSWERS_MAX && left.parts.back().is_some_and(is_pong) {
                    left.parts.pop_back();
                }
                left.parts.push_back(frame);
            }
            None => self.write(&[frame], &mut Sent::default())?,
        }
        Ok(())
    }

    /// Writes a last frame; nothing follows.
    fn end(&mut self, frame: Bytes) -> io::Result<()> {
        self.answer(frame)?;
        self.position = BEHIND_THE_END;
        Ok(())
    }

    /// Writes as much as there is room for; the rest is left.
    fn write(&mut self, parts: &[Bytes], sent: &mut Sent) -> io::Result<()> {
        let mut written = match parts {
            [part] => self.write_some(part)?,
            parts => self.write_several(parts)?,
        };
        sent.bytes += written;
        let mut left = VecDeque::new();
        for part in parts {
            let of_part = written.min(part.len());
            written -= of_part;
            if of_part < part.len() {
                left.push_back(part.slice(of_part..));
            }
        }
        if !left.is_empty() {
            self.left = Some(Left::now(left));
            self.unguard()?;
            // Perhaps there is room: not all of several goes in one go, and the system tells only who was refused.
            self.write_left(sent)?;
        }
        Ok(())
    }

    /// Whether nothing is left.
    fn write_left(&mut self, sent: &mut Sent) -> io::Result<bool> {
        let Some(mut left) = self.left.take() else { return Ok(true) };
        while let Some(part) = left.parts.front_mut() {
            let written = self.write_some(part)?;
            sent.bytes += written;
            if written < part.len() {
                *part = part.slice(written..);
                self.left = Some(left);
                return Ok(false);
            }
            left.parts.pop_front();
        }
        Ok(true)
    }

    /// Writes the first of several parts in one go.
    fn write_several(&mut self, parts: &[Bytes]) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PARTS_AT_ONCE];
        slices.iter_mut().zip(parts).for_each(|(slice, part)| *slice = IoSlice::new(part));
        let slices = &slices[..parts.len().min(PARTS_AT_ONCE)];
        match self.socket.write_vectored(slices) {
            Ok(0) if slices.iter().any(|slice| !slice.is_empty()) => Err(ErrorKind::WriteZero.into()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            written => written,
        }
    }

    /// Writes until all is written or there is no room.
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match self.socket.write(&bytes[written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
}

/// Adds parts behind others; the first are not copied.
fn append<'a>(parts: &mut Cow<'a, [Bytes]>, more: Cow<'a, [Bytes]>) {
    if parts.is_empty() {
        *parts = more;
    } else {
        parts.to_mut().extend_from_slice(&more);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener};

    use mio::{Events, Poll};
    use seqtide::{Engine, FeedKind, FeedOptions};

    use super::*;

    /// More than is heard at once, and what a system has room for.
    const SAID: usize = READS_AT_ONCE * READ_BYTES + 20_000;

    /// A member, and its client; in this folder, as long as this engine lives.
    async fn member_in(folder: &std::path::Path) -> (Member, std::net::TcpStream, Engine) {
        let engine = Engine::start(folder).unwrap();
        let database = engine.create_database("db").await.unwrap();
        let mut feed = database.feed(FeedOptions::live(FeedKind::Sse)).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        SockRef::from(&listener).set_recv_buffer_size(2 * SAID).unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let (seat, position, state) = (feed.take_seat().unwrap(), Sequence::ZERO, FeedState::Live);
        (Member::new(Apart { socket, heard: None, position, state, seat }, 0), client, engine)
    }

    /// The system tells once of what has come.
    #[tokio::test]
    async fn who_has_said_much_at_once_is_heard_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let (mut member, mut client, _engine) = member_in(folder.path()).await;
        client.write_all(&[b'x'; SAID]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let (mut come, deadline) = (vec![0; 2 * SAID], Instant::now() + Duration::from_secs(60));
        while member.socket.peek(&mut come).unwrap_or_default() < SAID {
            assert!(Instant::now() < deadline, "it does not come");
        }
        let (mut poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(8));
        poll.registry().register(&mut member.socket, Token(0), WATCHED_FOR).unwrap();
        for is_last in [false, true] {
            poll.poll(&mut events, Some(Duration::from_secs(60))).unwrap();
            assert!(events.iter().any(|event| event.is_readable()), "nobody says that there is more");
            let heard = member.hear(Framing::Chunks, poll.registry());
            assert_eq!(
                heard.map_err(|error| error.kind()),
                if is_last { Err(ErrorKind::UnexpectedEof) } else { Ok(()) }
            );
        }
    }

    #[tokio::test]
    async fn who_has_taken_nothing_of_what_is_left_for_longer_than_it_may_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let (mut member, mut client, _engine) = member_in(folder.path()).await;
        let guarded_for = |member: &Member| SockRef::from(&member.socket).tcp_user_timeout().unwrap();
        for guarded in [None, Some(Duration::from_secs(9)), Some(Duration::from_secs(9))] {
            member.look(Duration::from_secs(9)).unwrap();
            assert_eq!(guarded_for(&member), guarded);
        }
        // More than the system's buffers take.
        member.tell(&Bytes::from(vec![b'x'; 32 << 20]), &mut Sent::default()).unwrap();
        assert_eq!(guarded_for(&member), None, "it reads slowly");
        let offer = Offer::behind(Sequence::ZERO);
        let (longest, deadline) = (Duration::from_millis(100), Instant::now() + Duration::from_secs(60));
        let mut has_stalled = || {
            assert_eq!(member.serve(&offer, &mut Sent::default()).unwrap(), Standing::Full);
            assert!(Instant::now() < deadline);
            member.has_stalled(longest)
        };
        // The client's system may take some more before its buffers are full.
        while !has_stalled() {
            std::thread::sleep(longest * 2);
        }
        client.set_nonblocking(true).unwrap();
        while has_stalled() {
            // What there is of it now.
            let _ = client.read(&mut vec![0; 1 << 20]);
        }
    }
}
