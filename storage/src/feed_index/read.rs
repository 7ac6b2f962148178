//! Reading the feed by its index: the changes that have one of some keys, merged in the order of their sequences.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::{ANY, FORKED, stored_key};
use crate::bodies::Bodies;
use crate::change::Change;
use crate::codec::feed_index::{self, Building, FeedIndex, IndexKey};
use crate::codec::keys;
use crate::error::StorageError;
use crate::range::{Direction, RawRow};
use crate::snapshot::{ChangesPage, KeepId, ReadChanges, Snapshot, examine, fill_page};
use crate::tables::Table;
use crate::view::{Range, View};

/// Keys looked for at once are at most so many: each is a place of its own to read from.
const KEYS_READ_MAX: usize = 100;

/// What is looked for: documents that have one of the keys under the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The field's path.
    pub path: String,
    /// The keys, each once. Without any, nothing is looked for.
    pub keys: Vec<u64>,
    /// Whether documents with several leaves are to be given too, whatever their winner has.
    pub all_leaves: bool,
}

/// What there is of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedIndexStatus {
    /// The fields' paths, in the order in which they were given. None: there is no index.
    pub fields: Vec<String>,
    /// Whether all fields are ready. Those that are not are not looked documents up by.
    pub ready: bool,
    /// Documents that were gone through.
    pub rows_done: u64,
    /// Documents.
    pub rows_total: u64,
    /// Whether something is left to do for [`crate::Store::tend_feed_index`].
    pub untended: bool,
}

impl Snapshot<'_> {
    /// What there is of the index of the feed.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn feed_index(&self) -> Result<FeedIndexStatus, StorageError> {
        let Some(index) = self.view().feed_index()? else { return Ok(FeedIndexStatus::default()) };
        let untended = index.garbage || index.building.is_some();
        if index.fields.is_empty() {
            return Ok(FeedIndexStatus { untended, ..FeedIndexStatus::default() });
        }
        let rows_total = self.counters()?.rows();
        let rows_left = match index.building {
            Some(Building { done, until }) => self.rows_after(done)?.saturating_sub(self.rows_after(until)?),
            None => 0,
        };
        Ok(FeedIndexStatus {
            ready: index.building.is_none(),
            untended,
            fields: index.fields.into_iter().map(|field| field.path).collect(),
            rows_done: rows_total.saturating_sub(rows_left),
            rows_total,
        })
    }

    /// Reads a page of the feed as [`Snapshot::changes_shown`] does, looking only at changes that one of the lookups
    /// finds: the first of them, least keys first, whose field is ready. What a lookup does not find must not be what
    /// `show` gives. `None` when there is no such field.
    ///
    /// # Errors
    /// [`StorageError`]. On damage the page can still be read without the index.
    pub fn changes_looked_up<T: AsRef<Change>>(
        &self,
        lookups: &[Lookup],
        read: &ReadChanges,
        keep: KeepId<'_>,
        show: impl Fn(Change) -> Result<Option<T>, StorageError>,
    ) -> Result<Option<ChangesPage<T>>, StorageError> {
        let view = self.view();
        let Some(index) = view.feed_index()?.filter(|index| index.keys_version == self.keys_version) else {
            return Ok(None);
        };
        let found = lookups.iter().filter_map(|lookup| Some((ready_number(&index, lookup)?, lookup)));
        let Some((field, lookup)) = found.min_by_key(|(_, lookup)| lookup.keys.len()) else { return Ok(None) };
        if lookup.keys.len() > KEYS_READ_MAX {
            return Ok(None);
        }
        let rows = Candidates::open(view, field, lookup, read)?;
        let mut bodies = Bodies::new(view);
        let open = |row: Result<Candidate<'_>, StorageError>| {
            let Candidate { row, found } = row?;
            examine(&mut bodies, Ok(row), read.detail, &|id| found && keep(id))
        };
        fill_page(read.limits, rows, open, show).map(Some)
    }
}

/// The number of a lookup's field, if all its rows are there.
fn ready_number(index: &FeedIndex, lookup: &Lookup) -> Option<u32> {
    index.fields.iter().find(|field| field.ready && field.path == lookup.path).map(|field| field.number)
}

/// A row of `by_seq` to look at.
struct Candidate<'txn> {
    row: RawRow<'txn>,
    /// Whether the lookup has found it. The last row of a stretch is looked at in any case: a page says how far it has
    /// come, and whether that is all, as if every row had been looked at.
    found: bool,
}

/// The rows that a lookup finds, each once, in the order of their sequences, and the last row of the stretch.
struct Candidates<'txn> {
    view: View<'txn>,
    direction: Direction,
    ranges: Vec<Range<'txn>>,
    /// The next sequence of each range, as a key of `by_seq`.
    heads: BTreeSet<(&'txn [u8], usize)>,
    /// The sequence that was given last.
    given: Option<&'txn [u8]>,
    /// The last row of the stretch, until it was given.
    last: Option<RawRow<'txn>>,
    /// A range could not be read on.
    failed: Option<StorageError>,
}

impl<'txn> Candidates<'txn> {
    fn open(view: View<'txn>, field: u32, lookup: &Lookup, read: &ReadChanges) -> Result<Self, StorageError> {
        let (after, up_to) = (keys::seq(read.after), keys::seq(read.up_to));
        let direction = read.direction;
        let stretch = (Bound::Excluded(&after[..]), Bound::Included(&up_to[..]));
        let last = view.range(Table::BySeq, stretch, direction.reversed())?.next().transpose()?;
        let (ranges, heads) = (Vec::new(), BTreeSet::new());
        let mut found = Candidates { view, direction, ranges, heads, given: None, last, failed: None };
        let wanted = lookup.keys.iter().map(|key| stored_key(*key));
        for key in wanted.chain([ANY]).chain(lookup.all_leaves.then_some(FORKED)) {
            let at = |seq| IndexKey { field, key, seq }.to_bytes();
            let (after, up_to) = (at(read.after), at(read.up_to));
            let range = (Bound::Excluded(&after[..]), Bound::Included(&up_to[..]));
            found.ranges.push(view.range(Table::FeedIndex, range, direction)?);
            found.advance(found.ranges.len() - 1)?;
        }
        Ok(found)
    }

    /// Takes the next sequence of a range.
    fn advance(&mut self, range: usize) -> Result<(), StorageError> {
        let Some(row) = self.ranges[range].next() else { return Ok(()) };
        let (key, value) = row?;
        let damaged = |what| StorageError::damaged(Table::FeedIndex, key, what);
        feed_index::decode_row(value).map_err(damaged)?;
        self.heads.insert((feed_index::seq_part(key).map_err(damaged)?, range));
        Ok(())
    }
}

impl<'txn> Iterator for Candidates<'txn> {
    type Item = Result<Candidate<'txn>, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.failed.is_none() {
            let head = match self.direction {
                Direction::Forward => self.heads.pop_first(),
                Direction::Backward => self.heads.pop_last(),
            };
            let Some((seq, range)) = head else { break };
            self.failed = self.advance(range).err();
            if self.given.replace(seq) == Some(seq) {
                continue;
            }
            match self.view.get(Table::BySeq, seq) {
                Ok(Some(value)) => return Some(Ok(Candidate { row: (seq, value), found: true })),
                // The document has moved on, and could not be told from what it was.
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let last = self.last.take().filter(|(seq, _)| self.given != Some(*seq))?;
        Some(Ok(Candidate { row: last, found: false }))
    }
}
