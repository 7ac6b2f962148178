//! Rows of commits that are in the log and not yet in LMDB, in memory, laid over it.

use std::sync::Arc;

use super::fetched::fetched;
use super::id_filter::HashedId;
use super::key::{Keyed, Sought};
use super::known_docs::KnownDocs;
use super::maybe_there::MaybeThere;
use super::runs::{Merging, Runs};
use crate::range::{Direction, KeyRange};
use crate::rows::{Row, Rows, SharedRows};
use crate::tables::Table;

/// Rows by table and key, each at its latest. A clone is another state of it, made at once: it shares what has not
/// changed since.
#[derive(Clone, Default)]
pub(crate) struct Memtable {
    tables: [Runs; Table::ALL.len()],
    /// Which documents there may be.
    maybe_there: MaybeThere,
    /// What the records that were put in take in memory, superseded rows included.
    bytes: usize,
    /// How many rows were put in that may lie anywhere in their tables, superseded ones included.
    scattered: usize,
}

impl Memtable {
    /// Puts in the rows of records, of which the later count; gives the documents whose rows are among them. Of many
    /// records it is quicker to put in all at once.
    pub fn insert(&mut self, records: impl IntoIterator<Item: Into<SharedRows>>) -> Vec<HashedId> {
        let mut tables: [Vec<Keyed>; Table::ALL.len()] = Default::default();
        for record in records.into_iter().map(Into::into) {
            self.bytes += record.memory_bytes();
            self.scattered += record.scattered();
            for row in record.into_rows() {
                let (table, keyed) = Keyed::of(row);
                tables[table as usize].push(keyed);
            }
        }
        let docs: Vec<HashedId> = tables[Table::Docs as usize].iter().map(Keyed::hashed_id).collect();
        self.maybe_there.add(&docs, &self.tables[Table::Docs as usize]);
        for (runs, rows) in self.tables.iter_mut().zip(tables) {
            runs.insert(rows);
        }
        docs
    }

    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(Runs::is_empty)
    }

    /// How many rows there are, less than twice as many at most: some are there in an older state too.
    pub fn len(&self) -> usize {
        self.tables.iter().map(Runs::len).sum()
    }

    /// How many bytes of memory the records take that were put in.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many rows were put in that [may lie anywhere](Rows::scattered) in their tables, superseded ones included.
    pub fn scattered(&self) -> usize {
        self.scattered
    }

    /// Whether it may say something of a document.
    fn may_have(&self, doc: HashedId) -> bool {
        self.maybe_there.may_have(doc)
    }

    /// The documents whose rows there are.
    pub fn doc_ids(&self) -> impl Iterator<Item = HashedId> {
        self.tables[Table::Docs as usize].each().map(Keyed::hashed_id)
    }

    /// `None` when it says nothing of the row.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<Row<'_>> {
        self.tables[table as usize].get(&Sought::from(key)).map(Keyed::row)
    }

    pub fn range(&self, table: Table, range: KeyRange<'_>, direction: Direction) -> OverRows<'_> {
        let range = (range.0.map(Sought::from), range.1.map(Sought::from));
        OverRows(self.tables[table as usize].range(range, direction))
    }

    /// All rows, table by table, each in the order of its keys.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        fetched(self.tables.iter().flat_map(Runs::rows)).map(Keyed::row)
    }
}

/// Rows of a memtable, one after the other.
pub(crate) struct OverRows<'a>(Merging<'a>);

impl<'a> Iterator for OverRows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        self.0.next().map(Keyed::row)
    }
}

/// What lies over LMDB in one state: the newest rows, and those that are being put into it.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    pub active: Memtable,
    pub frozen: Option<Arc<Memtable>>,
    /// All documents that these and LMDB have, once they are known.
    pub known: Option<Arc<KnownDocs>>,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.frozen.is_none() && self.active.is_empty()
    }

    /// Puts in the rows of a record, as the newest.
    pub fn insert(&mut self, record: Rows) {
        let docs = self.active.insert([record]);
        if let Some(known) = &self.known {
            docs.into_iter().for_each(|doc| known.add(doc));
        }
    }

    /// The newest first.
    pub fn layers(&self) -> impl Iterator<Item = &Memtable> {
        [Some(&self.active), self.frozen.as_deref()].into_iter().flatten()
    }

    /// What a row has that is laid over LMDB's: a value, or none. `None` when LMDB's row counts.
    pub fn get(&self, table: Table, key: &[u8]) -> Option<Option<&[u8]>> {
        let doc = (table == Table::Docs).then(|| HashedId::from(key));
        // Each write asks for a document by its id, and most are new, or not among these rows.
        if let (Some(doc), Some(known)) = (doc, &self.known)
            && known.lacks(doc)
        {
            return Some(None);
        }
        let mut layers = self.layers().filter(|layer| doc.is_none_or(|doc| layer.may_have(doc)));
        layers.find_map(|layer| layer.get(table, key)).map(|row| row.value)
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
            memtable.insert([record]);
            let row = memtable.get(Table::Docs, key.as_bytes()).unwrap();
            assert_eq!(row.value, value.map(str::as_bytes));
            assert_eq!((memtable.len(), memtable.bytes()), (1, taken));
        }
        assert!(taken > 3 * 1_000);
    }
}
