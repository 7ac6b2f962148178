//! Rows of commits that are in the log and not yet in LMDB, in memory, laid over it.

use std::sync::Arc;

use imbl::OrdSet;

use super::fetched::fetched;
use super::key::{Keyed, Sought};
use super::maybe_there::MaybeThere;
use crate::range::{Direction, KeyRange};
use crate::rows::{Row, Rows, SharedRow};
use crate::tables::Table;

/// Rows by table and key, each at its latest. A clone is another state of it, made at once: it shares what has not
/// changed since.
#[derive(Clone, Default)]
pub(crate) struct Memtable {
    tables: [OrdSet<Keyed>; Table::ALL.len()],
    /// Which documents there may be: each write asks for one by its id, and most are not here.
    docs: MaybeThere,
    /// What the records that were put in take in memory, superseded rows included.
    bytes: usize,
}

impl Memtable {
    /// Puts in the rows of a record.
    pub fn insert(&mut self, record: Rows) {
        self.bytes += record.memory_bytes();
        record.into_shared().for_each(|row| self.insert_row(row));
    }

    fn insert_row(&mut self, shared: SharedRow) {
        let Row { table, key, .. } = shared.row();
        let rows = &mut self.tables[table as usize];
        if table == Table::Docs {
            self.docs.add(key, rows);
        }
        // In place of one with the same key.
        rows.insert(Keyed::from(shared));
    }

    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(OrdSet::is_empty)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.tables.iter().map(OrdSet::len).sum()
    }

    /// How many bytes of memory the records take that were put in.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `None` when it says nothing of the row.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<Row<'_>> {
        if table == Table::Docs && !self.docs.may_have(key) {
            return None;
        }
        self.tables[table as usize].get(&Sought::from(key)).map(Keyed::row)
    }

    pub fn range(&self, table: Table, range: KeyRange<'_>, direction: Direction) -> OverRows<'_> {
        let range = (range.0.map(Sought::from), range.1.map(Sought::from));
        let rows = self.tables[table as usize].range(range).map(Keyed::row);
        match direction {
            Direction::Forward => Box::new(rows),
            Direction::Backward => Box::new(rows.rev()),
        }
    }

    /// All rows, table by table, each in the order of its keys.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        fetched(self.tables.iter().flatten()).map(Keyed::row)
    }
}

/// Rows of a memtable, one after the other.
pub(crate) type OverRows<'a> = Box<dyn Iterator<Item = Row<'a>> + 'a>;

/// What lies over LMDB in one state: the newest rows, and those that are being put into it.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    pub active: Memtable,
    pub frozen: Option<Arc<Memtable>>,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.frozen.is_none() && self.active.is_empty()
    }

    /// The row that is laid over LMDB's: a value, or that there is none. `None` when LMDB's counts.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<Row<'_>> {
        self.active.get(table, key).or_else(|| self.frozen.as_ref()?.get(table, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_two_rows_counts_and_the_memory_of_both() {
        let (mut memtable, mut taken) = (Memtable::default(), 0);
        let key = "a key of more than sixteen bytes";
        for value in [Some("1"), None, Some("3")] {
            let mut record = Rows::default();
            record.reserve(1_000);
            record.set(Table::Docs, key, value);
            taken += record.memory_bytes();
            memtable.insert(record);
            let row = memtable.get(Table::Docs, key.as_bytes()).unwrap();
            assert_eq!(row.value, value.map(str::as_bytes));
            assert_eq!((memtable.len(), memtable.bytes()), (1, taken));
        }
        assert!(taken > 3 * 1_000);
    }
}
