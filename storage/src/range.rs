//! Ranges of a table's rows, and the rows themselves, as bytes.

use std::cmp::Ordering;
use std::ops::Bound;

/// Which way a range is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key up.
    Forward,
    /// From the highest key down.
    Backward,
}

impl Direction {
    /// The other one.
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }

    /// Which of two comes first.
    pub(crate) fn order<T: Ord + ?Sized>(self, one: &T, other: &T) -> Ordering {
        match self {
            Direction::Forward => one.cmp(other),
            Direction::Backward => other.cmp(one),
        }
    }
}

/// Bounds of a range of keys.
pub(crate) type KeyRange<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// A row's key and value.
pub(crate) type RawRow<'txn> = (&'txn [u8], &'txn [u8]);
