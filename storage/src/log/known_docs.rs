//! All documents of a database, as a filter has them: that an id is a new document's is told without a walk through
//! LMDB, which takes whoever plans a commit as long as all else that it does for one.
//!
//! A filter is begun when rows come in numbers. It has what lies over LMDB by then and what is written from then on;
//! the documents that LMDB has are added by the thread, a few at a time. Until all are, it says nothing. It forgets no
//! document: of one that was purged it says what it says of those that are there, that LMDB is to be asked. Who reads
//! takes it together with the rows over LMDB, so that no state is older than its filter.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::claims::{Claim, Total};
use super::id_filter::{HashedId, IdFilter};
#[cfg(test)]
use super::logged::meanwhile;
use super::logged::{Shared, State};
use super::memtable::Overlay;
use crate::error::StorageError;
use crate::range::Direction;
use crate::rows::Rows;
use crate::tables::Table;
use crate::unwinding::unwinding;
use crate::view::View;

/// Beside a million documents one in eighty others is taken for one of them, beside three million one in eleven.
const BITS: usize = if cfg!(test) { 1 << 16 } else { 1 << 24 };
const BYTES: usize = BITS / 8;
/// So many databases of the process have one; others do without. Tests run beside each other.
const FILTERS_MAX: usize = if cfg!(test) { 1_000 } else { 16 };
/// Fewer rows are not worth one. Tests of few are to meet it.
const ROWS_MIN: usize = if cfg!(test) { 2 } else { 1_000 };
/// So many pages have about three million documents: beside more of them it says too little, and they take long to go
/// through.
pub(super) const PAGES_MAX: usize = 100_000;
/// So many documents are added between two looks at whether there is something else to do.
const DOCS_AT_ONCE: usize = if cfg!(test) { 2 } else { 5_000 };

/// What the filters of all databases take in memory.
static TOTAL: Total = Total::new();

/// The documents of a database.
pub(crate) struct KnownDocs {
    ids: IdFilter,
    /// The last of LMDB's that was added; empty while none was.
    learned: Mutex<Vec<u8>>,
    /// All of LMDB's are there.
    is_whole: AtomicBool,
    _claim: Claim,
}

impl KnownDocs {
    /// Begins with these, unless too many databases have a filter.
    fn begin(docs: impl Iterator<Item = HashedId>, total: &'static Total) -> Option<KnownDocs> {
        let mut claim = Claim::on(total);
        if claim.set(BYTES) > (FILTERS_MAX * BYTES) as u64 {
            return None;
        }
        let ids = IdFilter::new(BITS);
        docs.for_each(|doc| ids.add(doc));
        Some(KnownDocs { ids, learned: Mutex::default(), is_whole: AtomicBool::new(false), _claim: claim })
    }

    /// Before anybody sees the document.
    pub fn add(&self, doc: HashedId) {
        self.ids.add(doc);
    }

    /// Whether there is certainly no row of the document.
    pub fn lacks(&self, doc: HashedId) -> bool {
        self.is_whole() && !self.ids.may_have(doc)
    }

    /// Whether it knows all documents.
    fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
    }

    /// Adds some of the documents that LMDB has, behind those that were added before; gives whether there are no more.
    fn learn(&self, lmdb: View<'_>) -> Result<bool, StorageError> {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = if learned.is_empty() { Bound::Unbounded } else { Bound::Excluded(&learned[..]) };
        let (mut count, mut last) = (0, None);
        for row in lmdb.range(Table::Docs, (behind, Bound::Unbounded), Direction::Forward)?.take(DOCS_AT_ONCE) {
            let (id, _) = row?;
            self.ids.add(id.into());
            (count, last) = (count + 1, Some(id));
        }
        if let Some(last) = last {
            *learned = last.to_vec();
        }
        Ok(count < DOCS_AT_ONCE)
    }
}

impl State {
    /// Begins to know the documents, once that pays; gives whether it does so now. While rows are frozen there may be
    /// many to begin with, and whoever reads waits for this.
    pub fn begin_to_know(&mut self) -> bool {
        let Overlay { active, frozen, known } = &mut self.over;
        let may_begin = known.is_none() && frozen.is_none() && !self.knows_nothing;
        if !may_begin || self.docs_pages > PAGES_MAX || active.len() < ROWS_MIN {
            return false;
        }
        *known = KnownDocs::begin(active.doc_ids(), &TOTAL).map(Arc::new);
        known.is_some()
    }

    /// What gets to know documents of LMDB that are not known yet.
    fn learning(&self) -> Option<&Arc<KnownDocs>> {
        self.over.known.as_ref().filter(|known| !known.is_whole())
    }

    /// Whether there may be such documents, and they will be known.
    pub fn learns(&self) -> bool {
        self.learning().is_some()
    }

    /// Does without where there are too many by now.
    pub fn forget_too_many(&mut self) {
        self.over.known.take_if(|_| self.docs_pages > PAGES_MAX);
    }
}

impl Shared {
    /// Gets to know some more documents. Where a row is damaged, which may be any document's, it does without from now
    /// on; where LMDB cannot be read it begins anew.
    pub fn learn(&self) {
        let Some(known) = self.state().learning().cloned() else { return };
        #[cfg(test)]
        meanwhile::happens();
        let learned = unwinding(|| self.env.read().and_then(|reading| known.learn(reading.view())));
        let mut state = self.state();
        // One that was given up meanwhile has not been told of all that was written since.
        if !state.over.known.as_ref().is_some_and(|now| Arc::ptr_eq(now, &known)) {
            return;
        }
        match learned {
            Ok(is_last) => known.is_whole.store(is_last, Ordering::Release),
            Err(error) => {
                state.over.known = None;
                state.knows_nothing = error.is_damage() || matches!(error, StorageError::Panicked { .. });
            }
        }
    }

    /// Has the documents known whose rows are about to be written to LMDB by themselves.
    pub fn know(&self, rows: &Rows) {
        let Some(known) = self.state().over.known.clone() else { return };
        rows.iter().filter(|row| row.table == Table::Docs).for_each(|row| known.add(row.key.into()));
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn so_many_databases_have_a_filter_and_others_when_those_have_none_any_more() {
        static TOTAL: Total = Total::new();
        let begin = || KnownDocs::begin(iter::empty(), &TOTAL);
        let mut filters: Vec<_> = (0..FILTERS_MAX).map(|_| begin().unwrap()).collect();
        assert!(begin().is_none());
        filters.pop();
        assert!(begin().is_some() && begin().is_some());
    }
}
