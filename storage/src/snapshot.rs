//! Reading a database: one state of it, for as long as one page takes.

mod locals;

use std::collections::HashSet;
use std::ops::Bound;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::base::Reading;
use crate::bodies::Bodies;
use crate::change::{Change, Detail, LeafRev, Previous, leaf_revs};
use crate::codec::change::ChangeRow;
use crate::codec::head::{DocHead, DocSummary};
use crate::codec::meta::Counters;
use crate::codec::{as_text, change, head, keys, local, meta};
use crate::counts::{BlockSums, read_seq, rows_after};
use crate::error::{StorageError, unless_damaged};
use crate::json::Body;
use crate::model::body_place::BodyPlace;
use crate::model::doc_id::{DocId, LocalId};
use crate::model::rev_tree::{Leaf, Line, RevTree};
use crate::model::sequence::Sequence;
use crate::range::{Direction, RawRow};
use crate::request::{RequestKey, RequestOutcome};
use crate::tables::{META_REVS_LIMIT, Table};
use crate::times::{self, Times};
use crate::transactions::{TransactionLimits, recorded};
use crate::view::View;

pub use self::locals::{LocalDoc, LocalsPage, ReadLocals};

/// One state of a database. It pins what it sees: read a page, drop it, then send.
pub struct Snapshot<'store> {
    pub(crate) reading: Reading<'store>,
    pub(crate) sums: &'store Mutex<BlockSums>,
    pub(crate) times: &'store Mutex<Times>,
    pub(crate) transactions: TransactionLimits,
    /// How the store makes keys of the feed's index.
    pub(crate) keys_version: u64,
}

/// What ends a page, whichever comes first. At least one row is examined.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    /// Rows given.
    pub rows_max: usize,
    /// Bytes of bodies and ids given.
    pub bytes_max: usize,
    /// Time spent.
    pub time_max: Duration,
}

impl Default for PageLimits {
    fn default() -> PageLimits {
        PageLimits { rows_max: 1000, bytes_max: 1 << 20, time_max: Duration::from_millis(50) }
    }
}

/// A stretch of `by_seq` to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadChanges {
    /// Rows above this sequence.
    pub after: Sequence,
    /// Rows up to this sequence, itself included.
    pub up_to: Sequence,
    /// From which end.
    pub direction: Direction,
    /// What each row carries.
    pub detail: Detail,
    /// What ends the page.
    pub limits: PageLimits,
}

/// A page of changes, or of what is shown of them.
#[derive(Debug)]
pub struct ChangesPage<T = Change> {
    /// The rows that were asked for, in the order read.
    pub changes: Vec<T>,
    /// The last row examined, given or not; `None` when there was none.
    pub examined: Option<Sequence>,
    /// Whether the stretch is read to its end.
    pub complete: bool,
}

impl<T> ChangesPage<T> {
    /// Of a stretch without rows.
    pub(crate) fn empty() -> ChangesPage<T> {
        ChangesPage { changes: Vec::new(), examined: None, complete: true }
    }
}

/// A stretch of documents in the order of their ids.
#[derive(Debug, Clone)]
pub struct ReadDocs {
    /// The lowest id.
    pub from: Bound<String>,
    /// The highest id.
    pub to: Bound<String>,
    /// From which end.
    pub direction: Direction,
    /// Whether rows carry bodies and leaves.
    pub detail: Detail,
    /// What ends the page.
    pub limits: PageLimits,
}

/// A page of live documents.
#[derive(Debug)]
pub struct DocsPage {
    /// The documents, in the order read.
    pub docs: Vec<Change>,
    /// Where the next page starts: behind this id. `None` when the stretch is read to its end.
    pub next_after: Option<String>,
}

/// A document's place, tree and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocTree {
    /// The latest sequence.
    pub seq: Sequence,
    /// The tree.
    pub tree: RevTree,
}

/// Decides by a row's id whether it is given.
pub type KeepId<'a> = &'a dyn Fn(&str) -> bool;

