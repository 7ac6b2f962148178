//! What the bodies of requests take in memory, all of them together.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Room is given in pieces of so many bytes.
const PIECE_BYTES: usize = 1 << 10;

/// When there may be room again, in seconds.
const RETRY_AFTER_SECS: &str = "1";

/// Room for the bodies of requests, from their second piece until nobody needs them any more. The first needs none: it
/// is no longer than what is read from a connection at once, and most have no other.
#[derive(Clone)]
pub struct Bodies {
    /// A permit for each piece that is free.
    free: Arc<Semaphore>,
    pieces: usize,
    bytes_max: usize,
}

impl Bodies {
    /// Room for so many bytes.
    pub fn new(bytes_max: usize) -> Bodies {
        // One more than fit: two bodies that together are as long as may be need not end with a piece.
        let pieces = bytes_max.div_ceil(PIECE_BYTES) + 1;
        Bodies { free: Arc::new(Semaphore::new(pieces)), pieces, bytes_max }
    }

    /// How many bytes are taken now.
    pub fn bytes(&self) -> usize {
        (self.pieces - self.free.available_permits()) * PIECE_BYTES
    }

    /// A body of at most so many bytes, of which nothing has come. It takes room for no more than it is said to have.
    pub fn begin(&self, bytes_max: usize, said: Option<usize>) -> Body {
        Body { bodies: self.clone(), bytes: Vec::new(), room: None, bytes_max, said }
    }

    /// Room for so many bytes more than there is already.
    fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).ok();
        pieces.and_then(|pieces| Arc::clone(&self.free).try_acquire_many_owned(pieces).ok()).ok_or_else(|| {
            let bytes_max = self.bytes_max;
            let reason =
                format!("the bodies of requests take all of the {bytes_max} bytes that they may take together");
            ApiError::unavailable(reason, RETRY_AFTER_SECS)
        })
    }
}

/// A body, as far as it has come.
pub struct Body {
    bodies: Bodies,
    bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
    bytes_max: usize,
    /// How many bytes it will have, as far as that is known.
    said: Option<usize>,
}

impl Body {
    /// Adds what came next.
    ///
    /// # Errors
    /// 413 `too_large`; 503 when other bodies leave no room for it.
    pub fn add(&mut self, piece: &[u8]) -> Result<(), ApiError> {
        let bytes = self.bytes.len() + piece.len();
        if bytes > self.bytes_max {
            return Err(too_large(self.bytes_max));
        }
        if bytes > self.bytes.capacity() {
            self.grow(bytes)?;
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Makes room for so many bytes, and for more of them, so that it need not grow with each piece.
    fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let most = self.said.unwrap_or(self.bytes_max).min(self.bytes_max);
        let capacity = (2 * self.bytes.len()).min(most).max(bytes).next_multiple_of(PIECE_BYTES);
        let room = self.bodies.room(capacity - self.bytes.capacity())?;
        match &mut self.room {
            Some(held) => held.merge(room),
            None => self.room = Some(room),
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }

    /// All of it.
    pub fn end(self) -> Bytes {
        Bytes::from_owner(Whole { bytes: self.bytes, _room: self.room })
    }
}

/// 413 for a body of more bytes than this.
pub fn too_large(bytes_max: usize) -> ApiError {
    ApiError::too_large(format!("the request entity is too large: at most {bytes_max} bytes are accepted"))
}

/// A body that has its room for as long as anybody has a part of it.
struct Whole {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;

    use super::*;

    const MIB: usize = 1 << 20;

    fn status(added: Result<(), ApiError>) -> Option<u16> {
        added.err().map(|error| error.status_code().as_u16())
    }

    #[test]
    fn bodies_have_their_room_until_nobody_needs_them() {
        let bodies = Bodies::new(MIB);
        let mut body = bodies.begin(MIB, None);
        assert_eq!(bodies.bytes(), 0);
        for _ in 0..100 {
            body.add(&[b'a'; 10]).ok().unwrap();
        }
        assert_eq!(bodies.bytes(), PIECE_BYTES, "small pieces share their room");
        let mut other = bodies.begin(2 * MIB, None);
        assert_eq!(status(other.add(&vec![b'b'; MIB + 1])), Some(503), "the first has a part of it");
        other.add(&vec![b'b'; MIB]).ok().unwrap();
        assert_eq!(status(body.add(&[b'a'; 100])), Some(503));
        body.add(&[b'a'; 24]).ok().unwrap();
        let whole = body.end();
        assert_eq!(*whole, [b'a'; 1024]);
        let part = whole.slice(..1);
        drop((whole, other));
        assert_eq!(bodies.bytes(), PIECE_BYTES, "a part of it is needed");
        drop(part);
        assert_eq!(bodies.bytes(), 0);
    }

    #[test]
    fn a_body_takes_room_for_no_more_than_it_is_said_to_have() {
        for (said, room) in [(Some(600_000), 600_064), (None, MIB), (Some(1), 600_064)] {
            let bodies = Bodies::new(MIB);
            let mut body = bodies.begin(MIB, said);
            for bytes in [550_000, 50_000] {
                body.add(&vec![b'a'; bytes]).ok().unwrap();
            }
            assert_eq!(bodies.bytes(), room, "{said:?}");
        }
    }

    #[test]
    fn there_is_room_for_what_fits_whatever_its_pieces() {
        for bytes_max in [10, 2_000_000, MIB] {
            let bodies = Bodies::new(bytes_max);
            let halves = [(); 2].map(|()| {
                let mut body = bodies.begin(bytes_max / 2, None);
                for piece in vec![b'a'; bytes_max / 2].chunks(9_999) {
                    body.add(piece).ok().unwrap();
                }
                body.end().len()
            });
            assert_eq!(halves, [bytes_max / 2; 2]);
        }
    }

    #[test]
    fn a_body_is_no_longer_than_it_may_be() {
        let bodies = Bodies::new(MIB);
        let mut body = bodies.begin(4, None);
        body.add(b"123").ok().unwrap();
        assert_eq!(status(body.add(b"45")), Some(413));
        body.add(b"4").ok().unwrap();
        assert_eq!(*body.end(), *b"1234");
    }
}
