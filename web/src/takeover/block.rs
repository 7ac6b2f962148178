//! Rows joined once for all that are to be sent them.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use seqtide::storage::model::sequence::Sequence;

use crate::wire::framing::Framing;

/// Rows are joined up to so many bytes. A larger one is not copied: it is a block by itself.
const BLOCK_BYTES: usize = 64 << 10;

/// Some rows that follow each other, as they are written.
#[derive(Debug)]
pub struct Block {
    framing: Framing,
    /// Each row, and where in the payload it begins; one at least.
    rows: Vec<(Sequence, usize)>,
    parts: Vec<Bytes>,
    /// Where the rows lie in the only part; of a large row there are several.
    payload: Range<usize>,
}

impl Block {
    /// The last row.
    pub fn to(&self) -> Sequence {
        self.rows.last().map_or(Sequence::ZERO, |(seq, _)| *seq)
    }

    /// About how much memory the block takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum::<usize>() + size_of_val(&self.rows[..])
    }

    /// How many rows lie behind a place.
    pub fn rows_behind(&self, position: Sequence) -> usize {
        self.rows.len() - self.rows_up_to(position)
    }

    fn rows_up_to(&self, position: Sequence) -> usize {
        self.rows.partition_point(|(seq, _)| *seq <= position)
    }

    /// What is to be written for a reader that has everything up to `position`: all of it, or for one that stands
    /// within the block the rows behind that place, in a frame of their own.
    pub fn parts_behind(&self, position: Sequence) -> Cow<'_, [Bytes]> {
        match self.rows.get(self.rows_up_to(position)) {
            None => Cow::default(),
            Some((_, 0)) => Cow::Borrowed(&self.parts),
            Some((_, begin)) => {
                let rows = self.parts[0].slice(self.payload.start + begin..self.payload.end);
                Cow::Owned(vec![self.framing.before(rows.len()), rows, self.framing.behind()])
            }
        }
    }
}

/// Blocks being made.
pub struct Blocks {
    framing: Framing,
    ready: Vec<Block>,
    rows: Vec<(Sequence, usize)>,
    payload: Vec<u8>,
}

impl Blocks {
    pub fn new(framing: Framing) -> Blocks {
        Blocks { framing, ready: Vec::new(), rows: Vec::new(), payload: Vec::new() }
    }

    /// Adds a row, in parts.
    pub fn add(&mut self, seq: Sequence, parts: &[Bytes]) {
        let bytes = parts.iter().map(Bytes::len).sum::<usize>();
        if self.payload.len() + bytes > BLOCK_BYTES {
            self.finish_block();
        }
        if bytes > BLOCK_BYTES {
            let framed = [&[self.framing.before(bytes)], parts, &[self.framing.behind()]].concat();
            self.ready.push(Block { framing: self.framing, rows: vec![(seq, 0)], parts: framed, payload: 0..0 });
        } else {
            if !self.rows.is_empty() {
                self.payload.extend_from_slice(self.framing.between());
            }
            self.rows.push((seq, self.payload.len()));
            parts.iter().for_each(|part| self.payload.extend_from_slice(part));
        }
    }

    /// The blocks, in order.
    pub fn finish(mut self) -> Vec<Block> {
        self.finish_block();
        self.ready
    }

    fn finish_block(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let before = self.framing.before(self.payload.len()).len();
        let payload = before..before + self.payload.len();
        let parts = vec![self.framing.around(&std::mem::take(&mut self.payload)).into()];
        let rows = std::mem::take(&mut self.rows);
        self.ready.push(Block { framing: self.framing, rows, parts, payload });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn blocks(rows: &[(u64, usize)]) -> Vec<Block> {
        let mut blocks = Blocks::new(Framing::Chunks);
        for (version, bytes) in rows {
            blocks.add(seq(*version), &[Bytes::from(vec![b'0' + u8::try_from(*version).unwrap(); *bytes])]);
        }
        blocks.finish()
    }

    fn text(parts: &[Bytes]) -> String {
        String::from_utf8(parts.concat()).unwrap()
    }

    #[test]
    fn rows_are_joined_in_one_chunk_and_cut_where_a_reader_stands() {
        let joined = &blocks(&[(1, 2), (3, 1), (4, 3)])[..];
        let [block] = joined else { panic!("one block, not {joined:?}") };
        assert_eq!((text(&block.parts), block.to()), ("6\r\n113444\r\n".to_owned(), seq(4)));
        for (position, rows, behind) in [
            (0, 3, "6\r\n113444\r\n"),
            (1, 2, "4\r\n3444\r\n"),
            (2, 2, "4\r\n3444\r\n"),
            (3, 1, "3\r\n444\r\n"),
            (4, 0, ""),
            (9, 0, ""),
        ] {
            assert_eq!(text(&block.parts_behind(seq(position))), behind, "behind {position}");
            assert_eq!(block.rows_behind(seq(position)), rows, "behind {position}");
        }
    }

    #[test]
    fn messages_are_arrays_wherever_they_are_cut() {
        let mut blocks = Blocks::new(Framing::Messages);
        (1..=3).for_each(|version| blocks.add(seq(version), &[Bytes::from(version.to_string())]));
        let block = &blocks.finish()[0];
        for (position, message) in [(0, "\u{5}[1,2,3]"), (1, "\u{5}[2,3]"), (2, "\u{3}[3]")] {
            let parts = block.parts_behind(seq(position)).concat();
            let length = message.len() - 1;
            assert_eq!((parts[0], usize::from(parts[1])), (0x81, length), "behind {position}");
            assert_eq!(&parts[2..], &message.as_bytes()[1..], "behind {position}");
        }
    }

    #[test]
    fn a_large_row_is_shared_and_stands_by_itself() {
        let large = Bytes::from(vec![b'x'; BLOCK_BYTES + 1]);
        let mut blocks = Blocks::new(Framing::Chunks);
        blocks.add(seq(1), &[Bytes::from_static(b"a")]);
        blocks.add(seq(2), std::slice::from_ref(&large));
        blocks.add(seq(3), &[Bytes::from_static(b"b")]);
        let blocks = blocks.finish();
        assert_eq!(blocks.iter().map(Block::to).collect::<Vec<_>>(), [seq(1), seq(2), seq(3)]);
        assert_eq!(blocks[1].parts[1].as_ptr(), large.as_ptr(), "not copied");
        assert_eq!(text(&blocks[1].parts).len(), "10001\r\n".len() + large.len() + "\r\n".len());
    }

    #[test]
    fn no_block_is_larger_than_it_may_be() {
        let each = BLOCK_BYTES / 2;
        let blocks = blocks(&[(1, each), (2, each), (3, 1), (4, BLOCK_BYTES)]);
        assert_eq!(blocks.iter().map(|block| block.rows.len()).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