impl Snapshot<'_> {
    pub(crate) fn view(&self) -> View<'_> {
        self.reading.view()
    }

    /// The counters.
    ///
    /// # Errors
    /// [`StorageError`], as in every method here.
    pub fn counters(&self) -> Result<Counters, StorageError> {
        self.view().counters()
    }

    /// How many purges have changed a document.
    pub fn purge_seq(&self) -> Result<u64, StorageError> {
        self.view().purge_seq()
    }

    /// How many revisions a branch keeps.
    pub fn revs_limit(&self) -> Result<u32, StorageError> {
        let limit = self.view().expect(Table::Meta, META_REVS_LIMIT, meta::decode_number)?;
        Ok(u32::try_from(limit).unwrap_or(u32::MAX))
    }

    /// How many rows of the feed lie after a sequence. Exact, and quick wherever it lies.
    pub fn rows_after(&self, seq: Sequence) -> Result<u64, StorageError> {
        rows_after(self.view(), self.sums, seq)
    }

    /// The place behind which lies all that was written when the clock said so many seconds since 1970 or more. What
    /// was written before may lie there too: up to a second before, or a thousandth of how long ago that is.
    pub fn seq_before(&self, secs: u64) -> Result<Sequence, StorageError> {
        let times = *self.times.lock();
        times::seq_before(self.view(), times, secs)
    }

    /// When the first of what lies behind a sequence was written, in seconds since 1970, give or take as much as
    /// [`Snapshot::seq_before`] says; `None` where that is not known.
    pub fn secs_behind(&self, seq: Sequence) -> Result<Option<u64>, StorageError> {
        times::secs_behind(self.view(), seq)
    }

    /// The sequence of the last row of the feed; zero when there is none.
    pub fn last_row_seq(&self) -> Result<Sequence, StorageError> {
        let mut range = self.view().range(Table::BySeq, (Bound::Unbounded, Bound::Unbounded), Direction::Backward)?;
        range.next().map_or(Ok(Sequence::ZERO), |row| read_seq(row?))
    }

    /// A document's tree, its newest ancestors at hand; `None` when it never was.
    pub fn tree(&self, id: &DocId) -> Result<Option<DocTree>, StorageError> {
        let head = self.view().head(id)?;
        Ok(head.map(|DocHead { seq, tree, .. }| DocTree { seq, tree }))
    }

    /// All ancestors of a document's leaf, newest first.
    pub fn ancestors(&self, id: &DocId, leaf: &Leaf) -> Result<Line, StorageError> {
        self.view().ancestors(id, leaf)
    }

    /// The same tree with all its ancestors at hand.
    pub fn with_history(&self, id: &DocId, tree: &RevTree) -> Result<RevTree, StorageError> {
        self.view().with_history(id, tree)
    }

    /// The body at a place; `None` when it was never received or has been reclaimed.
    pub fn body(&self, place: BodyPlace) -> Result<Option<Body>, StorageError> {
        Bodies::new(self.view()).read(place)
    }

    /// Whether there is a body at a place.
    pub fn has_body(&self, place: BodyPlace) -> Result<bool, StorageError> {
        Ok(match place {
            BodyPlace::Empty => true,
            BodyPlace::Unknown => false,
            BodyPlace::Stored { key, .. } => self.view().get(Table::Bodies, &keys::body(key))?.is_some(),
        })
    }

    /// What a listing needs of a document; `None` when it never was.
    pub fn summary(&self, id: &DocId) -> Result<Option<DocSummary>, StorageError> {
        self.view().read(Table::Docs, id.as_str().as_bytes(), head::decode_summary)
    }

    /// A document as a row, live or not; `None` when it never was.
    pub fn document_change(&self, id: &DocId, detail: Detail) -> Result<Option<Change>, StorageError> {
        let Some(DocSummary { seq, rev, deleted, body, branches }) = self.summary(id)? else {
            return Ok(None);
        };
        let previous = Previous::Unknown;
        let row = ChangeRow { seq, id: id.as_str(), rev, deleted, branches, body, previous };
        complete_row(&mut Bodies::new(self.view()), row, detail).map(Some)
    }

    /// A `_local` document: the number n of its revision `0-n`, and its body.
    pub fn local(&self, id: &LocalId) -> Result<Option<(u64, Body)>, StorageError> {
        let found = self.view().read(Table::Local, id.name().as_bytes(), local::decode)?;
        Ok(found.map(|(revision, json)| (revision, Body::from_stored(bytes::Bytes::copy_from_slice(json)))))
    }

    /// What was answered to the request with this key, or its key to another one; `None` when no request with it was
    /// carried out, or that is longer ago than records are kept.
    pub fn answer(&self, request: &RequestKey) -> Result<Option<RequestOutcome>, StorageError> {
        let found = recorded(self.view(), &self.transactions, &request.key, request.at_secs)?;
        Ok(found.map(|first| first.answer_to(request.fingerprint)))
    }

    /// Reads a page of the feed; `keep` looks at ids before anything else of a row is read.
    pub fn changes(&self, read: &ReadChanges, keep: KeepId<'_>) -> Result<ChangesPage, StorageError> {
        self.changes_shown(read, keep, |change| Ok(Some(change)))
    }

    /// The same; `show` makes of each row, once it is complete, what is given of it, or nothing.
    pub fn changes_shown<T: AsRef<Change>>(
        &self,
        read: &ReadChanges,
        keep: KeepId<'_>,
        show: impl Fn(Change) -> Result<Option<T>, StorageError>,
    ) -> Result<ChangesPage<T>, StorageError> {
        let view = self.view();
        let (after, up_to) = (keys::seq(read.after), keys::seq(read.up_to));
        let rows = view.range(Table::BySeq, (Bound::Excluded(&after), Bound::Included(&up_to)), read.direction)?;
        let mut bodies = Bodies::new(view);
        fill_page(read.limits, rows, |row| examine(&mut bodies, row, read.detail, keep), show)
    }

    /// Reads a page of the feed by looking up the listed documents, each once; for lists much shorter than the feed.
    /// `show` is as in [`Snapshot::changes_shown`].
    pub fn changes_of_shown<T: AsRef<Change>>(
        &self,
        ids: &HashSet<DocId>,
        read: &ReadChanges,
        show: impl Fn(Change) -> Result<Option<T>, StorageError>,
    ) -> Result<ChangesPage<T>, StorageError> {
        // No document lies in it: none is looked up.
        if read.after >= read.up_to {
            return Ok(ChangesPage::empty());
        }
        let mut seqs = Vec::new();
        for id in ids {
            let seq = self.summary(id)?.map(|found| found.seq);
            seqs.extend(seq.filter(|seq| *seq > read.after && *seq <= read.up_to).map(|seq| (seq, true)));
        }
        seqs.sort_unstable();
        if read.direction == Direction::Backward {
            seqs.reverse();
        }
        // A reader comes past the last row of the stretch in any case, as if all rows were read: a page that is full
        // before it is not the last one.
        let last = self.last_row_of(read)?.filter(|last| seqs.last().is_none_or(|(seq, _)| seq != last));
        seqs.extend(last.map(|seq| (seq, false)));
        let view = self.view();
        let mut bodies = Bodies::new(view);
        let open = |(seq, is_listed): (Sequence, bool)| {
            if !is_listed {
                return Ok((seq, None));
            }
            let row = view.expect(Table::BySeq, &keys::seq(seq), |value| change::decode(&keys::seq(seq), value))?;
            Ok((seq, Some(complete_row(&mut bodies, row, read.detail)?)))
        };
        fill_page(read.limits, seqs.into_iter(), open, show)
    }

    /// Where the row lies that a reader comes to last; what is damaged is passed over.
    fn last_row_of(&self, read: &ReadChanges) -> Result<Option<Sequence>, StorageError> {
        let (after, up_to) = (keys::seq(read.after), keys::seq(read.up_to));
        let stretch = (Bound::Excluded(&after[..]), Bound::Included(&up_to[..]));
        let mut rows = self.view().range(Table::BySeq, stretch, read.direction.reversed())?;
        rows.find_map(|row| unless_damaged(row.and_then(read_seq)).transpose()).transpose()
    }

    /// Reads a page of live documents in the order of their ids.
    pub fn docs(&self, read: &ReadDocs) -> Result<DocsPage, StorageError> {
        let mut page = DocsPage { docs: Vec::new(), next_after: None };
        let mut bodies = Bodies::new(self.view());
        let mut budget = Budget::new(read.limits);
        let mut last = None;
        for row in self.doc_rows(&read.from, &read.to, read.direction)? {
            if budget.spent() {
                page.next_after = last;
                break;
            }
            match row.and_then(|(id, found)| Ok((id, live_row(&mut bodies, id, found, read.detail)?))) {
                Ok((id, doc)) => {
                    doc.iter().for_each(|doc| budget.charge(doc));
                    page.docs.extend(doc);
                    last = Some(id.to_owned());
                }
                Err(error) => {
                    page.next_after = last;
                    return page_before(error, page.next_after.is_some(), page);
                }
            }
        }
        Ok(page)
    }

    /// How many live documents lie in a stretch of ids, as long as they are at most `count_max`.
    pub fn count_docs(
        &self,
        from: &Bound<String>,
        to: &Bound<String>,
        count_max: u64,
    ) -> Result<Option<u64>, StorageError> {
        let mut live = 0;
        for (at, row) in (0u64..).zip(self.doc_rows(from, to, Direction::Forward)?) {
            if at == count_max {
                return Ok(None);
            }
            live += u64::from(!row?.1.deleted);
        }
        Ok(Some(live))
    }

    fn doc_rows(
        &self,
        from: &Bound<String>,
        to: &Bound<String>,
        direction: Direction,
    ) -> Result<impl Iterator<Item = Result<(&str, DocSummary), StorageError>>, StorageError> {
        let range = (from.as_ref().map(String::as_bytes), to.as_ref().map(String::as_bytes));
        let rows = self.view().range(Table::Docs, range, direction)?;
        Ok(rows.map(|row| {
            let (key, value) = row?;
            let damaged = |what| StorageError::damaged(Table::Docs, key, what);
            Ok((as_text(key).map_err(damaged)?, head::decode_summary(value).map_err(damaged)?))
        }))
    }
}

