//! What a client says on a WebSocket, and what is answered.

pub use actix_http::ws::{CloseCode, CloseReason};
use actix_http::ws::{Codec, Frame, Item as Fragment, Message, ProtocolError};
use bytes::{Bytes, BytesMut};
use seqtide::EndReason;
use tokio_util::codec::{Decoder, Encoder};

/// What is left of a close frame's 125 bytes after the code.
const CLOSE_REASON_BYTES_MAX: usize = 123;

/// So many answers wait for a client that asks for them faster than it takes them; then the last takes the place of the
/// one before.
pub const ANSWERS_MAX: usize = 64;

/// A client that has its feed has nothing to say but pings and the end.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The longest head of a frame.
const HEAD_BYTES_MAX: usize = 14;

/// Bytes of a client, as far as they are no whole frame yet.
pub struct Heard {
    codec: Codec,
    unread: BytesMut,
    /// The beginning of a text that comes in fragments, as browsers send long ones.
    text: BytesMut,
    message_bytes_max: usize,
}

/// What a client says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A text message.
    Text(Bytes),
    /// It wants this back.
    Ping(Bytes),
    /// The connection ends, with this code and text: it wants so, or breaks a rule.
    Over(CloseCode, &'static str),
}

/// What is due to what a client says once its feed has its options.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// This frame, and the feed goes on.
    Answer(Bytes),
    /// A close frame with this code and text; nothing follows it.
    Last(CloseCode, &'static str),
}

/// How a connection ends on which options come later than they are taken.
pub const LATE_OPTIONS: (CloseCode, &str) = (CloseCode::Policy, "options are taken from the URL or the first message");

/// The reply to what a client says.
pub fn reply(said: Said) -> Reply {
    match said {
        Said::Ping(data) => Reply::Answer(frame(&mut Codec::new(), Message::Pong(data))),
        Said::Text(_) => {
            let (code, why) = LATE_OPTIONS;
            Reply::Last(code, why)
        }
        Said::Over(code, why) => Reply::Last(code, why),
    }
}

impl Heard {
    /// Of a client whose messages may have so many bytes.
    pub fn new(message_bytes_max: usize) -> Heard {
        let codec = Codec::new().max_size(message_bytes_max);
        Heard { codec, unread: BytesMut::new(), text: BytesMut::new(), message_bytes_max }
    }

    /// From now on its messages may have no more than [`MESSAGE_BYTES_MAX`], also one that has begun.
    pub fn bound_messages(&mut self) {
        self.codec = std::mem::take(&mut self.codec).max_size(MESSAGE_BYTES_MAX);
        self.message_bytes_max = MESSAGE_BYTES_MAX;
    }

    /// Whether nothing is left of what it said.
    pub fn is_empty(&self) -> bool {
        self.unread.is_empty() && self.text.is_empty()
    }

    /// Adds what came.
    pub fn add(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// What it says next; `None` when more has to come first.
    pub fn next(&mut self) -> Option<Said> {
        loop {
            return Some(match self.codec.decode(&mut self.unread) {
                // A frame's length is looked at when all of it is there, which must not be waited for.
                Ok(None) if self.unread.len() > self.message_bytes_max + HEAD_BYTES_MAX => TOO_LARGE,
                Ok(None) => return None,
                Ok(Some(Frame::Pong(_))) => continue,
                Ok(Some(Frame::Text(text))) => Said::Text(text),
                Ok(Some(Frame::Continuation(Fragment::FirstText(part) | Fragment::Continue(part)))) => {
                    match self.take_part(&part) {
                        Some(over) => over,
                        None => continue,
                    }
                }
                Ok(Some(Frame::Continuation(Fragment::Last(part)))) => {
                    self.take_part(&part).unwrap_or_else(|| Said::Text(self.text.split().freeze()))
                }
                Ok(Some(Frame::Ping(data))) => Said::Ping(data),
                Ok(Some(Frame::Close(_))) => Said::Over(CloseCode::Normal, ""),
                Ok(Some(Frame::Binary(_) | Frame::Continuation(Fragment::FirstBinary(_)))) => {
                    Said::Over(CloseCode::Unsupported, "send options as text")
                }
                Err(ProtocolError::Overflow) => TOO_LARGE,
                Err(_) => Said::Over(CloseCode::Protocol, "what was sent is no frame of a client"),
            });
        }
    }

    /// Takes a part of a text; says so where the text is too large with it.
    fn take_part(&mut self, part: &[u8]) -> Option<Said> {
        if self.text.len() + part.len() > self.message_bytes_max {
            return Some(TOO_LARGE);
        }
        self.text.extend_from_slice(part);
        None
    }
}

/// What is said to who sends more than it may.
const TOO_LARGE: Said = Said::Over(CloseCode::Size, "the message is too large");

/// The code with which a connection ends whose feed has ended.
pub fn code_of(reason: EndReason) -> CloseCode {
    if reason == EndReason::Shutdown { CloseCode::Away } else { CloseCode::Normal }
}

/// Whether a frame is the answer to a ping.
pub fn is_pong(frame: &Bytes) -> bool {
    /// A whole message, and its kind.
    const BEGIN: u8 = 0x80 | 0xa;
    frame.first() == Some(&BEGIN)
}

/// The frame that ends a connection; it has room for the beginning of a long text.
pub fn close(code: CloseCode, text: &str) -> Bytes {
    let mut end = text.len().min(CLOSE_REASON_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let description = (end > 0).then(|| text[..end].to_owned());
    frame(&mut Codec::new(), Message::Close(Some(CloseReason { code, description })))
}

/// A message, or a part of one, as it is sent.
pub fn frame(codec: &mut Codec, message: Message) -> Bytes {
    let mut out = BytesMut::new();
    if let Err(error) = codec.encode(message, &mut out) {
        tracing::error!(%error, "a message that no WebSocket takes");
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0x80 | opcode, 0x80 | length, 0, 0, 0, 0][..], payload].concat()
    }

