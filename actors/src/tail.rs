//! The newest changes in memory, bounded in bytes.
//!
//! Who has read up to `valid_from` or beyond is served from here; who is behind reads the disk until it has caught up.
//! A row superseded meanwhile is gone from here, as it is gone from `by_seq`. Only the newest rows keep what they are
//! encoded as: whoever follows has had the others.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{PageLimits, ReadChanges};
use tokio::time::Instant;

use crate::row::Row;

/// Most rows looked at under one lock, wanted or not.
const ROWS_EXAMINED_MAX: usize = 10_000;

/// The newest rows, which keep their frames, take so many bytes at most with them, unless it is one alone. Feeds that
/// follow are behind by less.
const FRAMED_BYTES_MAX: usize = 16 << 20;

/// So much is forgotten at once.
const FORGOTTEN_AT_ONCE_BYTES: usize = 1 << 20;
/// A tail stays long for so long after the first commit without the feeds there were: they may have lost their
/// connections, and come back.
const LONG_FOR: Duration = Duration::from_secs(10);
/// A tail that is to be short forgets so many rows for each that comes: no commit waits while all of it is forgotten.
const FORGOTTEN_A_NEW_ROW: usize = 2;

pub(crate) struct Tail {
    rows: BTreeMap<Sequence, Arc<Row>>,
    valid_from: Sequence,
    newest: Sequence,
    /// When that came.
    newest_at: Instant,
    /// The rows behind this place keep their frames.
    framed_from: Sequence,
    /// What those rows take, their frames included.
    framed_bytes: usize,
    /// What the other rows take.
    bare_bytes: usize,
    bytes_max: usize,
    /// Whether there was a feed at the last commit.
    followed: bool,
    /// How long it stays long without one.
    long_until: Option<Instant>,
}

/// Part of the tail.
pub(crate) struct TailPage {
    pub rows: Vec<Arc<Row>>,
    /// All rows up to here were examined.
    pub examined: Sequence,
    /// The update sequence of the state they are of.
    pub state: Sequence,
}

impl Tail {
    /// An empty tail of a database whose update sequence is `newest`.
    pub fn new(newest: Sequence, bytes_max: usize) -> Tail {
        Tail {
            rows: BTreeMap::new(),
            valid_from: newest,
            newest,
            newest_at: Instant::now(),
            framed_from: newest,
            framed_bytes: 0,
            bare_bytes: 0,
            bytes_max,
            followed: false,
            long_until: None,
        }
    }

    /// The update sequence, as far as it is visible to feeds.
    pub fn newest(&self) -> Sequence {
        self.newest
    }

    /// When the last commit came, or the tail was made.
    pub fn newest_at(&self) -> Instant {
        self.newest_at
    }

    /// Who has read up to here or beyond is served from the tail.
    pub fn valid_from(&self) -> Sequence {
        self.valid_from
    }

    /// What its rows take, in bytes.
    pub fn bytes(&self) -> usize {
        self.framed_bytes + self.bare_bytes
    }

    /// Adds the rows of a commit, in the order of their sequences, that brought the update sequence to `newest`, and
    /// forgets those of earlier commits that are gone with it.
    pub fn push(&mut self, rows: impl IntoIterator<Item = Arc<Row>>, gone: &[Sequence], newest: Sequence) {
        gone.iter().for_each(|seq| self.remove(*seq));
        for row in rows {
            self.framed_bytes += framed(&row);
            self.rows.insert(row.change().seq, row);
        }
        (self.newest, self.newest_at) = (newest, Instant::now());
        self.forget_frames();
        self.trim();
    }

    fn remove(&mut self, seq: Sequence) {
        if let Some(row) = self.rows.remove(&seq) {
            self.take_off(seq, &row);
        }
    }

    fn take_off(&mut self, seq: Sequence, row: &Row) {
        match seq > self.framed_from {
            true => self.framed_bytes -= framed(row),
            false => self.bare_bytes -= row.weight(),
        }
    }

