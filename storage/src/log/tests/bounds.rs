//! What a log may take of the disk, of the map, of readers' slots and of memory, and what it does where it may not.

use super::*;
use crate::log::applier::{Frozen, Waits};
use crate::log::claims::{Claim, Total};
use crate::rows::ToWrite;

/// Whether a commit goes to the log, and not to LMDB by itself.
fn goes_to_the_log(logged: &Logged, key: &str) -> bool {
    let covered = || logged.shared.state().covered;
    let before = covered();
    put(logged, key, "1").unwrap();
    covered() == before
}

/// A total to which no other test adds.
fn new_total() -> &'static Total {
    Box::leak(Box::new(Total::new()))
}

#[test]
fn what_one_log_may_need_of_the_disk_no_other_counts_on() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let logs = [0, 1].map(|number| open(folders[number].path()));
    let disk = new_total();
    for logged in &logs {
        logged.shared.state().disk = Claim::on(disk);
        assert!(goes_to_the_log(logged, "a"));
    }
    let claimed = || Claim::on(disk).set(0);
    let by_both = claimed();
    logs[0].shared.drain().unwrap();
    assert_eq!(2 * claimed(), by_both, "each had claimed as much, and gives it back when LMDB has it");
    assert!(claimed() > 0);

    // Another log has claimed more than any disk has.
    let mut elsewhere = Claim::on(disk);
    elsewhere.set(1 << 60);
    assert!(!goes_to_the_log(&logs[0], "b"));
    elsewhere.set(0);
    assert!(goes_to_the_log(&logs[0], "c"));
    drop(logs);
    assert_eq!(claimed(), 0);
}

/// What fails between claiming and writing claims nothing any more.
#[test]
fn a_commit_that_did_not_reach_the_log_gives_back_what_it_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    let disk = new_total();
    logged.shared.state().disk = Claim::on(disk);
    put(&logged, "a", "1").unwrap();
    logged.with_segments(Segments::break_current);
    put(&logged, "b", "1").unwrap_err();
    assert_eq!(Claim::on(disk).set(0), 0);
}

/// A reader keeps the pages of all commits since from being used again, so that the file grows up to the map's bound,
/// though little of it is in use. Who writes is told so; what was acknowledged goes to LMDB before.
#[test]
fn what_is_acknowledged_does_not_meet_the_map_s_bound_behind_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let map_bytes_max = 80 << 20;
    let logged = open_with(folder.path(), EnvOptions { map_bytes: map_bytes_max, map_bytes_max, ..OPTIONS });
    let value = |number: usize| number.to_string().repeat(1_000_000 / number.to_string().len());
    put(&logged, "a", &value(0)).unwrap();
    logged.shared.drain().unwrap();
    let reading = logged.read().unwrap();
    let (mut to_the_log, mut acknowledged) = (0, 0);
    let refused = loop {
        let covered = logged.shared.state().covered;
        if let Err(refused) = put(&logged, "a", &value(acknowledged + 1)) {
            break refused;
        }
        acknowledged += 1;
        to_the_log += usize::from(logged.shared.state().covered == covered);
        logged.shared.drain().expect("room for what was acknowledged");
    };
    assert!(matches!(refused, StorageError::MapFull { .. }), "{refused}");
    assert!(to_the_log > 0 && acknowledged > to_the_log, "{to_the_log} of {acknowledged}");
    assert_eq!(get(&logged, "a"), Some(value(acknowledged)));
    assert_eq!(reading.view().get(Table::Docs, b"a").unwrap(), Some(value(0).as_bytes()));
    drop(reading);
    put(&logged, "a", "1").unwrap();
}

/// Who writes needs a reader's slot for the log, but none for LMDB.
#[test]
fn writing_goes_on_while_readers_have_all_slots() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open_with(folder.path(), EnvOptions { readers_max: 2, ..OPTIONS });
    put(&logged, "a", "1").unwrap();
    let (readings, refused) = all_readers(&logged);
    assert!(refused.is_too_many_readers() && readings.len() < 8, "{refused} after {}", readings.len());
    put(&logged, "a", "2").unwrap();
    write(&logged, &vec![(Table::Docs, b"b".to_vec(), Some(b"2".to_vec())), (Table::Docs, b"a".to_vec(), None)])
        .unwrap();
    for reading in readings {
        assert_eq!(reading.view().get(Table::Docs, b"a").unwrap(), Some(&b"1"[..]));
    }
    assert_eq!(["a", "b"].map(|key| get(&logged, key)), [None, Some("2".to_owned())]);
    assert!(goes_to_the_log(&logged, "c"), "there are slots again");
}

