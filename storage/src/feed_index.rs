//! An index of the feed: which changes have which keys under chosen fields, so that a feed that asks for few documents
//! reads those and no others.
//!
//! A key stands for a value; what a document's keys are is the knowledge of whoever opens the store ([`FeedKeys`]). A
//! document has its rows at its latest sequence, as its row in `by_seq`, and they are written in the same commit. The
//! rows of before are told from the winner of before, so nothing has to remember them. A row too many costs a reader a
//! look-up and no more; one too few would cost it a change. So what cannot be told has a key that every reader of the
//! field looks at.

mod build;
mod read;
mod remake;

use std::fmt;

use crate::bodies::Bodies;
use crate::change::LeafRev;
use crate::codec::change::ChangeRow;
use crate::codec::feed_index::{Building, FeedIndex, IndexKey, IndexedField};
use crate::error::StorageError;
use crate::json::Body;
use crate::model::doc_id::DocId;
use crate::model::sequence::Sequence;
use crate::view::View;

pub use self::build::Tended;
pub use self::read::{FeedIndexStatus, Lookup};
pub(crate) use self::remake::remade_index;

/// What an index knows of documents. Pure: the same of the same document, in every process on every machine.
pub trait FeedKeys: fmt::Debug + Send + Sync {
    /// Says how keys are made: an index made with another number is made anew when its database is opened.
    fn version(&self) -> u64;

    /// Prepares to tell keys under these fields.
    fn reader(&self, fields: &[&str]) -> ReadKeys;
}

/// Tells the keys of a document's winner, field by field: none where the field is not there, [`FieldKeys::Any`] where
/// they are more than an index is to keep.
pub type ReadKeys = Box<dyn Fn(&DocId, &LeafRev, &Body) -> Vec<FieldKeys>>;

/// What an index keeps of a document under a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKeys {
    /// These keys.
    These(Vec<u64>),
    /// It may have any key.
    Any,
}

/// Knows of no keys: of a store in which nothing is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoKeys;

impl FeedKeys for NoKeys {
    fn version(&self) -> u64 {
        0
    }

    fn reader(&self, fields: &[&str]) -> ReadKeys {
        let fields = fields.len();
        Box::new(move |_, _, _| vec![FieldKeys::These(Vec::new()); fields])
    }
}

/// Of a document that may have any key.
const ANY: u64 = 0;
/// Of a document with more than one leaf: what those have that lost is not looked at.
const FORKED: u64 = 1;
/// The first key that stands for values.
const FIRST: u64 = 2;

impl FeedIndex {
    /// An index of nothing.
    pub(crate) fn empty(keys_version: u64) -> FeedIndex {
        FeedIndex { keys_version, ..FeedIndex::default() }
    }

    /// An index of nothing, where rows may be left of fields below this number.
    pub(crate) fn given_up(keys_version: u64, next_number: u32) -> FeedIndex {
        FeedIndex { keys_version, next_number, garbage: true, ..FeedIndex::default() }
    }

    /// The index with these fields, in a database at this update sequence; `None` when it has them. What is ready of
    /// them stays, the others are begun.
    pub(crate) fn redefined(&self, paths: &[String], update_seq: Sequence) -> Option<FeedIndex> {
        let lacks = |path: &String| self.fields.iter().all(|field| field.path != *path);
        let is_given_up = |field: &IndexedField| !paths.contains(&field.path);
        if !paths.iter().any(lacks) && !self.fields.iter().any(is_given_up) {
            return None;
        }
        let kept = |path: &String| self.fields.iter().find(|field| field.ready && field.path == *path).cloned();
        Some(self.with(paths, kept, update_seq))
    }

    /// The index made anew, with keys that are made in another way.
    pub(crate) fn remade(&self, keys_version: u64, update_seq: Sequence) -> FeedIndex {
        let paths: Vec<String> = self.fields.iter().map(|field| field.path.clone()).collect();
        FeedIndex { keys_version, ..self.with(&paths, |_| None, update_seq) }
    }