/// A listed document, if it is live.
fn live_row(
    bodies: &mut Bodies<'_>,
    id: &str,
    found: DocSummary,
    detail: Detail,
) -> Result<Option<Change>, StorageError> {
    let DocSummary { seq, rev, deleted, body, branches } = found;
    if deleted {
        return Ok(None);
    }
    let row = ChangeRow { seq, id, rev, deleted, branches, body, previous: Previous::Unknown };
    complete_row(bodies, row, detail).map(Some)
}

/// A page ends before what is damaged, and the next one begins with the error.
fn page_before<P>(error: StorageError, has_rows: bool, page: P) -> Result<P, StorageError> {
    if has_rows && error.is_damage() { Ok(page) } else { Err(error) }
}

/// Opens rows, shows them, and ends with the row that spends the page's limits.
pub(crate) fn fill_page<R, T: AsRef<Change>>(
    limits: PageLimits,
    rows: impl Iterator<Item = R>,
    mut open: impl FnMut(R) -> Result<(Sequence, Option<Change>), StorageError>,
    show: impl Fn(Change) -> Result<Option<T>, StorageError>,
) -> Result<ChangesPage<T>, StorageError> {
    let mut page = ChangesPage::empty();
    let mut budget = Budget::new(limits);
    for row in rows {
        if budget.spent() {
            page.complete = false;
            break;
        }
        match open(row).and_then(|(seq, change)| Ok((seq, change.map(&show).transpose()?))) {
            Ok((seq, opened)) => {
                page.examined = Some(seq);
                match opened {
                    Some(Some(shown)) => {
                        budget.charge(shown.as_ref());
                        page.changes.push(shown);
                    }
                    Some(None) => budget.took_long(),
                    None => {}
                }
            }
            Err(error) => {
                page.complete = false;
                return page_before(error, page.examined.is_some(), page);
            }
        }
    }
    Ok(page)
}

