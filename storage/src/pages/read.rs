//! Reading what a walk found sound: each row's checksum is looked at again, as the file may have changed since.

use std::ops::Bound;

use super::file::PageFile;
use super::map::{Gap, TableMap};
use super::page::Nodes;
use super::rows::read_value;
use super::survey::Survey;
use crate::codec::Malformed;
use crate::error::StorageError;
use crate::range::{Direction, KeyRange, RawRow};
use crate::seal::{self, Seals};
use crate::tables::Table;

/// The sound rows of a leaf.
pub(super) struct SoundRows<'s> {
    pub file: &'s PageFile,
    pub table: Table,
    pub seals: Seals,
    pub nodes: Nodes<'s>,
    /// Their nodes; `None` when all are sound.
    pub sound: Option<&'s [u16]>,
}

impl<'s> SoundRows<'s> {
    fn len(&self) -> usize {
        self.sound.map_or(self.nodes.len, <[u16]>::len)
    }

    fn node(&self, row: usize) -> usize {
        self.sound.map_or(row, |sound| usize::from(sound[row]))
    }

    fn key(&self, row: usize) -> &'s [u8] {
        self.nodes.key(self.node(row))
    }

    fn value(&self, row: usize) -> Result<&'s [u8], StorageError> {
        let content = self.nodes.content(self.node(row));
        let damaged = |what| StorageError::damaged(self.table, self.key(row), what);
        let stored = read_value(self.file, content).map_err(|_wrong| damaged(Malformed("its pages have changed")))?;
        seal::open(self.table, self.key(row), stored.bytes, self.seals).map_err(damaged)
    }

    pub fn find(&self, key: &[u8]) -> Result<Option<&'s [u8]>, StorageError> {
        (0..self.len()).find(|row| self.key(*row) == key).map(|row| self.value(row)).transpose()
    }
}

/// Rows of a range, and errors in the places of gaps, one after the other.
pub(crate) struct SurveyRows<'s> {
    survey: &'s Survey,
    table: Table,
    map: &'s TableMap,
    direction: Direction,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    /// Leaves and gaps that are still to come: the first of them and the one behind the last.
    leaves: (usize, usize),
    gaps: (usize, usize),
    /// The leaf that is being read, and its rows still to come.
    open: Option<(SoundRows<'s>, (usize, usize))>,
    /// A row that was read ahead, to see whether a gap comes first.
    ahead: Option<Result<RawRow<'s>, StorageError>>,
}

impl<'s> SurveyRows<'s> {
    pub fn new(survey: &'s Survey, table: Table, (from, to): KeyRange<'_>, direction: Direction) -> SurveyRows<'s> {
        let map = survey.map(table);
        let first_leaf = key_of(from).and_then(|key| map.leaf_of(key)).unwrap_or(0);
        let last_leaf = key_of(to).map_or(map.leaves.len(), |key| map.leaf_of(key).map_or(0, |leaf| leaf + 1));
        let first_gap = key_of(from).map_or(0, |key| map.gaps.partition_point(|gap| !gap.reaches_above(key)));
        let last_gap = key_of(to).map_or(map.gaps.len(), |key| map.gaps.partition_point(|gap| gap.reaches_below(key)));
        let (from, to) = (from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec));
        let (leaves, gaps) = ((first_leaf, last_leaf), (first_gap, last_gap));
        SurveyRows { survey, table, map, direction, from, to, leaves, gaps, open: None, ahead: None }
    }

    fn is_inside(&self, key: &[u8]) -> bool {
        let from = match &self.from {
            Bound::Included(from) => from.as_slice() <= key,
            Bound::Excluded(from) => from.as_slice() < key,
            Bound::Unbounded => true,
        };
        let to = match &self.to {
            Bound::Included(to) => key <= to.as_slice(),
            Bound::Excluded(to) => key < to.as_slice(),
            Bound::Unbounded => true,
        };
        from && to
    }

    /// The next sound row.
    fn next_row(&mut self) -> Option<Result<RawRow<'s>, StorageError>> {
        loop {
            while let Some((rows, left)) = &mut self.open {
                let Some(row) = take(left, self.direction) else { break };
                let (key, value) = (rows.key(row), rows.value(row));
                if self.is_inside(key) {
                    return Some(value.map(|value| (key, value)));
                }
            }
            let leaf = take(&mut self.leaves, self.direction)?;
            match self.survey.sound_rows(self.table, &self.map.leaves[leaf]) {
                Ok(rows) => {
                    let left = (0, rows.len());
                    self.open = Some((rows, left));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Whether the next gap comes before the row read ahead.
    fn gap_is_next(&self) -> Option<&'s Gap> {
        let mut left = self.gaps;
        let gap = &self.map.gaps[take(&mut left, self.direction)?];
        let first = match (&self.ahead, self.direction) {
            (Some(Ok((key, _))), Direction::Forward) => gap.reaches_below(key),
            (Some(Ok((key, _))), Direction::Backward) => gap.reaches_above(key),
            (Some(Err(_)), _) => false,
            (None, _) => true,
        };
        first.then_some(gap)
    }
}

impl<'s> Iterator for SurveyRows<'s> {
    type Item = Result<RawRow<'s>, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ahead = self.ahead.take().or_else(|| self.next_row());
        if let Some(gap) = self.gap_is_next() {
            take(&mut self.gaps, self.direction);
            return Some(Err(self.survey.lost(gap)));
        }
        self.ahead.take()
    }
}

/// Takes the next number of a range, from the end where it is read backward.
fn take((first, behind): &mut (usize, usize), direction: Direction) -> Option<usize> {
    if first >= behind {
        return None;
    }
    match direction {
        Direction::Forward => {
            *first += 1;
            Some(*first - 1)
        }
        Direction::Backward => {
            *behind -= 1;
            Some(*behind)
        }
    }
}

fn key_of(bound: Bound<&[u8]>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}
