use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::super::found::{Found, Records};
use super::super::record::{self, Origin};
use super::*;
use crate::codec::meta::Identity;
use crate::log::tests::cases;
use crate::model::sequence::SeqFormat;
use crate::rows::Rows;
use crate::tables::Table;

fn origin(uuid: u8) -> Origin {
    Origin::of(&Identity { uuid: [uuid; 16], created_secs: 0, seq_format: SeqFormat::Integer })
}

fn append(segment: &mut Segment, number: u64) {
    append_of(segment, number, 100);
}

/// Appends a record of a row with so many bytes.
fn append_of(segment: &mut Segment, number: u64, bytes: usize) {
    let mut rows = Rows::default();
    rows.put(Table::Docs, format!("d{number}"), vec![1; bytes]);
    segment.append(number, record::encode(origin(1), segment.generation(), number, &mut rows)).unwrap();
}

/// As they are found in the file, and in what was read of it.
fn records_above(path: &Path, uuid: u8, above: u64) -> [Records; 2] {
    [Found::open, Found::read].map(|find| find(path).unwrap().unwrap().records_above(origin(uuid), above))
}

fn numbers_above(path: &Path, uuid: u8, above: u64) -> Vec<u64> {
    let [there, here] = records_above(path, uuid, above).map(|found| {
        let numbers = found.above.iter().map(|record| record.number);
        (numbers.collect::<Vec<u64>>(), found.cut)
    });
    assert_eq!(there, here);
    here.0
}

fn numbers(path: &Path) -> Vec<u64> {
    numbers_above(path, 1, 0)
}

#[test]
fn what_was_appended_is_found_and_stale_records_behind_it_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    assert!(Found::read(&path).unwrap().is_none());
    let mut segment = Segment::make(&path, 4096).unwrap();
    assert_eq!(numbers(&path), [0; 0]);
    (1..=5).for_each(|number| append(&mut segment, number));
    assert_eq!(numbers(&path), [1, 2, 3, 4, 5]);
    segment.restart().unwrap();
    append(&mut segment, 6);
    append(&mut segment, 7);
    assert_eq!(numbers(&path), [6, 7]);
}

#[test]
fn nobody_else_may_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    Segment::make(&path, 4096).unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_stale_record_does_not_follow_one_whose_number_comes_before_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut segment = Segment::make(&path, 4096).unwrap();
    (1..=3).for_each(|number| append(&mut segment, number));
    segment.restart().unwrap();
    append(&mut segment, 1);
    assert_eq!(numbers(&path), [1], "2 and 3 are of the use before");
}

/// A disk has not written what it said it had: its first block is what it was before.
#[test]
fn records_are_found_behind_one_of_an_earlier_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut segment = Segment::make(&path, 1 << 15).unwrap();
    append_of(&mut segment, 1, 100);
    let first_block = std::fs::read(&path).unwrap()[..4096].to_vec();
    segment.restart().unwrap();
    append_of(&mut segment, 2, 200);
    (3..=5).for_each(|number| append_of(&mut segment, number, 5000));
    assert_eq!(numbers_above(&path, 1, 1), [2, 3, 4, 5]);
    File::options().write(true).open(&path).unwrap().write_all_at(&first_block, 0).unwrap();
    assert_eq!(numbers_above(&path, 1, 1), [4, 5]);
}

/// The records that are whole, looked for at every place.
fn numbers_in(content: &[u8], above: u64) -> Vec<u64> {
    let (mut numbers, mut generation, mut at) = (Vec::new(), None, 0);
    while at < content.len() {
        let Some(record) = record::decode(origin(1), &content[at..]) else {
            at += 1;
            continue;
        };
        at += record.bytes.len();
        if record.number > above && generation.is_none_or(|generation| generation == record.generation) {
            generation = Some(record.generation);
            numbers.push(record.number);
        }
    }
    numbers
}

