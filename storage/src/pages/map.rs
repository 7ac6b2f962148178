//! What a walk found of a table: where its sound rows are, and where others were.

use std::ops::Bound;

/// A leaf with rows that can be read.
#[derive(Debug)]
pub(super) struct SoundLeaf {
    pub page: u64,
    /// The first sound row's key.
    pub first: Box<[u8]>,
    /// The sound rows' nodes; `None` when all are.
    pub nodes: Option<Box<[u16]>>,
}

/// Rows that cannot be read: those between two keys that can.
#[derive(Debug)]
pub(super) struct Gap {
    pub after: Bound<Vec<u8>>,
    pub before: Bound<Vec<u8>>,
    /// Its place among the damages.
    pub damage: usize,
}

impl Gap {
    /// A whole table.
    pub fn whole(damage: usize) -> Gap {
        Gap { after: Bound::Unbounded, before: Bound::Unbounded, damage }
    }

    /// Whether it may reach above a key.
    pub fn reaches_above(&self, key: &[u8]) -> bool {
        end(&self.before).is_none_or(|before| before > key)
    }

    /// Whether it may reach below a key.
    pub fn reaches_below(&self, key: &[u8]) -> bool {
        end(&self.after).is_none_or(|after| after < key)
    }
}

/// The key of a bound, itself never inside a gap.
fn end(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// What was found of a table, in the order of its keys.
#[derive(Debug, Default)]
pub(super) struct TableMap {
    pub leaves: Vec<SoundLeaf>,
    pub gaps: Vec<Gap>,
}

impl TableMap {
    /// The leaf that has a key, if any has.
    pub fn leaf_of(&self, key: &[u8]) -> Option<usize> {
        self.leaves.partition_point(|leaf| &*leaf.first <= key).checked_sub(1)
    }

    /// The gap in which a key may have been.
    pub fn gap_of(&self, key: &[u8]) -> Option<&Gap> {
        let behind = self.gaps.partition_point(|gap| !gap.reaches_above(key));
        self.gaps.get(behind).filter(|gap| gap.reaches_below(key))
    }
}