    /// The index with these fields, of which some are `kept` as they are.
    fn with(
        &self,
        paths: &[String],
        kept: impl Fn(&String) -> Option<IndexedField>,
        update_seq: Sequence,
    ) -> FeedIndex {
        let mut next_number = self.next_number;
        let mut begun = |path: &String| {
            let number = next_number;
            next_number = next_number.wrapping_add(1);
            IndexedField { number, ready: false, path: path.clone() }
        };
        let fields: Vec<IndexedField> = paths.iter().map(|path| kept(path).unwrap_or_else(|| begun(path))).collect();
        let begins = fields.iter().any(|field| !field.ready);
        let building = begins.then_some(Building { done: Sequence::ZERO, until: update_seq });
        let garbage = self.garbage || self.fields.iter().any(|field| !fields.contains(field));
        FeedIndex { next_number, fields, building, garbage, ..*self }
    }

    /// Whether the rows are there, under this field, of a document at this sequence.
    pub(crate) fn is_due(&self, field: &IndexedField, seq: Sequence) -> bool {
        let gone_through = |building: Building| seq <= building.done || seq > building.until;
        field.ready || self.building.is_none_or(gone_through)
    }
}

/// Tells the rows of documents.
pub(crate) struct Indexer<'i> {
    index: &'i FeedIndex,
    read: ReadKeys,
}

/// A document as it stands at a sequence.
pub(crate) struct Indexed<'a> {
    pub seq: Sequence,
    pub id: &'a DocId,
    pub winner: LeafRev,
    /// How many leaves it has.
    pub leaves: usize,
}

impl<'i> Indexer<'i> {
    pub fn new(index: &'i FeedIndex, keys: &dyn FeedKeys) -> Indexer<'i> {
        let paths: Vec<&str> = index.fields.iter().map(|field| field.path.as_str()).collect();
        Indexer { index, read: keys.reader(&paths) }
    }

    /// The rows of the document of a row of `by_seq`.
    pub fn rows_at(&self, view: View<'_>, row: ChangeRow<'_>) -> Result<Vec<IndexKey>, StorageError> {
        let winner = LeafRev { rev: row.rev, deleted: row.deleted };
        let id = DocId::stored(row.id);
        let doc = Indexed { seq: row.seq, id: &id, winner, leaves: row.branches as usize };
        self.rows_of(&doc, || Bodies::new(view).read(row.body))
    }

    /// The rows that a document has where they are there. A body that is damaged may have any key: whoever looks for
    /// one is to come upon the damage.
    pub fn rows_of(
        &self,
        doc: &Indexed<'_>,
        body: impl FnOnce() -> Result<Option<Body>, StorageError>,
    ) -> Result<Vec<IndexKey>, StorageError> {
        let due = |field: &&IndexedField| self.index.is_due(field, doc.seq);
        if !self.index.fields.iter().any(|field| due(&field)) {
            return Ok(Vec::new());
        }
        let keys = match body() {
            Ok(Some(body)) => (self.read)(doc.id, &doc.winner, &body),
            // A revision without a body matches nothing.
            Ok(None) => Vec::new(),
            Err(error) if error.is_damage() => vec![FieldKeys::Any; self.index.fields.len()],
            Err(error) => return Err(error),
        };
        let keys = keys.into_iter().chain(std::iter::repeat(FieldKeys::These(Vec::new())));
        let mut rows = Vec::new();
        for (field, keys) in self.index.fields.iter().zip(keys).filter(|(field, _)| due(field)) {
            let row = |key| IndexKey { field: field.number, key, seq: doc.seq };
            match keys {
                FieldKeys::These(keys) => rows.extend(keys.into_iter().map(stored_key).map(row)),
                FieldKeys::Any => rows.push(row(ANY)),
            }
            rows.extend((doc.leaves > 1).then(|| row(FORKED)));
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }
}

/// The key of a value, as it is stored: the first ones have meanings of their own.
fn stored_key(key: u64) -> u64 {
    key.max(FIRST)
}

#[cfg(test)]
pub(crate) mod tests;
