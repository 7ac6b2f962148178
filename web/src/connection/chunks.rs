//! Where a body in chunks ends.

/// A body in chunks, as far as it has come. What the framework takes for one ends where it does there; of what it
/// refuses, and ends the connection for, no more is told than that.
///
/// Source: RFC 9112, 7.1.
#[derive(Debug, Clone, Copy)]
pub enum Chunks {
    /// In the size of a chunk.
    Size(u64),
    /// In what stands behind that size, up to the end of its line.
    Extension(u64),
    /// Behind the first of the two bytes that end this line.
    SizeEnd(u64),
    /// In a chunk, or in the two bytes behind it, of which so many come still.
    Chunk(u64),
    /// At the beginning of a line behind the last chunk, which is empty. An empty line ends the body.
    Line,
    /// In such a line.
    Trailer,
    /// Behind the first of the two bytes that end it.
    TrailerEnd,
    /// Behind the first of the two bytes of the empty line.
    End,
}

/// What ends a chunk.
const CHUNK_END_BYTES: u64 = 2;

impl Chunks {
    /// A body of which nothing has come.
    pub const BEGIN: Chunks = Chunks::Size(0);

    /// Goes on with what comes next, as far as it belongs to the body: how many bytes do so, and how it goes on behind
    /// them, if it does.
    pub fn read(mut self, bytes: &[u8]) -> (usize, Option<Chunks>) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if let Chunks::Chunk(left) = self {
                let there = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                let left = left - there as u64;
                (at, self) = (at + there, if left == 0 { Chunks::BEGIN } else { Chunks::Chunk(left) });
                continue;
            }
            at += 1;
            match self.behind(byte) {
                Some(next) => self = next,
                None => return (at, None),
            }
        }
        (at, Some(self))
    }

    /// How it goes on behind a byte outside of chunks, if it does.
    fn behind(self, byte: u8) -> Option<Chunks> {
        Some(match (self, byte) {
            (Chunks::Size(size), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Chunks::Size(size.saturating_mul(16).saturating_add(digit.into()))
            }
            (Chunks::Size(size) | Chunks::Extension(size), b'\r') => Chunks::SizeEnd(size),
            (Chunks::Size(size) | Chunks::Extension(size), _) => Chunks::Extension(size),
            (Chunks::SizeEnd(0) | Chunks::TrailerEnd, _) => Chunks::Line,
            (Chunks::SizeEnd(size), _) => Chunks::Chunk(size.saturating_add(CHUNK_END_BYTES)),
            (Chunks::Chunk(_), _) => self,
            (Chunks::Line, b'\r') => Chunks::End,
            (Chunks::Trailer, b'\r') => Chunks::TrailerEnd,
            (Chunks::Line | Chunks::Trailer, _) => Chunks::Trailer,
            (Chunks::End, _) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use actix_http::h1::{Codec, Message};
    use actix_web::rt::System;
    use bytes::BytesMut;
    use proptest::prelude::*;
    use tokio_util::codec::Decoder;

    use super::*;

    const HEAD: &[u8] = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// How many of these bytes the framework takes for a body in chunks: none while that goes on.
    fn framework_reads(body: &[u8]) -> Result<Option<usize>, actix_http::error::ParseError> {
        let mut codec = System::new().block_on(async { Codec::default() });
        let mut bytes = BytesMut::from(&[HEAD, body].concat()[..]);
        while let Some(message) = codec.decode(&mut bytes)? {
            if let Message::Chunk(None) = message {
                return Ok(Some(body.len() - bytes.len()));
            }
        }
        Ok(None)
    }

    /// The same by what is here, of bytes that come in pieces.
    fn read(body: &[u8], length: usize) -> Option<usize> {
        let (mut chunks, mut at) = (Chunks::BEGIN, 0);
        for piece in body.chunks(length) {
            let (read, next) = chunks.read(piece);
            at += read;
            match next {
                Some(next) => {
                    assert_eq!(read, piece.len(), "all of it belongs to the body");
                    chunks = next;
                }
                None => return Some(at),
            }
        }
        None
    }

    #[test]
    fn a_body_ends_where_the_framework_ends_it() {
        for (body, behind) in [
            ("0\r\n\r\n", ""),
            ("0\r\n\r\n", "GET / HTTP/1.1\r\n"),
            ("2\r\n{}\r\n000\r\n\r\n", "\r\n"),
            ("00000000000000000000002 \t;a=\"b\"\r\n\r\n\r\n0;c\r\n\r\n", "0\r\n"),
            ("A\r\n0123456789\r\n0\r\nX-Sum: abc\r\nY:\r\n\r\n", "Z"),
            ("0\r\nXXGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET"),
            ("0\r\n\n\n\r\n\r\n", "\r\n"),
        ] {
            let sent = [body, behind].concat();
            assert_eq!(framework_reads(sent.as_bytes()).ok(), Some(Some(body.len())), "{sent:?}");
            for length in 1..=sent.len() {
                assert_eq!(read(sent.as_bytes(), length), Some(body.len()), "{sent:?} in pieces of {length}");
            }
            assert_eq!(read(&sent.as_bytes()[..body.len() - 1], 3), None, "{body:?} without its end");
        }
    }

    fn any_part() -> impl Strategy<Value = &'static str> {
        prop::sample::select(
            &["0", "1", "2", "b", "\r\n", "\r", "\n", ";", " ", "x", "0\r\n", "\r\n0\r\n", "1\r\na\r\n"][..],
        )
    }

    proptest! {
        #[test]
        fn whatever_the_framework_takes_ends_here_where_it_does_there(
            parts in prop::collection::vec(any_part(), 0..12),
            length in 1_usize..20,
        ) {
            let body = parts.concat();
            // What it refuses ends the connection.
            if let Ok(end) = framework_reads(body.as_bytes()) {
                prop_assert_eq!(read(body.as_bytes(), length), end);
            }
        }
    }
}
