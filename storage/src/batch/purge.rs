//! Purges in a batch.

use super::{Batch, Draft, Outcome};
use crate::codec::{keys, meta};
use crate::error::StorageError;
use crate::model::body_place::BodyKey;
use crate::model::doc_id::DocId;
use crate::model::rev::RevId;
use crate::model::rev_tree::RevTree;
use crate::purge::{Purge, plan_purge};
use crate::rows::Rows;
use crate::tables::{META_PURGE_SEQ, Table};
use crate::view::View;

/// What the purges of a batch did beside what their documents say.
#[derive(Debug, Default)]
pub(super) struct Purges {
    /// How many changed a document.
    count: u64,
    /// Whether bodies may be left that no tree speaks of any more.
    pub stemmed: bool,
}

impl Batch<'_> {
    /// Plans a purge. Like an edit it moves the document to the next sequence; one that takes the last leaf uses the
    /// sequence up and leaves no row behind.
    ///
    /// Source: CouchDB `couch_db_updater:apply_purge_reqs`.
    pub(super) fn plan_purge(&mut self, id: &DocId, revs: &[RevId]) -> Result<Outcome, StorageError> {
        let (view, request) = (self.view, self.number());
        let draft = Draft::in_batch(&mut self.drafts, view, id)?;
        let planned = match plan_purge(draft.tree.whole(), revs) {
            Ok(planned) => planned,
            Err(_history_needed) => {
                draft.load_history(view, id)?;
                plan_purge(draft.tree.whole(), revs).unwrap_or(None)
            }
        };
        let Some(Purge { revs, tree, bodies, stemmed }) = planned else {
            return Ok(Outcome::Purged { revs: Vec::new(), seq: None });
        };
        let seq = draft.seq_in(request, self.counters.update_seq);
        draft.forget(view, tree, bodies)?;
        draft.moved = Some((seq, request));
        self.counters.update_seq = self.counters.update_seq.max(seq);
        self.purges.count += 1;
        self.purges.stemmed |= stemmed;
        Ok(Outcome::Purged { revs, seq: Some(seq) })
    }
}

impl Draft {
    /// Takes the tree that a purge left, and lets go of the bodies it took: those of this batch are never written,
    /// those in the table are noted to be erased, if they are still there.
    fn forget(&mut self, view: View<'_>, tree: RevTree, bodies: Vec<(BodyKey, u64)>) -> Result<(), StorageError> {
        for (key, bytes) in bodies {
            if let Ok(unwritten) = self.bodies.binary_search_by_key(&key, |(at, _)| *at) {
                self.bodies.remove(unwritten);
            } else if view.get(Table::Bodies, &keys::body(key))?.is_some() {
                self.erased.push((key, bytes));
            }
        }
        if tree.leaves().is_empty() {
            // Among them those that stemming has cut off within this batch.
            self.bodies.clear();
        }
        self.tree.set(tree);
        Ok(())
    }
}

impl Purges {
    /// Counts them in the database's purge sequence.
    pub fn write(&self, view: View<'_>, rows: &mut Rows) -> Result<(), StorageError> {
        if self.count > 0 {
            let purge_seq = view.purge_seq()?.saturating_add(self.count);
            rows.put(Table::Meta, META_PURGE_SEQ, meta::encode_number(purge_seq));
        }
        Ok(())
    }
}
