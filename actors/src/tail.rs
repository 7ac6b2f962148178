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
mod tests {
    use seqtide_storage::json::{ScanLimits, scan_document};
    use seqtide_storage::model::doc_id::DocId;
    use seqtide_storage::model::rev::RevId;
    use seqtide_storage::model::sequence::SeqFormat;
    use seqtide_storage::{Change, Detail, Direction, LeafRev, Previous};
    use tokio::time::advance;

    use super::*;
    use crate::row::RowShape;

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn row(version: u64, id: &str) -> Arc<Row> {
        let leaves = vec![LeafRev { rev: RevId::parse("1-a").unwrap(), deleted: false }];
        let change = Change {
            seq: seq(version),
            id: DocId::parse(id).unwrap(),
            leaves,
            body: None,
            previous: Previous::Nothing,
        };
        Arc::new(Row::new(change, SeqFormat::Integer))
    }

    fn stretch(after: Sequence, up_to: Sequence, rows_max: usize, bytes_max: usize) -> ReadChanges {
        let limits = PageLimits { rows_max, bytes_max, ..PageLimits::default() };
        ReadChanges { after, up_to, direction: Direction::Forward, detail: Detail::default(), limits }
    }

    fn read(
        tail: &Tail,
        after: Sequence,
        up_to: Sequence,
        rows_max: usize,
        keep: impl Fn(&str) -> bool,
    ) -> Option<TailPage> {
        tail.read(&stretch(after, up_to, rows_max, usize::MAX), keep)
    }

    fn seqs(page: &TailPage) -> Vec<u64> {
        page.rows.iter().map(|row| row.change().seq.version).collect()
    }

