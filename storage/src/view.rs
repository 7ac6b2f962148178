//! The one way to read rows: `get` and `range`, over one state of the tables.
//!
//! No cursor is opened anywhere else: what the log has in front of LMDB is merged here.

use std::ops::Bound;

use heed::RoTxn;
use heed::types::Bytes;

use crate::codec::feed_index::FeedIndex;
use crate::codec::{Malformed, feed_index, head, history, keys, meta};
use crate::error::StorageError;
use crate::log::memtable::Overlay;
use crate::log::merge::Merged;
use crate::model::doc_id::DocId;
use crate::model::rev_tree::{Leaf, Line, RevTree};
use crate::pages::{Survey, SurveyRows};
use crate::range::{Direction, KeyRange, RawRow};
use crate::seal::{self, Seals};
use crate::tables::{Handles, META_COUNTERS, META_FEED_INDEX, META_PURGE_SEQ, Table};

/// One state of all tables.
#[derive(Clone, Copy)]
pub(crate) struct View<'txn> {
    base: BaseView<'txn>,
    /// What the log has and the base has not.
    over: Option<&'txn Overlay>,
}

#[derive(Clone, Copy)]
enum BaseView<'txn> {
    /// LMDB's.
    Lmdb { txn: &'txn RoTxn<'txn>, handles: Handles, seals: Seals },
    /// What is left of a damaged file's.
    Survey(&'txn Survey),
}

impl<'txn> View<'txn> {
    pub fn of_lmdb(txn: &'txn RoTxn<'_>, handles: Handles, seals: Seals) -> View<'txn> {
        View { base: BaseView::Lmdb { txn, handles, seals }, over: None }
    }

    pub fn of_survey(survey: &'txn Survey) -> View<'txn> {
        View { base: BaseView::Survey(survey), over: None }
    }

    /// The same with these rows laid over it.
    pub fn under(self, over: &'txn Overlay) -> View<'txn> {
        View { over: Some(over).filter(|over| !over.is_empty()), ..self }
    }

    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<&'txn [u8]>, StorageError> {
        #[cfg(test)]
        reads::count(table);
        if let Some(value) = self.over.and_then(|over| over.get(table, key)) {
            return Ok(value);
        }
        match self.base {
            BaseView::Lmdb { txn, handles, seals } => {
                let stored = handles.of(table).get(txn, key)?;
                stored.map(|stored| unseal(table, key, stored, seals)).transpose()
            }
            BaseView::Survey(survey) => survey.get(table, key),
        }
    }

    /// Rows of a range, none where its ends are the wrong way round; after one that is damaged, or a stretch of them,
    /// the next.
    pub fn range(
        &self,
        table: Table,
        (from, to): KeyRange<'_>,
        direction: Direction,
    ) -> Result<Range<'txn>, StorageError> {
        let range = (above_nothing(from), to);
        if is_empty(range) {
            return Ok(Range::Empty);
        }
        #[cfg(test)]
        reads::count(table);
        let rows = match self.base {
            BaseView::Lmdb { txn, handles, seals } => {
                let rows = match direction {
                    Direction::Forward => LmdbRows::Forward(handles.of(table).range(txn, &range)?),
                    Direction::Backward => LmdbRows::Backward(handles.of(table).rev_range(txn, &range)?),
                };
                BaseRange::Lmdb { table, seals, rows }
            }
            BaseView::Survey(survey) => BaseRange::Survey(survey.range(table, range, direction)),
        };
        Ok(match self.over {
            Some(over) => Range::Merged(Merged::new(rows, over, table, range, direction)),
            None => Range::Base(rows),
        })
    }

    /// Reads a row and decodes its value.
    pub fn read<T>(
        &self,
        table: Table,
        key: &[u8],
        decode: impl FnOnce(&'txn [u8]) -> Result<T, Malformed>,
    ) -> Result<Option<T>, StorageError> {
        let Some(value) = self.get(table, key)? else {
            return Ok(None);
        };
        decode(value).map(Some).map_err(|what| StorageError::damaged(table, key, what))
    }

    /// Reads a row that must be there.
    pub fn expect<T>(
        &self,
        table: Table,
        key: &[u8],
        decode: impl FnOnce(&'txn [u8]) -> Result<T, Malformed>,
    ) -> Result<T, StorageError> {
        self.read(table, key, decode)?.ok_or_else(|| StorageError::missing(table, key))
    }

    pub fn head(&self, id: &DocId) -> Result<Option<head::DocHead>, StorageError> {
        self.read(Table::Docs, id.as_str().as_bytes(), head::decode)
    }

    pub fn counters(&self) -> Result<meta::Counters, StorageError> {
        self.expect(Table::Meta, META_COUNTERS, meta::decode_counters)
    }

    /// How many purges have changed a document; 0 in a database from before there were purges.
    pub fn purge_seq(&self) -> Result<u64, StorageError> {
        Ok(self.read(Table::Meta, META_PURGE_SEQ, meta::decode_number)?.unwrap_or(0))
    }

    /// What the index of the feed is of, if there is one.
    pub fn feed_index(&self) -> Result<Option<FeedIndex>, StorageError> {
        self.read(Table::Meta, META_FEED_INDEX, feed_index::decode)
    }

    /// All ancestors of a leaf, newest first.
    pub fn ancestors(&self, id: &DocId, leaf: &Leaf) -> Result<Line, StorageError> {
        let mut line = leaf.ancestors.recent.clone();
        for chunk in &leaf.ancestors.chunks {
            line.append(&self.expect(Table::History, &keys::history(id, *chunk), history::decode)?);
        }
        line.truncate(leaf.ancestors.len());
        if line.len() < leaf.ancestors.len() {
            let what = Malformed("fewer ancestors in its history than it has");
            return Err(StorageError::damaged(Table::Docs, id.as_str().as_bytes(), what));
        }
        Ok(line)
    }

    /// A tree with all its history at hand.
    pub fn with_history(&self, id: &DocId, tree: &RevTree) -> Result<RevTree, StorageError> {
        tree.with_history(|leaf| self.ancestors(id, leaf))
    }
}

/// The empty key is below every key, and LMDB refuses to look for it.
fn above_nothing(from: Bound<&[u8]>) -> Bound<&[u8]> {
    match from {
        Bound::Included([]) | Bound::Excluded([]) => Bound::Unbounded,
        from => from,
    }
}

/// Whether a range has no keys: it ends at the empty key, or has its ends the wrong way round, which LMDB's cursors do
/// not expect.
fn is_empty(range: KeyRange<'_>) -> bool {
    match range {
        (_, Bound::Included([]) | Bound::Excluded([])) => true,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
        _ => false,
    }
}

fn unseal<'a>(table: Table, key: &[u8], stored: &'a [u8], seals: Seals) -> Result<&'a [u8], StorageError> {
    seal::open(table, key, stored, seals).map_err(|what| StorageError::damaged(table, key, what))
}

