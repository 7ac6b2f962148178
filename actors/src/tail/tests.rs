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
    let change =
        Change { seq: seq(version), id: DocId::parse(id).unwrap(), leaves, body: None, previous: Previous::Nothing };
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