#[test]
fn files_are_made_for_the_second_of_two_commits_that_follow_each_other_soon() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    let long = Duration::from_secs(2 * 3600);
    for key in ["a", "b", "c"] {
        logged.with_segments(|segments| segments.had_commit(long));
        assert!(!goes_to_the_log(&logged, key), "it is alone");
        assert!(NAMES.iter().all(|name| !folder.path().join(name).exists()));
    }
    assert!(goes_to_the_log(&logged, "d"), "another one came before");
    logged.with_segments(|segments| segments.had_commit(long));
    assert!(goes_to_the_log(&logged, "e"), "the file is there");
}

#[test]
fn many_rows_wait_for_more_only_where_they_would_share_pages() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    let documents = |count: u32| {
        let row = |number: u32| (Table::Docs, number.to_be_bytes().to_vec(), Some(vec![1; 100]));
        write(&logged, &(0..count).map(row).collect()).unwrap();
    };
    let waits = || !logged.shared.state().rest(Duration::from_secs(1)).is_zero();
    documents(30_000);
    assert!(!waits(), "they are few");
    documents(50_000);
    assert!(waits());
    logged.shared.state().docs_pages = 300_000;
    assert!(!waits(), "too few would share a page");
    logged.shared.drain().unwrap();
    let pages = logged.shared.state().docs_pages;
    assert!((1_250..5_000).contains(&pages), "{pages} pages have 50,000 rows of some 120 bytes");
    documents(50_000);
    assert!(waits());
}

#[test]
fn rows_of_all_logs_take_no_more_memory_than_there_is_for_them() {
    const MEMORY_MAX: u64 = 512 << 20;
    let folder = tempfile::tempdir().unwrap();
    let logged = open_with_thread(folder.path());
    let memory = new_total();
    let claimed = || Claim::on(memory).set(0);
    logged.shared.state().memory = Claim::on(memory);
    let mut elsewhere = Claim::on(memory);

    // There is as much as two of its rows take.
    elsewhere.set((MEMORY_MAX - (5 << 19)) as usize);
    let mut to_the_log = 0;
    for number in 0..20 {
        let value = "x".repeat(1 << 20);
        let covered = logged.shared.state().covered;
        put(&logged, &format!("d{number}"), &value).unwrap();
        to_the_log += u64::from(logged.shared.state().covered <= covered);
        assert!(claimed() <= MEMORY_MAX, "{}", claimed());
    }
    assert!(to_the_log > 0);
    elsewhere.set(MEMORY_MAX as usize);
    let before = logged.shared.state().number;
    put(&logged, "last", "1").unwrap();
    assert_eq!(logged.shared.state().covered, before + 1, "it went to LMDB by itself, with all before it");
    assert!((0..20).all(|number| get(&logged, &format!("d{number}")).is_some()));
}

/// A writer may have to wait for as long as that takes.
#[test]
fn no_more_rows_go_to_lmdb_in_one_transaction_than_are_to() {
    for (table, most) in [(Table::BySeq, 640_000), (Table::Docs, 266_664)] {
        let folder = tempfile::tempdir().unwrap();
        let logged = open(folder.path());
        logged.with_segments(Segments::are_large);
        let step = most / 70;
        let mut largest = 0;
        for first in (0..160 * step).step_by(step) {
            commit_rows(&logged, table, Some(b""), first..first + step);
            largest = largest.max(logged.shared.state().over.active.len());
        }
        assert!(largest > most / 2 && largest <= most, "{largest} of {table:?}");
        // What is more by itself goes to LMDB by itself.
        commit_rows(&logged, table, Some(b""), 0..most + 1);
        assert!(logged.shared.state().over.is_empty());
    }
}

#[test]
fn many_rows_wait_longer_for_others_while_there_is_memory() {
    const MANY: usize = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    logged.with_segments(Segments::are_large);
    let memory = new_total();
    logged.shared.state().memory = Claim::on(memory);
    let commit = |rows: std::ops::Range<usize>| {
        let rows = rows.map(|number| (Table::BySeq, number.to_be_bytes().to_vec(), Some(Vec::new())));
        write(&logged, &rows.collect()).unwrap();
    };
    let rest = |waited: u64| logged.shared.state().rest(Duration::from_millis(waited)).as_millis();
    commit(0..MANY - 1);
    assert_eq!([rest(0), rest(400), rest(1_000), rest(5_000)], [1_000, 600, 0, 0]);
    commit(MANY - 1..MANY);
    assert_eq!([rest(0), rest(1_000), rest(3_000)], [3_000, 2_000, 0]);
    let mut elsewhere = Claim::on(memory);
    elsewhere.set(300 << 20);
    assert_eq!(rest(0), 3_000, "three quarters are not taken yet");
    elsewhere.set(384 << 20);
    assert_eq!([rest(0), rest(1_000)], [1_000, 0], "others have more use for the memory");
    commit(MANY..80_000);
    assert_eq!(rest(0), 0, "they are too many then");
    drop(elsewhere);
    assert_eq!(rest(0), 3_000);
    commit(80_000..480_000);
    assert_eq!(rest(0), 0);
}

