//! How bytes of a feed are put on a connection that the framework does not write to any more.

use bytes::Bytes;
use seqtide::EndReason;

use super::heard::{CloseCode, close, code_of};

/// What is put around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Chunks of HTTP/1.1.
    Chunks,
    /// Messages of a WebSocket, each a JSON array.
    Messages,
}

/// The first byte of a text message that is one frame.
const TEXT: u8 = 0x81;

impl Framing {
    /// What comes before so many bytes, of which there is one at least: an empty chunk is the last one.
    ///
    /// Source: RFC 9112, section 7.1; RFC 6455, section 5.2.
    pub fn before(self, bytes: usize) -> Bytes {
        match self {
            Framing::Chunks => format!("{bytes:x}\r\n").into(),
            Framing::Messages => {
                let payload = bytes + "[]".len();
                let mut head = vec![TEXT];
                match (u8::try_from(payload), u16::try_from(payload)) {
                    (Ok(length @ ..126), _) => head.push(length),
                    (_, Ok(length)) => {
                        head.push(126);
                        head.extend(length.to_be_bytes());
                    }
                    _ => {
                        head.push(127);
                        head.extend((payload as u64).to_be_bytes());
                    }
                }
                head.push(b'[');
                head.into()
            }
        }
    }

    /// What comes between rows.
    pub fn between(self) -> &'static [u8] {
        match self {
            Framing::Chunks => b"",
            Framing::Messages => b",",
        }
    }

    /// What comes behind them.
    pub fn behind(self) -> Bytes {
        match self {
            Framing::Chunks => Bytes::from_static(b"\r\n"),
            Framing::Messages => Bytes::from_static(b"]"),
        }
    }

    /// What says that nothing follows.
    pub fn last(self, reason: EndReason) -> Bytes {
        match self {
            Framing::Chunks => Bytes::from_static(b"0\r\n\r\n"),
            Framing::Messages => close(code_of(reason), reason.name()),
        }
    }

    /// What says that nothing follows because of an error; an answer that is cut short has no last chunk.
    pub fn failed(self, why: &str) -> Bytes {
        match self {
            Framing::Chunks => Bytes::new(),
            Framing::Messages => close(CloseCode::Error, why),
        }
    }

    /// These bytes as they are written; nothing where there are none.
    pub fn around(self, bytes: &[u8]) -> Vec<u8> {
        if bytes.is_empty() {
            return Vec::new();
        }
        [&self.before(bytes.len())[..], bytes, &self.behind()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_its_length_in_as_few_bytes_as_it_may() {
        for (bytes, head) in [
            (1, vec![0x81, 3]),
            (123, vec![0x81, 125]),
            (124, vec![0x81, 126, 0, 126]),
            (65_533, vec![0x81, 126, 255, 255]),
            (65_534, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            assert_eq!(Framing::Messages.before(bytes), [&head[..], b"["].concat(), "{bytes} bytes");
        }
    }
}