/// A row of the feed: its sequence, and all of it if its id is wanted.
pub(crate) fn examine(
    bodies: &mut Bodies<'_>,
    row: Result<RawRow<'_>, StorageError>,
    detail: Detail,
    keep: KeepId<'_>,
) -> Result<(Sequence, Option<Change>), StorageError> {
    let (key, value) = row?;
    let row = change::decode(key, value).map_err(|what| StorageError::damaged(Table::BySeq, key, what))?;
    let seq = row.seq;
    let change = if keep(row.id) { Some(complete_row(bodies, row, detail)?) } else { None };
    Ok((seq, change))
}

/// Adds what a row does not carry itself: the other leaves, where there are any, and the body.
fn complete_row(bodies: &mut Bodies<'_>, row: ChangeRow<'_>, detail: Detail) -> Result<Change, StorageError> {
    let id = DocId::stored(row.id);
    let leaves = if detail.leaves && row.branches > 1 {
        let head = bodies.view().expect(Table::Docs, row.id.as_bytes(), head::decode)?;
        leaf_revs(&head.tree)
    } else {
        vec![LeafRev { rev: row.rev, deleted: row.deleted }]
    };
    let body = if detail.bodies { bodies.read(row.body)? } else { None };
    Ok(Change { seq: row.seq, id, leaves, body, previous: row.previous })
}

/// What is left of a page.
pub(crate) struct Budget {
    rows: usize,
    bytes: usize,
    examined: usize,
    /// The last row may have taken long: the clock is looked at before the next.
    was_long: bool,
    /// `None` is later than any clock can say.
    until: Option<Instant>,
}

impl Budget {
    /// Looking at the clock costs about as much as looking at a row.
    const ROWS_BETWEEN_CLOCKS: usize = 64;

    pub fn new(limits: PageLimits) -> Budget {
        let until = Instant::now().checked_add(limits.time_max);
        Budget { rows: limits.rows_max.max(1), bytes: limits.bytes_max.max(1), examined: 0, was_long: false, until }
    }

    /// Whether the page ends before the next row; called once a row.
    pub fn spent(&mut self) -> bool {
        self.examined += 1;
        let look = std::mem::take(&mut self.was_long) || self.examined.is_multiple_of(Budget::ROWS_BETWEEN_CLOCKS);
        let out_of_time = look && self.until.is_some_and(|until| Instant::now() >= until);
        self.rows == 0 || self.bytes == 0 || out_of_time
    }

    /// Takes note that a whole document was read for the last row: the clock is looked at before the next one.
    pub fn took_long(&mut self) {
        self.was_long = true;
    }

    fn charge(&mut self, change: &Change) {
        self.charge_row(change.bytes(Detail { leaves: true, bodies: true }));
    }

    pub fn charge_row(&mut self, bytes: usize) {
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests;