/// Commits this many rows, one of a key.
fn commit_rows(logged: &Logged, table: Table, value: Option<&[u8]>, rows: std::ops::Range<usize>) {
    write(logged, &rows.map(|row| (table, row.to_be_bytes().to_vec(), value.map(<[u8]>::to_vec))).collect()).unwrap();
}

#[test]
fn rows_that_lie_anywhere_wait_for_fewer_others_than_those_that_come_in_order() {
    use Table::{Bodies, BySeq, Docs, FeedIndex, History, Local, Transactions};
    let anywhere = [Docs, History, Local, Transactions, FeedIndex].map(|table| (table, Some(&b""[..]), true));
    let others = [(BySeq, None, true), (BySeq, Some(&b""[..]), false), (Bodies, Some(&b""[..]), false)];
    for (table, value, is_scattered) in anywhere.into_iter().chain(others) {
        let folder = tempfile::tempdir().unwrap();
        let logged = open(folder.path());
        logged.with_segments(Segments::are_large);
        logged.shared.state().memory = Claim::on(new_total());
        commit_rows(&logged, table, value, 0..199_999);
        assert!(!logged.shared.state().is_large());
        commit_rows(&logged, table, value, 199_999..200_000);
        assert_eq!(logged.shared.state().is_large(), is_scattered, "{table:?}");
    }
}

#[test]
fn rows_are_awaited_while_somebody_waits_for_lmdb_or_many_more_have_come_and_from_the_end_on() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    logged.with_segments(Segments::are_large);
    logged.shared.state().memory = Claim::on(new_total());
    let shared = &logged.shared;
    let frozen = Frozen { rows: Arc::default(), up_to: Vec::new(), shared };
    assert!(!frozen.are_awaited());
    let [one, other] = [Waits::for_lmdb(shared), Waits::for_lmdb(shared)];
    drop(one);
    assert!(frozen.are_awaited(), "the other waits still");
    drop(other);
    assert!(!frozen.are_awaited());
    let rows = (0..480_000usize).map(|number| (Table::BySeq, number.to_be_bytes().to_vec(), Some(Vec::new())));
    write(&logged, &rows.collect()).unwrap();
    assert!(frozen.are_awaited(), "as many wait as may");
    shared.drain().unwrap();
    assert!(!frozen.are_awaited());
    logged.stop();
    assert!(frozen.are_awaited());
}

/// LMDB keeps 32 MiB of changed pages in memory. What is more it writes before the commit, and reads again where it is
/// changed once more. The first attempt ends with a map that is full.
#[test]
fn a_transaction_of_more_pages_than_lmdb_has_in_memory_is_whole() {
    const ROWS: u64 = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    // Scattered, and two of a page.
    let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
    let value = |number: u64, round: u8| Some([vec![round; 1_400], key(number)].concat());
    let mut model = Model::new();
    let mut commit = |changes: Changes| {
        write(&logged, &changes).unwrap();
        assert!(logged.shared.state().over.is_empty(), "it is in LMDB");
        change_model(&mut model, &changes);
        let reading = logged.read().unwrap();
        let rows = |direction| {
            let rows = reading.view().range(Table::Docs, (Bound::Unbounded, Bound::Unbounded), direction).unwrap();
            rows.map(Result::unwrap).map(|(key, value)| ((Table::Docs, key.to_vec()), value.to_vec()))
        };
        assert!(rows(Direction::Forward).eq(model.clone()));
        assert!(rows(Direction::Backward).eq(model.clone().into_iter().rev()));
    };
    commit((0..ROWS).map(|number| (Table::Docs, key(number), value(number, 1))).collect());
    // Each by itself: changed, gone, split by one that came between.
    let changed = (0..ROWS).map(|number| (Table::Docs, key(number), value(number, 2).filter(|_| number % 3 > 0)));
    commit(changed.chain((ROWS..2 * ROWS).map(|number| (Table::Docs, key(number), value(number, 3)))).collect());
}
