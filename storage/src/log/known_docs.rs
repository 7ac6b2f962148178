//! All documents of a database, as a filter has them: that an id is a new document's is told without a walk through
//! LMDB, which takes whoever plans a commit as long as all else that it does for one.
//!
//! A filter is begun when rows come in numbers. It has what lies over LMDB by then and what is written from then on;
//! the documents that LMDB has are added by the thread, a few at a time. Until all are, it says nothing. It forgets no
//! document: of one that was purged it says what it says of those that are there, that LMDB is to be asked. Who reads
//! takes it together with the rows over LMDB, so that no state is older than its filter.
//!
//! When it is full a larger one is begun beside it, so that few documents take little memory, and none is learned
//! twice. The thread begins it: so much memory takes milliseconds to be zeroed, and nobody is to wait for that.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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

/// How large each filter of a database is, in bits; 14 MiB together.
const BITS: [usize; 3] = if cfg!(test) { [1 << 16, 1 << 17, 1 << 18] } else { [1 << 24, 1 << 25, 1 << 26] };
/// With a document for so many bits a filter is full: documents go to the next one, once that is begun; the last one
/// takes them all. Beside a million documents one in eighty others is taken for one of them, beside three million one
/// in forty, beside ten one in sixteen. Tests of few documents are to have full ones.
const BITS_A_DOC: usize = if cfg!(test) { 1024 } else { 16 };
/// The filters of all databases of the process take no more memory; databases beyond that do without, or with those
/// that they have. Tests run beside each other.
const BYTES_MAX: u64 = if cfg!(test) { 16 << 20 } else { 64 << 20 };
/// Fewer rows are not worth one. Tests of few are to meet it.
const ROWS_MIN: usize = if cfg!(test) { 2 } else { 1_000 };
/// So many pages have about fifteen million documents: beside more of them it says too little, and they take long to go
/// through.
pub(super) const PAGES_MAX: usize = 500_000;
/// So many documents are added between two looks at whether there is something else to do.
const DOCS_AT_ONCE: usize = if cfg!(test) { 2 } else { 5_000 };

/// What the filters of all databases take in memory.
static TOTAL: Total = Total::new();

/// The documents of a database.
pub(crate) struct KnownDocs {
    /// Each has the documents that came when those before it were full.
    filters: [OnceLock<Filter>; BITS.len()],
    /// How many were added that were not taken for others.
    count: AtomicUsize,
    total: &'static Total,
    /// The last of LMDB's that was added; empty while none was.
    learned: Mutex<Vec<u8>>,
    /// All of LMDB's are there.
    is_whole: AtomicBool,
}

struct Filter {
    ids: IdFilter,
    _claim: Claim,
}

impl KnownDocs {
    /// Begins with these, unless the filters of other databases have all the memory.
    fn begin(docs: impl Iterator<Item = HashedId>, total: &'static Total) -> Option<KnownDocs> {
        let (filters, count, learned, is_whole) = Default::default();
        let known = KnownDocs { filters, count, total, learned, is_whole };
        known.make_room();
        known.newest()?;
        docs.for_each(|doc| known.add(doc));
        Some(known)
    }

    /// Begins the next filter where it is time and there is memory for it.
    pub fn make_room(&self) {
        let Some(next) = self.filters.iter().position(|filter| filter.get().is_none()) else { return };
        let room = BITS[..next].iter().sum::<usize>() / BITS_A_DOC;
        let mut claim = Claim::on(self.total);
        if self.count.load(Ordering::Relaxed) >= room && claim.set(BITS[next] / 8) <= BYTES_MAX {
            // Who was faster has begun it.
            let _ = self.filters[next].set(Filter { ids: IdFilter::new(BITS[next]), _claim: claim });
        }
    }

