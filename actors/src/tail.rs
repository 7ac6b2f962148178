//! The newest changes in memory, bounded in bytes.
//!
//! Who has read up to `valid_from` or beyond is served from here; who is behind reads the disk until it has caught up.
//! A row superseded meanwhile is gone from here, as it is gone from `by_seq`.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use seqtide_storage::Detail;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::Sequence;

use crate::row::Row;

/// Most rows looked at under one lock, wanted or not.
const ROWS_EXAMINED_MAX: usize = 10_000;

pub(crate) struct Tail {
    rows: BTreeMap<Sequence, Arc<Row>>,
    seq_of: HashMap<DocId, Sequence>,
    valid_from: Sequence,
    newest: Sequence,
    bytes: usize,
    bytes_max: usize,
}

/// Part of the tail.
pub(crate) struct TailPage {
    pub rows: Vec<Arc<Row>>,
    /// All rows up to here were examined.
    pub examined: Sequence,
}

impl Tail {
    /// An empty tail of a database whose update sequence is `newest`.
    pub fn new(newest: Sequence, bytes_max: usize) -> Tail {
        let (rows, seq_of) = Default::default();
        Tail { rows, seq_of, valid_from: newest, newest, bytes: 0, bytes_max }
    }

    /// The update sequence, as far as it is visible to feeds.
    pub fn newest(&self) -> Sequence {
        self.newest
    }

    /// Who has read up to here or beyond is served from the tail.
    pub fn valid_from(&self) -> Sequence {
        self.valid_from
    }

    /// What its rows take, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the rows of a commit, in the order of their sequences, that brought the update sequence to `newest`, and
    /// forgets those of documents that have vanished.
    pub fn push(&mut self, rows: impl IntoIterator<Item = Arc<Row>>, vanished: &[DocId], newest: Sequence) {
        for id in vanished {
            if let Some(seq) = self.seq_of.remove(id) {
                self.remove(seq);
            }
        }
        for row in rows {
            let (seq, id) = (row.change().seq, row.change().id.clone());
            self.bytes += row.weight();
            if let Some(superseded) = self.seq_of.insert(id, seq) {
                self.remove(superseded);
            }
            self.rows.insert(seq, row);
        }
        self.newest = newest;
        self.trim();
    }

    fn remove(&mut self, seq: Sequence) -> Option<Arc<Row>> {
        let row = self.rows.remove(&seq)?;
        self.bytes -= row.weight();
        Some(row)
    }

    fn trim(&mut self) {
        while self.bytes > self.bytes_max {
            let Some((seq, row)) = self.rows.pop_first() else { return };
            self.bytes -= row.weight();
            self.seq_of.remove(&row.change().id);
            self.valid_from = seq;
        }
    }

    /// The row at a sequence, if it is here.
    pub fn row(&self, seq: Sequence) -> Option<Arc<Row>> {
        self.rows.get(&seq).cloned()
    }

    /// Reads rows after `after` and up to `up_to` that `keep` wants, at most `rows_max` and those that fill `bytes_max`
    /// when so much is shown of them; `None` when they may lie further back than the tail reaches.
    pub fn read(
        &self,
        (after, up_to): (Sequence, Sequence),
        (rows_max, bytes_max): (usize, usize),
        detail: Detail,
        keep: impl Fn(&str) -> bool,
    ) -> Option<TailPage> {
        if after < self.valid_from {
            return None;
        }
        let up_to = up_to.min(self.newest);
        let mut page = TailPage { rows: Vec::new(), examined: up_to.max(after) };
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

#[cfg(test)]
mod tests {
    use seqtide_storage::model::rev::RevId;
    use seqtide_storage::model::sequence::SeqFormat;
    use seqtide_storage::{Change, LeafRev};

    use super::*;

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn row(version: u64, id: &str) -> Arc<Row> {
        let leaves = vec![LeafRev { rev: RevId::parse("1-a").unwrap(), deleted: false }];
        let change = Change { seq: seq(version), id: DocId::parse(id).unwrap(), leaves, body: None };
        Arc::new(Row::new(change, SeqFormat::Integer))
    }

    fn read(
        tail: &Tail,
        after: Sequence,
        up_to: Sequence,
        rows_max: usize,
        keep: impl Fn(&str) -> bool,
    ) -> Option<TailPage> {
        tail.read((after, up_to), (rows_max, usize::MAX), Detail::default(), keep)
    }

    fn seqs(page: &TailPage) -> Vec<u64> {
        page.rows.iter().map(|row| row.change().seq.version).collect()
    }

    #[test]
    fn superseded_rows_are_skipped() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push([row(1, "a"), row(2, "b")], &[], seq(2));
        tail.push([row(3, "a")], &[], seq(3));
        let page = read(&tail, seq(0), Sequence::MAX, 10, |_| true).unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![2, 3], seq(3)));
        assert_eq!(seqs(&read(&tail, seq(2), Sequence::MAX, 10, |_| true).unwrap()), [3]);
        assert_eq!(seqs(&read(&tail, seq(0), seq(2), 10, |_| true).unwrap()), [2]);
    }

    #[test]
    fn rows_of_documents_that_vanished_are_forgotten() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push([row(1, "a"), row(2, "b")], &[], seq(2));
        let gone = ["a", "never-here"].map(|id| DocId::parse(id).unwrap());
        tail.push([row(4, "c")], &gone, seq(5));
        let page = read(&tail, seq(0), Sequence::MAX, 10, |_| true).unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![2, 4], seq(5)));
        assert_eq!((tail.bytes, tail.seq_of.len()), (2 * row(2, "b").weight(), 2));
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
            let page = tail.read((seq(0), Sequence::MAX), (10, bytes_max), Detail::default(), |_| true).unwrap();
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
        let weight = row(1, "a").weight();
        let mut tail = Tail::new(seq(0), 2 * weight);
        tail.push((1..=4).map(|n| row(n, &format!("{n}"))), &[], seq(4));
        assert!(read(&tail, seq(1), Sequence::MAX, 10, |_| true).is_none());
        assert_eq!(seqs(&read(&tail, seq(2), Sequence::MAX, 10, |_| true).unwrap()), [3, 4]);
        tail.push([row(5, "4")], &[], seq(5));
        assert_eq!(tail.bytes, 2 * weight);
        assert_eq!(seqs(&read(&tail, seq(2), Sequence::MAX, 10, |_| true).unwrap()), [3, 5]);
    }

    #[test]
    fn a_reader_ahead_of_the_tail_gets_nothing_and_stays_where_it_is() {
        let mut tail = Tail::new(seq(0), 1 << 20);
        tail.push([row(1, "a")], &[], seq(1));
        let page = read(&tail, seq(9), Sequence::MAX, 10, |_| true).unwrap();
        assert_eq!((seqs(&page), page.examined), (vec![], seq(9)));
    }
}
