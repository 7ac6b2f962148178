//! The log of databases' updates: which was created, written to or deleted, in one order for all of a data folder.
//!
//! Like `by_seq` it keeps no past: one row for each database and kind, at its latest sequence. It lives in memory; what
//! of it outlives the process is the catalogue's to note.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use parking_lot::{Mutex, MutexGuard};

use crate::model::db_name::DbName;
use crate::model::sequence::Sequence;
use crate::range::Direction;

/// Sequences are given out below a ceiling that is on disk, which rises by this much at a time: a million commits, or
/// the gap that a crash leaves.
const CEILING_STEP: u64 = 1_000_000;

/// Most rows looked at under one lock, wanted or not.
const ROWS_EXAMINED_MAX: usize = 10_000;

/// What happened to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpdateKind {
    /// It was made.
    Created,
    /// Documents in it changed.
    Updated,
    /// It was deleted.
    Deleted,
}

impl UpdateKind {
    /// The word for it on the wire. Source: CouchDB, `/_db_updates`.
    pub fn name(self) -> &'static str {
        match self {
            UpdateKind::Created => "created",
            UpdateKind::Updated => "updated",
            UpdateKind::Deleted => "deleted",
        }
    }
}

/// Something that happened to a database, at its latest sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DbUpdate {
    /// Its place among the updates of all databases.
    pub seq: Sequence,
    /// The database.
    pub name: DbName,
    /// What happened.
    pub kind: UpdateKind,
}

/// A stretch of the log that is to be read.
#[derive(Debug, Clone, Copy)]
pub struct ReadUpdates {
    /// Rows above this.
    pub after: Sequence,
    /// Rows up to this.
    pub up_to: Sequence,
    /// Most rows given.
    pub rows_max: usize,
    /// From which end.
    pub direction: Direction,
}

/// Part of the log.
#[derive(Debug)]
pub struct UpdatesPage {
    /// The rows that were wanted, in the direction asked for.
    pub rows: Vec<DbUpdate>,
    /// The last row examined.
    pub examined: Option<Sequence>,
    /// Whether all of the stretch has been read.
    pub complete: bool,
}

/// The log, for all to read; the data folder writes it.
pub struct UpdateLog(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    by_seq: BTreeMap<u64, (DbName, UpdateKind)>,
    /// Where the rows of a database are: one place for each kind.
    places: HashMap<DbName, [Option<u64>; 3]>,
    /// Names of databases that are gone, by the sequences of their deletions.
    deleted: BTreeMap<u64, DbName>,
    deleted_max: usize,
    /// The last sequence given out.
    last: u64,
    /// Rows are given sequences up to here: after a crash the next process starts above it.
    ceiling: u64,
    /// Sequences given to what is not durable yet: nothing from the first of them on is visible.
    under_way: BTreeSet<u64>,
    /// What happened while there was no room below the ceiling.
    waiting: BTreeSet<(DbName, UpdateKind)>,
}

/// A sequence that is kept for something that is being made durable. Dropped, it is given up.
pub(crate) struct Reserved<'a> {
    log: &'a UpdateLog,
    seq: u64,
}

/// All rows, and the last sequence given out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    pub last: u64,
    pub rows: Vec<(u64, DbName, UpdateKind)>,
}

impl UpdateLog {
    /// A log that goes on from what was noted, remembering so many names of deleted databases.
    pub(crate) fn new(noted: Noted, deleted_max: usize) -> UpdateLog {
        let mut rows = Rows { deleted_max, last: noted.last, ceiling: noted.last, ..Rows::default() };
        let mut all = noted.rows;
        all.sort_by_key(|(seq, ..)| *seq);
        for (seq, name, kind) in all {
            rows.put(seq, name, kind);
        }
        UpdateLog(Mutex::new(rows))
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock()
    }

    /// The sequence up to which rows can be read: what comes later lies above it.
    pub fn newest(&self) -> Sequence {
        Sequence::new(0, self.rows().visible())
    }

    /// Reads rows of the databases that `keep` wants.
    pub fn read(&self, wanted: ReadUpdates, keep: impl Fn(&DbName) -> bool) -> UpdatesPage {
        let rows = self.rows();
        let range = rows.by_seq.range(rows.bounds(wanted.after, wanted.up_to));
        match wanted.direction {
            Direction::Forward => page(range, wanted.rows_max, keep),
            Direction::Backward => page(range.rev(), wanted.rows_max, keep),
        }
    }

    /// How many rows lie above a sequence and up to another.
    pub fn count(&self, after: Sequence, up_to: Sequence) -> u64 {
        let rows = self.rows();
        rows.by_seq.range(rows.bounds(after, up_to)).count() as u64
    }

    /// Takes note that a database was written to, or was found; what happened to one that is gone is passed over.
    pub(crate) fn note(&self, name: &DbName, kind: UpdateKind) {
        let mut rows = self.rows();
        if !rows.is_gone(name) {
            rows.waiting.insert((name.clone(), kind));
            rows.give_out();
        }
    }