    #[test]
    fn frames_are_heard_however_they_come() {
        let bytes = [masked(9, b"hi"), masked(10, b"pong"), masked(1, b"{}"), masked(8, b"")].concat();
        let expected =
            [Said::Ping(Bytes::from("hi")), Said::Text(Bytes::from("{}")), Said::Over(CloseCode::Normal, "")];
        for size in 1..bytes.len() {
            let mut heard = Heard::new(1000);
            let mut said = Vec::new();
            for piece in bytes.chunks(size) {
                heard.add(piece);
                said.extend(std::iter::from_fn(|| heard.next()));
            }
            assert_eq!(said, expected, "pieces of {size}");
            assert!(heard.is_empty());
        }
    }

    /// A frame that another of its message follows.
    fn unfinished(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = masked(opcode, payload);
        frame[0] &= 0x7f;
        frame
    }

    #[test]
    fn a_text_may_come_in_fragments_with_others_between_them() {
        let bytes =
            [unfinished(1, b"{\"a\""), masked(9, b"hi"), unfinished(0, b":"), masked(0, b"1}"), masked(1, b"{}")];
        let mut heard = Heard::new(8);
        heard.add(&bytes.concat());
        let said: Vec<Said> = std::iter::from_fn(|| heard.next()).collect();
        assert_eq!(said, [Said::Ping("hi".into()), Said::Text("{\"a\":1}".into()), Said::Text("{}".into())]);
        let mut large = Heard::new(8);
        large.add(&[unfinished(1, &[b'x'; 6]), unfinished(0, &[b'x'; 3])].concat());
        assert_eq!(large.next(), Some(TOO_LARGE), "each of them would do");
        let mut binary = Heard::new(8);
        binary.add(&unfinished(2, b"x"));
        assert!(matches!(binary.next(), Some(Said::Over(CloseCode::Unsupported, _))));
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let mut large = Heard::new(10);
        large.add(&masked(1, &[b'x'; 11]));
        let mut unmasked = Heard::new(10);
        unmasked.add(&[0x81, 1, b'x']);
        let mut binary = Heard::new(10);
        binary.add(&masked(2, b"x"));
        // Its length is said first; the client is not listened to until all of it is there.
        let mut endless = Heard::new(10);
        endless.add(&[&[0x81, 0xff][..], &(1_u64 << 40).to_be_bytes(), &[0; 4], &[b'x'; 11]].concat());
        let code = |heard: &mut Heard| match heard.next() {
            Some(Said::Over(code, _)) => code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(&mut large), CloseCode::Size);
        assert_eq!(code(&mut endless), CloseCode::Size);
        assert_eq!(code(&mut unmasked), CloseCode::Protocol);
        assert_eq!(code(&mut binary), CloseCode::Unsupported);
    }

    #[test]
    fn what_is_said_is_answered_or_ends_the_connection() {
        assert_eq!(reply(Said::Ping("hi".into())), Reply::Answer(Bytes::from_static(b"\x8a\x02hi")));
        assert!(matches!(reply(Said::Text("{}".into())), Reply::Last(CloseCode::Policy, _)));
        assert_eq!(reply(Said::Over(CloseCode::Normal, "")), Reply::Last(CloseCode::Normal, ""));
    }

    #[test]
    fn a_close_frame_has_room_for_the_beginning_of_its_text() {
        let frame = close(CloseCode::Policy, &"ü".repeat(100));
        assert_eq!(usize::from(frame[1]), frame.len() - 2);
        assert!(frame.len() <= 127 && std::str::from_utf8(&frame[4..]).is_ok());
    }
}