    /// Before anybody sees the document.
    pub fn add(&self, doc: HashedId) {
        if let Some(newest) = self.newest().filter(|_| !self.may_have(doc)) {
            newest.ids.add(doc);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn newest(&self) -> Option<&Filter> {
        self.filters.iter().filter_map(OnceLock::get).last()
    }

    fn may_have(&self, doc: HashedId) -> bool {
        self.filters.iter().filter_map(OnceLock::get).any(|filter| filter.ids.may_have(doc))
    }

    /// Whether there is certainly no row of the document.
    pub fn lacks(&self, doc: HashedId) -> bool {
        self.is_whole() && !self.may_have(doc)
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
            self.add(id.into());
            (count, last) = (count + 1, Some(id));
        }
        if let Some(last) = last {
            *learned = last.to_vec();
        }
        self.make_room();
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

    /// Has room for the documents to come.
    pub fn make_room_to_know(&self) {
        let Some(known) = self.state().over.known.clone() else { return };
        known.make_room();
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
    use std::ops::Range;
    use std::thread;

    use super::*;

    /// As many databases as there is memory for, with one filter each.
    const DATABASES: usize = BYTES_MAX as usize / (BITS[0] / 8);

    fn id(number: usize) -> HashedId {
        HashedId::from(&number.to_be_bytes()[..])
    }

    fn begin(total: &'static Total) -> Option<KnownDocs> {
        KnownDocs::begin(iter::empty(), total)
    }

    fn claimed(total: &'static Total) -> usize {
        Claim::on(total).of_all() as usize
    }

    #[test]
    fn so_many_databases_have_a_filter_and_others_when_those_have_none_any_more() {
        static TOTAL: Total = Total::new();
        let mut all: Vec<_> = (0..DATABASES).map(|_| begin(&TOTAL).unwrap()).collect();
        assert!(begin(&TOTAL).is_none());
        all.pop();
        assert!(begin(&TOTAL).is_some() && begin(&TOTAL).is_some());
    }

    #[test]
    fn more_documents_have_more_and_larger_filters_and_what_was_added_is_there_and_little_else() {
        static TOTAL: Total = Total::new();
        let known = begin(&TOTAL).unwrap();
        let mut bytes = Vec::new();
        for number in 0..600 {
            known.make_room();
            bytes.extend(Some(claimed(&TOTAL)).filter(|claimed| bytes.last() != Some(claimed)));
            known.add(id(number));
            // One that is there already takes no room.
            known.add(id(number / 2));
            assert!((0..=number).all(|number| known.may_have(id(number))), "{number}");
        }
        assert_eq!(bytes, [8 << 10, (8 + 16) << 10, (8 + 16 + 32) << 10]);
        let others = (600..10_600).filter(|number| known.may_have(id(*number))).count();
        assert!(others < 5, "{others} of 10,000: one in 60,000 is expected");
        drop(known);
        assert_eq!(claimed(&TOTAL), 0);
    }

    #[test]
    fn where_memory_is_short_a_full_filter_takes_more_until_there_is_some() {
        static TOTAL: Total = Total::new();
        let mut all: Vec<_> = (0..DATABASES).map(|_| begin(&TOTAL).unwrap()).collect();
        let known = all.swap_remove(0);
        (0..100).for_each(|number| known.add(id(number)));
        known.make_room();
        assert_eq!(claimed(&TOTAL) as u64, BYTES_MAX);
        all.truncate(DATABASES / 2);
        known.make_room();
        assert_eq!(claimed(&TOTAL), (all.len() + 1) * (8 << 10) + (16 << 10));
        (100..200).for_each(|number| known.add(id(number)));
        assert!((0..200).all(|number| known.may_have(id(number))));
    }

    #[test]
    fn documents_that_two_threads_add_at_once_are_all_there() {
        static TOTAL: Total = Total::new();
        let known = begin(&TOTAL).unwrap();
        let add = |ids: Range<usize>| {
            for number in ids {
                known.add(id(number));
                known.make_room();
                assert!(known.may_have(id(number)), "{number}");
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| add(0..400));
            scope.spawn(|| add(200..600));
        });
        assert!((0..600).all(|number| known.may_have(id(number))));
        assert_eq!(claimed(&TOTAL), (8 + 16 + 32) << 10);
    }
}
