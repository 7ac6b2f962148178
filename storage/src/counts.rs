//! How many rows of `by_seq` lie after a sequence, without counting them one by one.
//!
//! `by_seq` is counted in blocks of 1,024 versions; `blocks` keeps the number of rows of each block that has any. In
//! memory a Fenwick tree sums them. It belongs to one state of the tables: a snapshot of another state sums the
//! stored blocks instead, so that the answer is always that of the snapshot.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::Mutex;

use crate::codec::{Malformed, keys, meta};
use crate::error::{StorageError, unless_damaged};
use crate::model::sequence::Sequence;
use crate::range::{Direction, RawRow};
use crate::rows::Rows;
use crate::tables::Table;
use crate::view::View;

const BLOCK_VERSIONS: u64 = 1024;

/// The block a sequence lies in.
pub(crate) fn block_of(seq: Sequence) -> u64 {
    seq.version / BLOCK_VERSIONS
}

/// How the number of rows changes, block by block.
#[derive(Debug, Default, Clone)]
pub(crate) struct BlockChanges(BTreeMap<u64, i64>);

impl BlockChanges {
    pub fn row_left(&mut self, seq: Sequence) {
        *self.0.entry(block_of(seq)).or_default() -= 1;
    }

    pub fn row_came(&mut self, seq: Sequence) {
        *self.0.entry(block_of(seq)).or_default() += 1;
    }

    /// Adds the rows of `blocks` that change.
    pub fn write(&self, view: View<'_>, rows: &mut Rows) -> Result<(), StorageError> {
        for (block, change) in self.0.iter().filter(|(_, change)| **change != 0) {
            let key = keys::number(*block);
            let before = view.read(Table::Blocks, &key, meta::decode_number)?.unwrap_or(0);
            match before.saturating_add_signed(*change) {
                0 => rows.delete(Table::Blocks, key),
                after => rows.put(Table::Blocks, key, meta::encode_number(after)),
            }
        }
        Ok(())
    }
}

/// A Fenwick tree over the blocks, as of one update sequence.
#[derive(Debug, Clone)]
pub(crate) struct BlockSums {
    /// The state of the tables that this sums; `None` where what tells it is damaged.
    at: Option<Sequence>,
    /// The block that the first slot stands for: none below it ever has rows.
    first_block: u64,
    /// `sums[i - 1]` holds the rows of the blocks that end at slot i, as many as i's lowest bit says.
    sums: Vec<i64>,
    rows: i64,
}

impl BlockSums {
    /// Sums nothing, at no state.
    fn unknown() -> BlockSums {
        BlockSums { at: None, first_block: 0, sums: Vec::new(), rows: 0 }
    }

    /// Reads all blocks. Where they are damaged, counts the rows instead. Where these are damaged too, only those are
    /// told so who ask for what cannot be told.
    pub fn load(view: View<'_>) -> Result<BlockSums, StorageError> {
        let at = view.counters()?.update_seq;
        if let Some(sums) = unless_damaged(BlockSums::of(at, stored_blocks(view)?))? {
            return Ok(sums);
        }
        let rows = view.range(Table::BySeq, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)?;
        let counted = BlockSums::of(at, rows.map(|row| Ok((block_of(read_seq(row?)?), 1))));
        Ok(unless_damaged(counted)?.unwrap_or_else(BlockSums::unknown))
    }

    /// Sums the rows of blocks, which rise.
    fn of(at: Sequence, blocks: impl Iterator<Item = BlockRows>) -> Result<BlockSums, StorageError> {
        let mut sums = BlockSums { at: Some(at), ..BlockSums::unknown() };
        for rows in blocks {
            let (block, rows) = not_above(at, rows)?;
            sums.add(block, rows as i64);
        }
        Ok(sums)
    }

    /// Moves on to the state after a commit.
    pub fn advance(&mut self, at: Sequence, changes: &BlockChanges) {
        if self.at.is_none() {
            return;
        }
        for (block, change) in &changes.0 {
            self.add(*block, *change);
        }
        self.at = Some(at);
    }

    fn add(&mut self, block: u64, change: i64) {
        if self.sums.is_empty() {
            self.first_block = block;
        }
        // A row in a block below the first one has no row of `blocks`, which is damaged: there is nothing to subtract.
        let Some(slot) = block.checked_sub(self.first_block).and_then(|slot| usize::try_from(slot).ok()) else {
            return;
        };
        while self.sums.len() <= slot {
            self.push_empty();
        }
        self.rows += change;
        let mut at = slot + 1;
        while at <= self.sums.len() {
            self.sums[at - 1] += change;
            at += at & at.wrapping_neg();
        }
    }