    /// Has rows that are new no more forget their frames.
    fn forget_frames(&mut self) {
        let newest = self.rows.last_key_value().map(|(seq, _)| *seq);
        let mut framed_rows = self.rows.range((Bound::Excluded(self.framed_from), Bound::Unbounded));
        while self.framed_bytes > FRAMED_BYTES_MAX
            && let Some((seq, row)) = framed_rows.next()
            && Some(*seq) < newest
        {
            row.forget_frames();
            self.framed_bytes -= framed(row);
            self.bare_bytes += row.weight();
            self.framed_from = *seq;
        }
    }

    fn trim(&mut self) {
        while self.bytes() > self.bytes_max && self.forget_oldest() {}
    }

    /// Whether new rows are kept, though there is no feed now: there was one of late, or there are so many older ones
    /// that they are forgotten bit by bit.
    pub fn keeps_rows(&self) -> bool {
        let may_come_back = |until| Instant::now() < until;
        self.followed || self.long_until.is_some_and(may_come_back) || self.bytes() > FORGOTTEN_AT_ONCE_BYTES
    }

    /// A commit has come of which it has no rows: whoever wants what was before reads the disk.
    pub fn pass_over(&mut self, newest: Sequence) {
        let Tail { bytes_max, followed, long_until, .. } = *self;
        *self = Tail { followed, long_until, ..Tail::new(newest, bytes_max) };
    }

    /// There is a feed.
    pub fn note_followed(&mut self) {
        self.followed = true;
    }

    /// There is no feed, now that so many new rows have come. Where there has been none for a while, older ones are
    /// forgotten.
    pub fn shorten(&mut self, new_rows: usize) {
        if std::mem::take(&mut self.followed) {
            self.long_until = Some(self.newest_at + LONG_FOR);
        }
        if self.long_until.is_some_and(|until| self.newest_at < until) {
            return;
        }
        for _ in 0..FORGOTTEN_A_NEW_ROW * new_rows {
            if self.bytes() <= FORGOTTEN_AT_ONCE_BYTES || !self.forget_oldest() {
                return;
            }
        }
    }

    /// `false` when there is none.
    fn forget_oldest(&mut self) -> bool {
        let Some((seq, row)) = self.rows.pop_first() else { return false };
        self.take_off(seq, &row);
        self.valid_from = seq;
        true
    }

    /// The row at a sequence, if it is here.
    pub fn row(&self, seq: Sequence) -> Option<Arc<Row>> {
        self.rows.get(&seq).cloned()
    }

    /// Reads the rows of a stretch, front to back, that `keep` wants; `None` when they may lie further back than the
    /// tail reaches.
    pub fn read(&self, stretch: &ReadChanges, keep: impl Fn(&str) -> bool) -> Option<TailPage> {
        let ReadChanges { after, up_to, detail, limits: PageLimits { rows_max, bytes_max, .. }, .. } = *stretch;
        if after < self.valid_from {
            return None;
        }
        let up_to = up_to.min(self.newest);
        let mut page = TailPage { rows: Vec::new(), examined: up_to.max(after), state: self.newest };
        if after >= up_to {
            return Some(page);
        }
        let (mut last_examined, mut bytes) = (after, 0);
        let rows = self.rows.range((Bound::Excluded(after), Bound::Included(up_to)));
        for (examined, (seq, row)) in rows.enumerate() {
            if page.rows.len() == rows_max || bytes >= bytes_max || examined == ROWS_EXAMINED_MAX {
                page.examined = last_examined;
                break;
            }
            if keep(row.change().id.as_str()) {
                bytes += row.change().bytes(detail);
                page.rows.push(Arc::clone(row));
            }
            last_examined = *seq;
        }
        Some(page)
    }
}

/// What a row takes with its frames.
fn framed(row: &Row) -> usize {
    row.weight() + row.frames_weigh_at_most()
}

#[cfg(test)]
impl Tail {
    /// As if there had been no feed of late.
    pub fn forget_feeds(&mut self) {
        (self.followed, self.long_until) = (false, None);
    }
}

#[cfg(test)]
mod tests;
