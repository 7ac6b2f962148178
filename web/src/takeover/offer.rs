//! What a group has for its members: the newest blocks, and the end.

use std::cell::Cell;
use std::collections::{VecDeque, vec_deque};
use std::rc::Rc;

use bytes::Bytes;
use seqtide::EndReason;
use seqtide::storage::model::sequence::Sequence;

use super::block::Block;

/// Blocks kept for members that do not have them yet, and for those that come, in order.
pub struct Offer {
    blocks: VecDeque<Block>,
    bytes: usize,
    /// All rows behind this place are here.
    start: Rc<Cell<Sequence>>,
    /// What comes behind the last row, if it is known.
    last: Option<Last>,
}

/// The last words to a feed.
pub struct Last {
    pub words: Bytes,
    /// The place that they name, and why it ends; `None` where they name none.
    pub end: Option<(Sequence, EndReason)>,
}

impl Last {
    /// Words that are the same for all, wherever they are.
    pub fn to_all(words: Bytes) -> Last {
        Last { words, end: None }
    }

    /// What there is for a member that has all rows and everything up to `position`.
    fn behind(&self, position: Sequence) -> Next<'_> {
        match self.end {
            // The words would have it come back to what it has.
            Some((at, reason)) if position > at => Next::OwnEnd(reason),
            _ => Next::End(&self.words),
        }
    }
}

/// What there is for a member.
pub enum Next<'a> {
    /// Nothing that it does not have.
    Nothing,
    /// It has to read for itself: what comes next is not here any more.
    Elsewhere,
    /// Some rows: one block at least.
    Blocks(vec_deque::Iter<'a, Block>),
    /// The end.
    End(&'a Bytes),
    /// An end, in words of its own: it is further on than the others.
    OwnEnd(EndReason),
}

/// The place of who has been given the end.
pub const BEHIND_THE_END: Sequence = Sequence::MAX;

impl Offer {
    /// Nothing yet; what will be here comes behind `start`.
    pub fn behind(start: Sequence) -> Offer {
        Offer { blocks: VecDeque::new(), bytes: 0, start: Rc::new(Cell::new(start)), last: None }
    }

    /// Behind which place all rows are here, also when that changes.
    pub fn start(&self) -> Rc<Cell<Sequence>> {
        Rc::clone(&self.start)
    }

    /// Adds the rows that come next.
    pub fn add(&mut self, blocks: Vec<Block>) {
        self.bytes += blocks.iter().map(Block::bytes).sum::<usize>();
        self.blocks.extend(blocks);
    }

    /// Adds what comes behind the last row.
    pub fn end(&mut self, last: Last) {
        self.last = Some(last);
    }

    /// Whether nothing follows.
    pub fn is_ended(&self) -> bool {
        self.last.is_some()
    }

    /// Forgets the oldest blocks until the others take no more than so many bytes.
    pub fn trim(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.start.set(oldest.to());
        }
    }

    /// What comes next for a member that has everything up to `position`.
    pub fn next(&self, position: Sequence) -> Next<'_> {
        if position < self.start.get() {
            return Next::Elsewhere;
        }
        let is_behind = |block: &&Block| block.to() > position;
        // Nearly everyone keeps up, and lacks the last block or none.
        let next = match self.blocks.iter().rev().take(2).take_while(is_behind).count() {
            2 => self.blocks.partition_point(|block| !is_behind(&block)),
            few => self.blocks.len() - few,
        };
        match &self.last {
            _ if next < self.blocks.len() => Next::Blocks(self.blocks.range(next..)),
            Some(last) if position < BEHIND_THE_END => last.behind(position),
            _ => Next::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::Blocks;
    use super::*;
    use crate::wire::framing::Framing;

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn block(versions: &[u64]) -> Vec<Block> {
        let mut blocks = Blocks::new(Framing::Chunks);
        versions.iter().for_each(|version| blocks.add(seq(*version), &[Bytes::from_static(b"row")]));
        blocks.finish()
    }

    fn next_to(offer: &Offer, position: u64) -> Option<u64> {
        match offer.next(seq(position)) {
            Next::Blocks(mut blocks) => blocks.next().map(|block| block.to().version),
            _ => None,
        }
    }

    #[test]
    fn everyone_gets_the_block_with_what_comes_next_for_them() {
        let mut offer = Offer::behind(seq(10));
        assert!(matches!(offer.next(seq(9)), Next::Elsewhere));
        assert!(matches!(offer.next(seq(10)), Next::Nothing));
        offer.add(block(&[11, 13]));
        offer.add(block(&[15]));
        offer.add(block(&[16]));
        let found = [10, 11, 12, 13, 14, 15, 16, 99].map(|position| next_to(&offer, position));
        assert_eq!(found, [Some(13), Some(13), Some(13), Some(15), Some(15), Some(16), None, None]);
    }

    #[test]
    fn who_lacks_what_was_forgotten_reads_elsewhere() {
        let mut offer = Offer::behind(seq(0));
        offer.add(block(&[1, 2]));
        offer.add(block(&[3]));
        offer.trim(offer.bytes - 1);
        assert_eq!(offer.start().get(), seq(2));
        assert!(matches!(offer.next(seq(1)), Next::Elsewhere));
        assert_eq!(next_to(&offer, 2), Some(3));
        offer.trim(0);
        assert_eq!((offer.start().get(), offer.bytes), (seq(3), 0));
        assert!(matches!(offer.next(seq(3)), Next::Nothing));
    }

    #[test]
    fn the_end_comes_behind_the_last_row_and_once() {
        let mut offer = Offer::behind(seq(0));
        offer.add(block(&[1]));
        offer.end(Last::to_all(Bytes::from_static(b"end")));
        assert_eq!(next_to(&offer, 0), Some(1));
        assert!(matches!(offer.next(seq(1)), Next::End(end) if end == "end"));
        assert!(matches!(offer.next(seq(9)), Next::End(_)), "they name no place");
        assert!(matches!(offer.next(BEHIND_THE_END), Next::Nothing));
    }

    #[test]
    fn who_is_further_on_than_the_end_is_told_its_own_place() {
        let mut offer = Offer::behind(seq(5));
        offer.end(Last { words: Bytes::from_static(b"end"), end: Some((seq(5), EndReason::Shutdown)) });
        assert!(matches!(offer.next(seq(5)), Next::End(_)));
        assert!(matches!(offer.next(seq(9)), Next::OwnEnd(EndReason::Shutdown)));
        assert!(matches!(offer.next(BEHIND_THE_END), Next::Nothing));
    }
}