    #[test]
    fn superseded_rows_are_skipped() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push([row(1, "a"), row(2, "b")], &[], seq(2));
        tail.push([row(3, "a")], &[seq(1)], seq(3));
        let page = read(&tail, seq(0), Sequence::MAX, 10, |_| true).unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![2, 3], seq(3)));
        assert_eq!(seqs(&read(&tail, seq(2), Sequence::MAX, 10, |_| true).unwrap()), [3]);
        assert_eq!(seqs(&read(&tail, seq(0), seq(2), 10, |_| true).unwrap()), [2]);
    }

    #[test]
    fn rows_of_documents_that_vanished_are_forgotten() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push([row(1, "a"), row(2, "b")], &[], seq(2));
        // One of them was never here.
        tail.push([row(4, "c")], &[seq(1), seq(3)], seq(5));
        let page = read(&tail, seq(0), Sequence::MAX, 10, |_| true).unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![2, 4], seq(5)));
        assert_eq!(tail.bytes(), 2 * framed(&row(2, "b")));
        tail.push([row(6, "a")], &[], seq(6));
        assert_eq!(seqs(&read(&tail, seq(0), Sequence::MAX, 10, |_| true).unwrap()), [2, 4, 6]);
    }

    #[test]
    fn a_full_page_is_examined_up_to_its_last_row() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push((1..=5).map(|n| row(n, &format!("d{n}"))), &[], seq(5));
        let page = read(&tail, seq(0), Sequence::MAX, 2, |id| id != "d1").unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![2, 3], seq(3)));
        let page = read(&tail, seq(3), Sequence::MAX, 2, |_| false).unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![], seq(5)));
    }

    #[test]
    fn a_page_ends_with_the_row_that_fills_it() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push((1..=5).map(|n| row(n, &format!("d{n}"))), &[], seq(5));
        let each = row(1, "d1").change().bytes(Detail::default());
        for (bytes_max, rows) in [(1, 1), (each, 1), (each + 1, 2), (2 * each, 2)] {
            let page = tail.read(&stretch(seq(0), Sequence::MAX, 10, bytes_max), |_| true).unwrap();
            assert_eq!((page.rows.len(), page.examined), (rows, seq(rows as u64)));
        }
    }

    #[test]
    fn a_page_that_finds_nothing_ends_all_the_same() {
        let mut tail = Tail::new(seq(0), 1 << 30);
        let rows = ROWS_EXAMINED_MAX as u64 + 5;
        tail.push((1..=rows).map(|n| row(n, &n.to_string())), &[], seq(rows));
        let page = read(&tail, seq(0), Sequence::MAX, 2, |id| id == "10003").unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![], seq(10_000)));
        let page = read(&tail, page.examined, Sequence::MAX, 2, |id| id == "10003").unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![10_003], seq(rows)));
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_disk() {
        let weight = framed(&row(1, "a"));
        let mut tail = Tail::new(seq(0), 2 * weight);
        tail.push((1..=4).map(|n| row(n, &format!("{n}"))), &[], seq(4));
        assert!(read(&tail, seq(1), Sequence::MAX, 10, |_| true).is_none());
        assert_eq!(seqs(&read(&tail, seq(2), Sequence::MAX, 10, |_| true).unwrap()), [3, 4]);
        tail.push([row(5, "4")], &[seq(4)], seq(5));
        assert_eq!(tail.bytes(), 2 * weight);
        assert_eq!(seqs(&read(&tail, seq(2), Sequence::MAX, 10, |_| true).unwrap()), [3, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stays_long_for_a_while_after_the_last_feed() {
        let mut tail = Tail::new(seq(0), 1 << 30);
        let many = 2 * (FORGOTTEN_AT_ONCE_BYTES / framed(&row(1, "d0000001"))) as u64;
        tail.push((1..=many).map(|n| row(n, &format!("d{n:07}"))), &[], seq(many));
        tail.note_followed();
        let mut commit = |n: u64| {
            tail.push([row(many + n, "more")], &[], seq(many + n));
            tail.shorten(1);
            tail.valid_from()
        };
        assert_eq!(commit(1), seq(0));
        advance(LONG_FOR.checked_sub(Duration::from_millis(1)).unwrap()).await;
        assert_eq!(commit(2), seq(0));
        advance(Duration::from_millis(1)).await;
        assert_eq!(commit(3), seq(2));
    }

    #[test]
    fn without_feeds_it_becomes_short_by_and_by_and_stays_so() {
        let weight = framed(&row(1, "d0000001"));
        let fits = (FORGOTTEN_AT_ONCE_BYTES / weight) as u64;
        let mut tail = Tail::new(seq(0), 1 << 30);
        let long = fits + 100;
        tail.push((1..=long).map(|n| row(n, &format!("d{n:07}"))), &[], seq(long));
        let mut lengths = Vec::new();
        for n in long + 1..=long + 150 {
            tail.push([row(n, &format!("d{n:07}"))], &[], seq(n));
            tail.shorten(1);
            lengths.push(tail.rows.len() as u64);
        }
        let expected: Vec<u64> = (1..=150).map(|n| (long - n).max(fits)).collect();
        assert_eq!(lengths, expected);
        // It knows how far it reaches back.
        let (newest, oldest) = (long + 150, long + 150 - fits);
        assert!(read(&tail, seq(oldest - 1), Sequence::MAX, 10, |_| true).is_none());
        assert_eq!(seqs(&read(&tail, seq(oldest), Sequence::MAX, 1, |_| true).unwrap()), [oldest + 1]);
        assert_eq!(seqs(&read(&tail, seq(newest - 1), Sequence::MAX, 10, |_| true).unwrap()), [newest]);
        // What is left goes at once.
        assert!(!tail.keeps_rows());
        tail.pass_over(seq(newest + 3));
        assert_eq!((tail.bytes(), tail.newest()), (0, seq(newest + 3)));
        assert!(read(&tail, seq(newest + 2), Sequence::MAX, 10, |_| true).is_none());
        assert_eq!(seqs(&read(&tail, seq(newest + 3), Sequence::MAX, 10, |_| true).unwrap()), Vec::<u64>::new());
    }

    #[test]
    fn rows_that_are_new_no_more_take_the_room_of_what_they_are_without_frames() {
        let fits = (FRAMED_BYTES_MAX / framed(&row(1, "d00001"))) as u64;
        let rows = fits + 500;
        let mut tail = Tail::new(seq(0), 1 << 30);
        tail.push((1..=rows).map(|n| row(n, &format!("d{n:05}"))), &[], seq(rows));
        let bytes = |newest: u64, older: u64| {
            let row = row(1, "d00001");
            newest as usize * framed(&row) + older as usize * row.weight()
        };
        assert_eq!(tail.bytes(), bytes(fits, 500));
        // One of the older, one of the newest, and two that come instead.
        tail.push([row(rows + 1, "d00001"), row(rows + 2, "d00002")], &[seq(1), seq(rows)], seq(rows + 2));
        assert_eq!(tail.bytes(), bytes(fits, 500));
        let every: Vec<u64> = (2..=rows + 2).filter(|n| *n != rows).collect();
        assert_eq!(tail.rows.keys().map(|seq| seq.version).collect::<Vec<_>>(), every);
        let gone: Vec<Sequence> = every.into_iter().map(seq).collect();
        tail.push([], &gone, seq(rows + 3));
        assert_eq!((tail.bytes(), tail.rows.len()), (0, 0));
    }

    #[test]
    fn the_newest_row_keeps_its_frames_however_large_it_is() {
        let large = |version: u64, id: &str| {
            let json = format!(r#"{{"pad":"{}"}}"#, "x".repeat(FRAMED_BYTES_MAX));
            let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
            Arc::new(Row::new(Change { body: Some(body), ..row(version, id).change().clone() }, SeqFormat::Integer))
        };
        let (first, second) = (large(1, "a"), large(2, "b"));
        let shape = RowShape { doc: true, ..RowShape::default() };
        let is_shared = |row: &Row| row.frame(shape).sse().as_ptr() == row.frame(shape).sse().as_ptr();
        let mut tail = Tail::new(seq(0), 1 << 30);
        tail.push([first.clone()], &[], seq(1));
        assert!(is_shared(&first));
        tail.push([second.clone()], &[], seq(2));
        assert_eq!((is_shared(&first), is_shared(&second)), (false, true));
        assert_eq!(tail.bytes(), first.weight() + framed(&second));
    }

    #[test]
    fn a_reader_ahead_of_the_tail_gets_nothing_and_stays_where_it_is() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push([row(1, "a")], &[], seq(1));
        let page = read(&tail, seq(9), Sequence::MAX, 10, |_| true).unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![], seq(9)));
    }
}