/// Rows of a range, one after the other.
pub(crate) enum Range<'txn> {
    Empty,
    Base(BaseRange<'txn>),
    Merged(Merged<'txn, BaseRange<'txn>>),
}

impl<'txn> Iterator for Range<'txn> {
    type Item = Result<RawRow<'txn>, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Range::Empty => None,
            Range::Base(rows) => rows.next(),
            Range::Merged(rows) => rows.next(),
        }
    }
}

/// Rows of the base alone.
pub(crate) enum BaseRange<'txn> {
    Lmdb { table: Table, seals: Seals, rows: LmdbRows<'txn> },
    Survey(SurveyRows<'txn>),
}

pub(crate) enum LmdbRows<'txn> {
    Forward(heed::RoRange<'txn, Bytes, Bytes>),
    Backward(heed::RoRevRange<'txn, Bytes, Bytes>),
}

impl<'txn> Iterator for BaseRange<'txn> {
    type Item = Result<RawRow<'txn>, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (table, seals, row) = match self {
            BaseRange::Lmdb { table, seals, rows: LmdbRows::Forward(rows) } => (*table, *seals, rows.next()?),
            BaseRange::Lmdb { table, seals, rows: LmdbRows::Backward(rows) } => (*table, *seals, rows.next()?),
            BaseRange::Survey(rows) => return rows.next(),
        };
        Some(row.map_err(StorageError::from).and_then(|(key, stored)| Ok((key, unseal(table, key, stored, seals)?))))
    }
}

/// Which tables a thread has read, for tests that say what may be read.
#[cfg(test)]
pub(crate) mod reads {
    use std::cell::{Cell, RefCell};

    use super::Table;

    thread_local! {
        static READ: RefCell<Vec<Table>> = const { RefCell::new(Vec::new()) };
        static PASSED_OVER: Cell<usize> = const { Cell::new(0) };
    }

    pub fn count(table: Table) {
        READ.with_borrow_mut(|read| read.push(table));
    }

    /// The tables that were read meanwhile, once a look-up.
    pub fn during<T>(work: impl FnOnce() -> T) -> (T, Vec<Table>) {
        READ.take();
        let done = work();
        (done, READ.take())
    }

    pub fn pass_over() {
        PASSED_OVER.set(PASSED_OVER.get() + 1);
    }

    /// How many removed rows were passed over meanwhile.
    pub fn passed_over_during(work: impl FnOnce()) -> usize {
        PASSED_OVER.take();
        work();
        PASSED_OVER.take()
    }
}
