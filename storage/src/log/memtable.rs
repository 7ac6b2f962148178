//! Rows of commits that are in the log and not yet in LMDB, in memory, laid over it.

use bytes::Bytes;
use imbl::OrdMap;

use super::key::{Key, Sought};
use super::maybe_there::MaybeThere;
use crate::range::{Direction, KeyRange};
use crate::rows::Row;
use crate::tables::Table;

/// A row that is laid over LMDB's: a value, or that there is none.
pub(crate) type Over = Option<Bytes>;

/// Rows by table and key, each at its latest. A clone is another state of it, made at once: it shares what has not
/// changed since.
#[derive(Clone, Default)]
pub(crate) struct Memtable {
    tables: [OrdMap<Key, Over>; Table::ALL.len()],
    /// Which documents there may be: each write asks for one by its id, and most are not here.
    docs: MaybeThere,
    /// What was put in, superseded rows included.
    bytes: usize,
}

impl Memtable {
    pub fn insert(&mut self, row: Row<Bytes>) {
        self.bytes += row.key.len() + row.value.as_ref().map_or(0, Bytes::len);
        let rows = &mut self.tables[row.table as usize];
        let key = Key::from(row.key);
        if row.table == Table::Docs {
            self.docs.add(&key, rows);
        }
        rows.insert(key, row.value);
    }

    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(OrdMap::is_empty)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.tables.iter().map(OrdMap::len).sum()
    }

    /// How many bytes were put in.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `None` when it says nothing of the row.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<&Over> {
        if table == Table::Docs && !self.docs.may_have(key) {
            return None;
        }
        self.tables[table as usize].get(&Sought::from(key))
    }

    pub fn range(&self, table: Table, range: KeyRange<'_>, direction: Direction) -> OverRows<'_> {
        let range = (range.0.map(Sought::from), range.1.map(Sought::from));
        let rows = self.tables[table as usize].range(range);
        match direction {
            Direction::Forward => Box::new(rows),
            Direction::Backward => Box::new(rows.rev()),
        }
    }

    /// All rows, table by table, each in the order of its keys.
    pub fn rows(&self) -> impl Iterator<Item = Row<&[u8]>> {
        let tables = Table::ALL.into_iter().zip(&self.tables);
        tables.flat_map(|(table, rows)| {
            rows.iter().map(move |(key, value)| Row { table, key: key.as_bytes(), value: value.as_deref() })
        })
    }
}

/// Rows of a memtable, one after the other.
pub(crate) type OverRows<'a> = Box<dyn Iterator<Item = (&'a Key, &'a Over)> + 'a>;

/// What lies over LMDB in one state: the newest rows, and those that are being put into it.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    pub active: Memtable,
    pub frozen: Option<std::sync::Arc<Memtable>>,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.frozen.is_none() && self.active.is_empty()
    }

    /// `None` when LMDB's row counts.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<&Over> {
        self.active.get(table, key).or_else(|| self.frozen.as_ref()?.get(table, key))
    }
}
