//! What a feed has to send, in pieces small enough that little lies ready for a client that does not read.
//!
//! A connection takes the next piece when the one before is on its way, and copies it. What waits here of a large row
//! is the row's own frame, shared by all feeds that send it.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The most that is handed to a connection at once.
pub const PIECE_BYTES: usize = 16 << 10;

/// Bytes on their way out, in order.
#[derive(Default)]
pub struct Pieces {
    ready: VecDeque<Bytes>,
    /// Small parts are put together.
    last: BytesMut,
}

impl Pieces {
    /// Adds some: a copy where they are few, else a share of them.
    pub fn add(&mut self, part: Bytes) {
        if self.last.len() + part.len() > PIECE_BYTES {
            self.finish_last();
        }
        if part.len() > PIECE_BYTES {
            self.ready.push_back(part);
        } else {
            self.last.extend_from_slice(&part);
        }
    }

    /// Takes the next piece; `None` when there is nothing left to send.
    pub fn take(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.finish_last();
        }
        let first = self.ready.front_mut()?;
        if first.len() > PIECE_BYTES { Some(first.split_to(PIECE_BYTES)) } else { self.ready.pop_front() }
    }

    /// How many bytes are left to send.
    pub fn bytes(&self) -> usize {
        self.ready.iter().map(Bytes::len).sum::<usize>() + self.last.len()
    }

    fn finish_last(&mut self) {
        if !self.last.is_empty() {
            self.ready.push_back(std::mem::take(&mut self.last).freeze());
        }
    }
}

impl Extend<Bytes> for Pieces {
    fn extend<T: IntoIterator<Item = Bytes>>(&mut self, parts: T) {
        parts.into_iter().for_each(|part| self.add(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pieces: &mut Pieces) -> Vec<Bytes> {
        std::iter::from_fn(|| pieces.take()).collect()
    }

    #[test]
    fn small_parts_leave_together_and_large_ones_in_shares() {
        let large = Bytes::from(vec![b'l'; 2 * PIECE_BYTES + 1]);
        let mut pieces = Pieces::default();
        for part in [Bytes::from_static(b"a"), Bytes::from_static(b"b"), large.clone(), Bytes::from_static(b"c")] {
            pieces.add(part);
        }
        assert_eq!(pieces.bytes(), large.len() + 3);
        let pieces = taken(&mut pieces);
        let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [2, PIECE_BYTES, PIECE_BYTES, 1, 1]);
        assert_eq!(pieces[1].as_ptr(), large.as_ptr(), "shared, not copied");
        assert_eq!([&pieces[0][..], &pieces[4]], [&b"ab"[..], b"c"]);
    }

    #[test]
    fn no_piece_is_larger_than_it_may_be() {
        let mut pieces = Pieces::default();
        for bytes in [1, PIECE_BYTES, 1, PIECE_BYTES - 1, PIECE_BYTES - 1] {
            pieces.add(Bytes::from(vec![0; bytes]));
        }
        assert!(taken(&mut pieces).iter().all(|piece| (1..=PIECE_BYTES).contains(&piece.len())));
        assert_eq!((pieces.take(), pieces.bytes()), (None, 0));
    }
}