proptest! {
    #![proptest_config(cases())]
    /// Some records are longer than what is read at a time, some lie across two such parts.
    #[test]
    fn what_is_read_piece_by_piece_has_the_records_that_the_file_has(
        bytes in prop::collection::vec(prop_oneof![0..60usize, 900..1100usize, 2900..3300usize], 1..20),
        restarted in 0..20usize,
        above in 0..20u64,
        damaged in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 1 << 16).unwrap();
        for (place, bytes) in bytes.into_iter().enumerate() {
            if place == restarted {
                segment.restart().unwrap();
            }
            append_of(&mut segment, place as u64 + 1, bytes);
        }
        let mut content = std::fs::read(&path).unwrap();
        let end = usize::try_from(segment.blocks.end()).unwrap();
        damaged.iter().for_each(|damaged| content[damaged.index(end)] ^= 1);
        if let Some(cut) = cut {
            content.truncate(cut.index(content.len()));
        }
        std::fs::write(&path, &content).unwrap();
        // What is left of an earlier use comes before all that the tables do not have.
        let above = above.max(if restarted < 20 { restarted as u64 } else { 0 });
        prop_assert_eq!(numbers_above(&path, 1, above), numbers_in(&content, above));
    }
}

#[test]
fn what_lies_around_a_damaged_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut segment = Segment::make(&path, 4096).unwrap();
    (1..=4).for_each(|number| append(&mut segment, number));
    let length = usize::try_from(segment.blocks.end()).unwrap() / 4;
    let whole = std::fs::read(&path).unwrap();
    for damaged in 1..=4 {
        // Its length, its checksum, its generation, its number, and a row.
        for byte in [2, 5, 9, 23, 30] {
            let mut bytes = whole.clone();
            bytes[(damaged - 1) * length + byte] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            for above in 0..4 {
                let expected: Vec<u64> = (above + 1..=4).filter(|number| *number != damaged as u64).collect();
                assert_eq!(numbers_above(&path, 1, above), expected, "record {damaged}, byte {byte}");
            }
        }
    }
}

#[test]
fn a_file_that_was_made_shorter_in_or_close_behind_its_records_is_known_by_it() {
    for above in [0, 3, 5] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 4096).unwrap();
        // What is left of an earlier use.
        (1..=9).for_each(|number| append(&mut segment, number));
        segment.restart().unwrap();
        (10..=14).for_each(|number| append(&mut segment, number));
        let end = usize::try_from(segment.blocks.end()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let [there, here] = records_above(&path, 1, 9 + above).map(|found| found.cut);
            assert_eq!(there, here);
            let first = end / 5;
            let next_is_above = (length / first) as u64 >= above;
            let expected = match length % first {
                // Less than the head of the first record, or more than zeros behind the last.
                _ if length < Rows::HEAD_BYTES || length >= end + Rows::HEAD_BYTES => false,
                // The first record, which the tables may have.
                _ if length < first => next_is_above,
                rest => !length.is_power_of_two() || (rest >= Rows::HEAD_BYTES && next_is_above),
            };
            assert_eq!(here, expected, "{length} bytes of {end}, above {above}");
        }
    }
}

#[test]
fn another_database_s_records_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut segment = Segment::make(&path, 4096).unwrap();
    (1..=3).for_each(|number| append(&mut segment, number));
    assert_eq!((numbers_above(&path, 1, 1), numbers_above(&path, 2, 1)), (vec![2, 3], vec![]));
}

#[test]
fn a_file_that_was_cut_is_read_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut segment = Segment::make(&path, 4096).unwrap();
    (1..=3).for_each(|number| append(&mut segment, number));
    for length in 0..segment.blocks.end() {
        let cut = File::options().write(true).open(&path).unwrap();
        cut.set_len(segment.blocks.end() - length).unwrap();
        let whole = (segment.blocks.end() - length) / (segment.blocks.end() / 3);
        assert_eq!(numbers(&path).len() as u64, whole, "{length} bytes less");
    }
}