    /// Whether something happened that found no room below the ceiling.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.rows().waiting.is_empty()
    }

    /// Keeps the next sequence for what is about to be made durable together with it.
    pub(crate) fn reserve(&self) -> Reserved<'_> {
        let mut rows = self.rows();
        rows.last += 1;
        let seq = rows.last;
        rows.under_way.insert(seq);
        Reserved { log: self, seq }
    }

    /// The ceiling that is to be made durable before more happens, if the present one has become low.
    pub(crate) fn next_ceiling(&self) -> Option<u64> {
        let rows = self.rows();
        (rows.ceiling.saturating_sub(rows.last) < CEILING_STEP / 2).then(|| rows.last + CEILING_STEP)
    }

    /// Gives out sequences up to this ceiling, which is durable.
    pub(crate) fn raise_ceiling(&self, ceiling: u64) {
        let mut rows = self.rows();
        rows.ceiling = rows.ceiling.max(ceiling);
        rows.give_out();
    }

    /// Everything there is, for the catalogue to note as the last thing.
    pub(crate) fn close(&self) -> Noted {
        let mut rows = self.rows();
        rows.ceiling = u64::MAX;
        rows.give_out();
        let all = rows.by_seq.iter().map(|(seq, (name, kind))| (*seq, name.clone(), *kind));
        Noted { last: rows.last, rows: all.collect() }
    }
}

fn page<'a>(
    range: impl Iterator<Item = (&'a u64, &'a (DbName, UpdateKind))>,
    rows_max: usize,
    keep: impl Fn(&DbName) -> bool,
) -> UpdatesPage {
    let mut page = UpdatesPage { rows: Vec::new(), examined: None, complete: true };
    for (at, (seq, (name, kind))) in range.enumerate() {
        if page.rows.len() == rows_max || at == ROWS_EXAMINED_MAX {
            page.complete = false;
            break;
        }
        let seq = Sequence::new(0, *seq);
        if keep(name) {
            page.rows.push(DbUpdate { seq, name: name.clone(), kind: *kind });
        }
        page.examined = Some(seq);
    }
    page
}

impl Rows {
    fn visible(&self) -> u64 {
        self.under_way.first().map_or(self.last, |first| first - 1)
    }

    /// The keys of the visible rows above a sequence and up to another. Sequences here have no incarnation: those of a
    /// token that has one lie above all.
    fn bounds(&self, after: Sequence, up_to: Sequence) -> (Bound<u64>, Bound<u64>) {
        let number = |seq: Sequence| if seq.incarnation == 0 { seq.version } else { u64::MAX };
        let up_to = number(up_to).min(self.visible());
        (Bound::Excluded(number(after).min(up_to)), Bound::Included(up_to))
    }

    /// Gives sequences to what waits, as far as there is room.
    fn give_out(&mut self) {
        while self.last < self.ceiling
            && let Some((name, kind)) = self.waiting.pop_first()
        {
            self.last += 1;
            self.put(self.last, name, kind);
        }
    }

    /// Puts a row, which replaces those it makes stale.
    fn put(&mut self, seq: u64, name: DbName, kind: UpdateKind) {
        use UpdateKind::{Created, Deleted, Updated};
        let places = self.places.entry(name.clone()).or_default();
        let stale: &[UpdateKind] = match kind {
            Created => &[Created, Deleted],
            Updated => &[Updated],
            Deleted => &[Created, Updated, Deleted],
        };
        for seq in stale.iter().filter_map(|kind| places[*kind as usize].take()) {
            self.by_seq.remove(&seq);
            self.deleted.remove(&seq);
        }
        places[kind as usize] = Some(seq);
        self.by_seq.insert(seq, (name.clone(), kind));
        if kind == Deleted {
            self.deleted.insert(seq, name);
            self.forget_deleted();
        }
    }

    /// Forgets the databases that were deleted first, when there are too many.
    fn forget_deleted(&mut self) {
        while self.deleted.len() > self.deleted_max
            && let Some((seq, name)) = self.deleted.pop_first()
        {
            self.by_seq.remove(&seq);
            self.places.remove(&name);
        }
    }

    fn is_gone(&self, name: &DbName) -> bool {
        self.places.get(name).is_some_and(|places| places[UpdateKind::Deleted as usize].is_some())
    }
}

impl Reserved<'_> {
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Makes what happened visible: it is durable.
    pub fn publish(self, name: &DbName, kind: UpdateKind) {
        let mut rows = self.log.rows();
        rows.waiting.retain(|(waiting, _)| waiting != name);
        rows.put(self.seq, name.clone(), kind);
        // The end of `self`, below, makes it visible.
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut rows = self.log.rows();
        rows.under_way.remove(&self.seq);
        // Given up, it must not be seen: nothing on disk says that it was given out.
        if rows.last == self.seq && !rows.by_seq.contains_key(&self.seq) {
            rows.last -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