    /// A new slot sums the slots below it that its lowest bit covers.
    fn push_empty(&mut self) {
        let at = self.sums.len() + 1;
        let from = at - (at & at.wrapping_neg());
        let covered = self.up_to(at - 1) - self.up_to(from);
        self.sums.push(covered);
    }

    fn up_to(&self, mut at: usize) -> i64 {
        let mut sum = 0;
        while at > 0 {
            sum += self.sums[at - 1];
            at -= at & at.wrapping_neg();
        }
        sum
    }

    /// Rows in the blocks after `block`, if this sums the state at `at`.
    fn rows_after_block(&self, at: Sequence, block: u64) -> Option<u64> {
        let slots = (block + 1).saturating_sub(self.first_block);
        let slots = usize::try_from(slots).unwrap_or(usize::MAX).min(self.sums.len());
        (self.at == Some(at)).then(|| u64::try_from(self.rows - self.up_to(slots)).unwrap_or(0))
    }
}

/// A block, and how many rows it has.
pub(crate) type BlockRows = Result<(u64, u64), StorageError>;

pub(crate) type Blocks<'txn> = Box<dyn Iterator<Item = BlockRows> + 'txn>;

/// Every block that is stored, with the rows it says it has.
pub(crate) fn stored_blocks(view: View<'_>) -> Result<Blocks<'_>, StorageError> {
    blocks_from(view, 0)
}

fn blocks_from(view: View<'_>, first: u64) -> Result<Blocks<'_>, StorageError> {
    let key = keys::number(first);
    let range = view.range(Table::Blocks, (Bound::Included(&key), Bound::Unbounded), Direction::Forward)?;
    Ok(Box::new(range.map(|row| {
        let (key, value) = row?;
        let damaged = |what| StorageError::damaged(Table::Blocks, key, what);
        Ok((keys::read_number(key).map_err(damaged)?, meta::decode_number(value).map_err(damaged)?))
    })))
}

/// What a block says, unless it lies above an update sequence.
fn not_above(at: Sequence, rows: BlockRows) -> BlockRows {
    match rows {
        Ok((block, _)) if block > block_of(at) => {
            let what = Malformed("a block above the update sequence");
            Err(StorageError::damaged(Table::Blocks, &keys::number(block), what))
        }
        rows => rows,
    }
}

/// The sequence of a row of `by_seq`.
pub(crate) fn read_seq((key, _): RawRow<'_>) -> Result<Sequence, StorageError> {
    keys::read_seq(key).map_err(|what| StorageError::damaged(Table::BySeq, key, what))
}

/// How many rows of `by_seq` lie after `seq`; exact for the view's state.
pub(crate) fn rows_after(view: View<'_>, sums: &Mutex<BlockSums>, seq: Sequence) -> Result<u64, StorageError> {
    let after = keys::seq(seq);
    let range = view.range(Table::BySeq, (Bound::Excluded(&after), Bound::Unbounded), Direction::Forward)?;
    let mut block = None;
    let mut in_block = 0;
    for row in range {
        let seq = read_seq(row?)?;
        if block_of(seq) != *block.get_or_insert(block_of(seq)) {
            break;
        }
        in_block += 1;
    }
    let Some(block) = block else { return Ok(0) };
    let at = view.counters()?.update_seq;
    let summed = sums.lock().rows_after_block(at, block);
    if let Some(later) = summed {
        return Ok(in_block + later);
    }
    let mut rows = in_block;
    for later in blocks_from(view, block + 1)? {
        rows += not_above(at, later)?.1;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_known_does_not_come_to_be_known_by_a_commit() {
        let (mut sums, mut changes) = (BlockSums::unknown(), BlockChanges::default());
        changes.row_came(Sequence::new(0, 1));
        sums.advance(Sequence::new(0, 1), &changes);
        assert_eq!(sums.rows_after_block(Sequence::new(0, 1), 0), None);
    }

    proptest! {
        #[test]
        fn sums_agree_with_counting(first in 0u64..1000, steps in prop::collection::vec((0u64..200, 0i64..5), 1..60)) {
            let mut sums = BlockSums { at: Some(Sequence::ZERO), ..BlockSums::unknown() };
            let mut model: BTreeMap<u64, i64> = BTreeMap::new();
            for (n, (block, change)) in steps.into_iter().enumerate() {
                let block = if n == 0 { first } else { first + block };
                sums.add(block, change);
                *model.entry(block).or_default() += change;
                for asked in [0, first, block, block + 1, first + 300] {
                    let expected: i64 = model.range(asked + 1..).map(|(_, rows)| rows).sum();
                    prop_assert_eq!(sums.rows_after_block(Sequence::ZERO, asked), Some(expected as u64));
                }
            }
            prop_assert_eq!(sums.rows_after_block(Sequence::new(0, 1), 0), None);
        }
    }
}
