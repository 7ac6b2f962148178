//! The index of the feed in a batch: what it is of, and the rows of the documents that move.

use std::collections::BTreeMap;

use super::Outcome;
use crate::apply::PlannedDoc;
use crate::bodies::Bodies;
use crate::change::{Changed, LeafRev};
use crate::codec::feed_index::{self, FeedIndex, IndexKey};
use crate::error::StorageError;
use crate::feed_index::{FeedKeys, Indexed, Indexer};
use crate::model::sequence::Sequence;
use crate::rows::Rows;
use crate::tables::{META_FEED_INDEX, Table};
use crate::view::View;

/// What the index is of, as the batch stands.
pub(super) struct IndexUpkeep {
    keys: &'static dyn FeedKeys,
    /// `None` where there is no index.
    index: Option<FeedIndex>,
    redefined: bool,
    /// The update sequence before the batch: the documents that it moves have their rows from the beginning.
    before: Sequence,
}

impl IndexUpkeep {
    pub fn new(view: View<'_>, keys: &'static dyn FeedKeys, before: Sequence) -> Result<IndexUpkeep, StorageError> {
        Ok(IndexUpkeep { keys, index: view.feed_index()?, redefined: false, before })
    }

    /// Makes it an index of these fields, if it is not.
    pub fn redefine(&mut self, paths: &[String]) -> Outcome {
        let index = self.index.clone().unwrap_or_else(|| FeedIndex::empty(self.keys.version()));
        let Some(index) = index.redefined(paths, self.before) else { return Outcome::Unchanged };
        self.index = Some(index);
        self.redefined = true;
        Outcome::Done
    }

    /// Whether it is an index of other fields than before the batch.
    pub fn is_redefined(&self) -> bool {
        self.redefined
    }

    /// Starts to gather the rows of the batch.
    pub fn rows<'a>(&'a self, view: View<'a>) -> IndexRows<'a> {
        let indexer = self.index.as_ref().map(|index| Indexer::new(index, self.keys));
        let redefined = self.index.as_ref().filter(|_| self.redefined);
        IndexRows { view, indexer, redefined, rows: BTreeMap::new() }
    }
}

/// Rows of the index on their way into its table.
pub(super) struct IndexRows<'a> {
    view: View<'a>,
    indexer: Option<Indexer<'a>>,
    redefined: Option<&'a FeedIndex>,
    /// Whether each is put or removed.
    rows: BTreeMap<IndexKey, bool>,
}

impl IndexRows<'_> {
    /// Takes away the rows that a document has had.
    pub fn leave(&mut self, doc: &PlannedDoc) -> Result<(), StorageError> {
        let (Some(indexer), Some(before)) = (&self.indexer, &doc.before) else { return Ok(()) };
        let Some(winner) = before.tree.winner() else { return Ok(()) };
        let leaves = before.tree.leaves().len();
        let was = Indexed { seq: before.seq, id: &doc.id, winner: LeafRev::from(winner), leaves };
        let rows = indexer.rows_of(&was, || Bodies::new(self.view).read(winner.body))?;
        self.rows.extend(rows.into_iter().map(|row| (row, false)));
        Ok(())
    }

    /// Gives a document its rows.
    pub fn come(&mut self, Changed { seq, id, tree, body, .. }: &Changed) -> Result<(), StorageError> {
        let (Some(indexer), Some(winner)) = (&self.indexer, tree.winner()) else { return Ok(()) };
        let is = Indexed { seq: *seq, id, winner: LeafRev::from(winner), leaves: tree.leaves().len() };
        let rows = indexer.rows_of(&is, || Ok(body.clone()))?;
        self.rows.extend(rows.into_iter().map(|row| (row, true)));
        Ok(())
    }

    /// Adds them to the rows of the batch.
    pub fn write(self, rows: &mut Rows) {
        if let Some(index) = self.redefined {
            rows.put(Table::Meta, META_FEED_INDEX, feed_index::encode(index));
        }
        for (key, put) in self.rows {
            match put {
                true => rows.put(Table::FeedIndex, key.to_bytes(), feed_index::encode_row()),
                false => rows.delete(Table::FeedIndex, key.to_bytes()),
            }
        }
    }
}
