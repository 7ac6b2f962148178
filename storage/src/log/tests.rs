//! The log as a whole, its thread replaced by the test: whatever is written, frozen, applied, crashed and read in
//! whichever order, each reader sees the state of its moment.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::logged::{Logged, Reading, meanwhile};
use super::replay::{FoundLog, Replayed};
use super::segments::{NAMES, Segments};
use crate::codec::meta::{self, Identity};
use crate::env::{DATA_FILE, Durability, Env, EnvOptions};
use crate::error::StorageError;
use crate::model::sequence::SeqFormat;
use crate::notice::{Notice, Tell};
use crate::pages::{At, Damage, Lost};
use crate::range::Direction;
use crate::room::Room;
use crate::rows::Rows;
use crate::tables::{META_IDENTITY, Table};
use crate::view::View;

mod bounds;
mod known;

const TABLES: [Table; 3] = [Table::Docs, Table::BySeq, Table::Bodies];

type Key = Vec<u8>;
type Model = BTreeMap<(Table, Key), Vec<u8>>;
/// What one commit writes.
type Changes = Vec<(Table, Key, Option<Vec<u8>>)>;

const OPTIONS: EnvOptions = EnvOptions {
    map_bytes: 64 << 20,
    map_bytes_max: 1 << 30,
    readers_max: 64,
    durability: Durability::Full,
    tell: |_, _| {},
};

/// An environment of the database with this uuid.
fn open_env_of(folder: &Path, uuid: u8, options: EnvOptions) -> Env {
    let env = Env::open(folder, options);
    let identity = Identity { uuid: [uuid; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    let name = |view: View<'_>| {
        let mut rows = Rows::default();
        if view.get(Table::Meta, META_IDENTITY)?.is_none() {
            rows.put(Table::Meta, META_IDENTITY, meta::encode_identity(&identity));
        }
        Ok((rows, ()))
    };
    env.and_then(|env| env.write(Room::Reserve, name, |()| {}).map(|()| env)).unwrap()
}

fn open_env(folder: &Path) -> Env {
    open_env_of(folder, 1, OPTIONS)
}

fn replay(folder: &Path, env: &Env) -> (FoundLog, Replayed) {
    let found = FoundLog::open(folder).unwrap();
    let replayed = found.replay(env.read().unwrap().view()).unwrap();
    (found, replayed)
}

fn open(folder: &Path) -> Logged {
    open_with(folder, OPTIONS)
}

fn open_with(folder: &Path, options: EnvOptions) -> Logged {
    open_and_tell(folder, options, |_, _| {})
}

fn open_and_tell(folder: &Path, options: EnvOptions, tell: Tell) -> Logged {
    without_thread(folder, open_env_of(folder, 1, options), tell)
}

fn without_thread(folder: &Path, env: Env, tell: Tell) -> Logged {
    let (found, replayed) = replay(folder, &env);
    assert_eq!(replayed.damage, None);
    after_a_commit(Logged::new(folder, env, Durability::Full, tell, found, replayed, false).unwrap())
}

fn open_with_thread(folder: &Path) -> Logged {
    let env = open_env(folder);
    let (found, replayed) = replay(folder, &env);
    after_a_commit(Logged::open(folder, env, Durability::Full, |_, _| {}, found, replayed).unwrap())
}

/// Else the first commit would go to LMDB by itself.
fn after_a_commit(logged: Logged) -> Logged {
    logged.with_segments(|segments| segments.had_commit(Duration::ZERO));
    logged
}

/// Waits until this is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Keeps what is told of, but for each sync.
fn keep(told: &Mutex<Vec<String>>, notice: &Notice<'_>) {
    told.lock().unwrap().push(match notice {
        Notice::Synced { .. } => return,
        Notice::Stalled { error, first } => format!("{first}: {error}"),
        Notice::Resumed => "resumed".to_owned(),
        other => format!("{other:?}"),
    });
}

fn damage_in(folder: &Path) -> Option<Damage> {
    replay(folder, &open_env(folder)).1.damage
}

fn write(logged: &Logged, changes: &Changes) -> Result<(), StorageError> {
    let plan = |_: View<'_>| {
        let mut rows = Rows::default();
        for (table, key, value) in changes {
            rows.set(*table, key, value.as_ref());
        }
        Ok((rows, ()))
    };
    logged.write(Room::Ordinary, plan, |()| {})
}

fn put(logged: &Logged, key: &str, value: &str) -> Result<(), StorageError> {
    write(logged, &vec![(Table::Docs, key.into(), Some(value.into()))])
}

fn get(logged: &Logged, key: &str) -> Option<String> {
    let reading = logged.read().unwrap();
    let value = reading.view().get(Table::Docs, key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn change_model(model: &mut Model, changes: &Changes) {
    for (table, key, value) in changes {
        match value {
            Some(value) => model.insert((*table, key.clone()), value.clone()),
            None => model.remove(&(*table, key.clone())),
        };
    }
}

fn assert_sees(reading: &Reading<'_>, model: &Model, from: &Key) {
    let view = reading.view();
    for table in TABLES {
        for bound in [Bound::Unbounded, Bound::Excluded(&from[..]), Bound::Included(&from[..])] {
            let from = bound.map(|from| (table, from.to_vec()));
            let start = if from == Bound::Unbounded { Bound::Included((table, Vec::new())) } else { from };
            let rows = model.range((start, Bound::Unbounded)).filter(|((of, _), _)| *of == table);
            let mut expected: Vec<(&[u8], &[u8])> = rows.map(|((_, key), value)| (&key[..], &value[..])).collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let found = view.range(table, (bound, Bound::Unbounded), direction).unwrap();
                let found: Vec<_> = found.map(Result::unwrap).collect();
                assert_eq!(found, expected, "{table:?} {bound:?} {direction:?}");
                expected.reverse();
            }
        }
        for key in 0..8 {
            let found = view.get(table, &[key]).unwrap();
            assert_eq!(found, model.get(&(table, vec![key])).map(Vec::as_slice), "{table:?} {key}");
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(Changes),
    /// As where the log is of no use.
    WriteThrough(Changes),
    Freeze,
    Apply,
    /// Get to know some documents, or all.
    Learn(bool),
    Read,
    Crash,
    Close,
}

fn any_changes() -> impl Strategy<Value = Changes> {
    let key = (0u8..8).prop_map(|key| vec![key]);
    let value = prop_oneof![
        1 => Just(None),
        3 => prop::collection::vec(any::<u8>(), 0..8).prop_map(Some),
        1 => (200usize..3000).prop_map(|length| Some(vec![7; length])),
    ];
    prop::collection::vec((prop::sample::select(&TABLES[..]), key, value), 0..6)
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_changes().prop_map(Step::Write),
        1 => any_changes().prop_map(Step::WriteThrough),
        2 => Just(Step::Freeze),
        2 => Just(Step::Apply),
        2 => any::<bool>().prop_map(Step::Learn),
        3 => Just(Step::Read),
        1 => Just(Step::Crash),
        1 => Just(Step::Close),
    ]
}

/// Readers that have all slots, and what another one is told.
fn all_readers(logged: &Logged) -> (Vec<Reading<'_>>, StorageError) {
    let mut readings = Vec::new();
    loop {
        match logged.read() {
            Ok(reading) => readings.push(reading),
            Err(refused) => return (readings, refused),
        }
    }
}

/// Has it know all documents, if it has begun to; gives how many turns that takes.
fn learn_all(logged: &Logged) -> usize {
    let mut turns = 0;
    while logged.shared.state().learns() {
        logged.shared.learn();
        turns += 1;
    }
    turns
}

/// Takes steps until the log is to be opened anew; tells whether it is to be closed before.
fn run(logged: &Logged, steps: &mut impl Iterator<Item = Step>, model: &mut Model, from: &Key) -> Option<bool> {
    let mut readings: Vec<(Reading<'_>, Model)> = Vec::new();
    let ended = loop {
        match steps.next() {
            Some(Step::Write(changes)) => {
                write(logged, &changes).unwrap();
                change_model(model, &changes);
            }
            Some(Step::WriteThrough(changes)) => {
                logged.shared.state().has_failed_before();
                write(logged, &changes).unwrap();
                logged.shared.state().failed = None;
                change_model(model, &changes);
            }
            Some(Step::Freeze) => logged.shared.state().freeze(),
            Some(Step::Apply) => logged.shared.apply().unwrap(),
            Some(Step::Learn(false)) => logged.shared.learn(),
            Some(Step::Learn(true)) => drop(learn_all(logged)),
            Some(Step::Read) => readings.push((logged.read().unwrap(), model.clone())),
            Some(Step::Crash) => break Some(false),
            Some(Step::Close) => break Some(true),
            None => break None,
        }
    };
    for (reading, seen) in &readings {
        assert_sees(reading, seen, from);
    }
    ended
}

/// Fewer than is usual, as each opens files over and over; `PROPTEST_CASES` overrules it.
pub(super) fn cases() -> ProptestConfig {
    let given = std::env::var_os("PROPTEST_CASES").is_some();
    if given { ProptestConfig::default() } else { ProptestConfig::with_cases(32) }
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn every_reader_sees_the_state_of_its_moment(
        steps in prop::collection::vec(any_step(), 1..60),
        from in (0u8..8).prop_map(|key| vec![key]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut model, mut steps) = (Model::new(), steps.into_iter());
        loop {
            let logged = open(folder.path());
            assert_sees(&logged.read().unwrap(), &model, &from);
            match run(&logged, &mut steps, &mut model, &from) {
                Some(true) => {
                    logged.close().unwrap();
                    prop_assert!(NAMES.iter().all(|name| !folder.path().join(name).exists()));
                }
                Some(false) => drop(logged),
                None => break,
            }
        }
    }
}

/// All rows of a commit have its number; the log is of no use for some of them.
#[test]
fn no_reader_sees_half_a_commit_whoever_writes_and_applies_meanwhile() {
    const COMMITS: u32 = 3000;
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    let rows = |number: u32| TABLES.map(|table| (table, vec![number as u8 % 5], Some(number.to_be_bytes().to_vec())));
    let commit = |number| {
        let newest = TABLES.map(|table| (table, b"newest".to_vec(), Some(u32::to_be_bytes(number).to_vec())));
        write(&logged, &rows(number).into_iter().chain(newest).collect()).unwrap();
    };
    // What only LMDB has.
    put(&logged, "lmdb", "1").unwrap();
    logged.shared.drain().unwrap();
    commit(0);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..COMMITS {
                if number % 7 == 0 {
                    logged.shared.state().has_failed_before();
                }
                commit(number);
            }
            ended.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                logged.shared.drain().unwrap();
                logged.shared.learn();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !ended.load(Ordering::SeqCst) {
                    let reading = logged.read().unwrap();
                    let number = |table| {
                        let value = reading.view().get(table, b"newest").unwrap().unwrap();
                        u32::from_be_bytes(value.try_into().unwrap())
                    };
                    let seen = TABLES.map(number);
                    assert!(seen == [seen[0]; 3] && seen[0] >= last, "{seen:?} after {last}");
                    assert!(reading.view().get(Table::Docs, b"lmdb").unwrap().is_some());
                    last = seen[0];
                    for row in rows(last) {
                        assert_eq!(reading.view().get(row.0, &row.1).unwrap(), row.2.as_deref());
                    }
                }
            });
        }
    });
    assert_eq!(logged.shared.state().number, u64::from(COMMITS) + 1);
}

/// Whatever happens between taking the rows in memory and taking LMDB's state, they fit.
#[test]
fn a_reader_that_was_overtaken_sees_one_state() {
    let both = |value: &str| -> Changes {
        ["x", "y"].map(|key| (Table::Docs, key.into(), Some(value.into()))).into_iter().collect()
    };
    for goes_through in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let logged = Arc::new(open(folder.path()));
        write(&logged, &both("1")).unwrap();
        logged.shared.drain().unwrap();
        put(&logged, "x", "2").unwrap();
        let (writer, changes) = (Arc::clone(&logged), both("3"));
        meanwhile::set(move || {
            if goes_through {
                writer.shared.state().has_failed_before();
            }
            write(&writer, &changes).unwrap();
            writer.shared.drain().unwrap();
        });
        let reading = logged.read().unwrap();
        let seen = ["x", "y"].map(|key| reading.view().get(Table::Docs, key.as_bytes()).unwrap());
        assert_eq!(seen, [Some(&b"3"[..]); 2], "2 and 3 would be two states");
    }
}

#[test]
fn the_thread_puts_rows_into_lmdb_and_ends_and_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open_with_thread(folder.path());
    for (number, key) in [(1, "a"), (2, "b")] {
        put(&logged, key, "1").unwrap();
        until("LMDB should get the row", || logged.shared.state().covered == number);
        until("the thread should end", || !logged.shared.state().running);
        assert_eq!(get(&logged, key).as_deref(), Some("1"));
    }
}

#[test]
fn a_panic_in_a_plan_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    put(&logged, "a", "1").unwrap();
    for failed in [false, true] {
        if failed {
            logged.shared.state().has_failed_before();
        }
        let plan = |_: View<'_>| -> Result<(Rows, ()), StorageError> { panic!("on purpose") };
        let panics = std::panic::AssertUnwindSafe(|| logged.write(Room::Ordinary, plan, |()| {}));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(get(&logged, "a").as_deref(), Some("1"));
        put(&logged, "b", "2").unwrap();
    }
    drop(logged);
    let logged = open(folder.path());
    assert_eq!((get(&logged, "a").as_deref(), get(&logged, "b").as_deref()), (Some("1"), Some("2")));
}

#[test]
fn a_record_that_could_not_be_written_is_never_replayed_and_what_was_before_stays() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    put(&logged, "before", "1").unwrap();
    logged.with_segments(Segments::break_current);
    assert!(matches!(put(&logged, "failed", "1"), Err(StorageError::DiskFailed { .. })));
    assert_eq!((get(&logged, "failed"), get(&logged, "before").as_deref()), (None, Some("1")));
    put(&logged, "after", "1").unwrap();
    drop(logged);
    let logged = open(folder.path());
    assert_eq!(["before", "failed", "after"].map(|key| get(&logged, key).is_some()), [true, false, true]);
}

/// A folder with the records 1 to 4 in its log, and nothing of them in LMDB.
fn with_four_records() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    for key in ["a", "b", "c", "d"] {
        put(&logged, key, "1").unwrap();
    }
    drop(logged);
    folder
}

const RECORD_BYTES: usize = 30;

fn flip(folder: &TempDir, record: usize) {
    let path = folder.path().join(NAMES[0]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[record * RECORD_BYTES - 1] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_torn_record_at_the_end_is_left_out() {
    let folder = with_four_records();
    flip(&folder, 4);
    let logged = open(folder.path());
    assert_eq!(["a", "b", "c", "d"].map(|key| get(&logged, key).is_some()), [true, true, true, false]);
    put(&logged, "e", "1").unwrap();
    drop(logged);
    let logged = open(folder.path());
    assert_eq!(["c", "d", "e"].map(|key| get(&logged, key).is_some()), [true, false, true]);
}

#[test]
fn a_damaged_record_before_a_whole_one_is_told_of() {
    for damaged in 1..=3 {
        let folder = with_four_records();
        flip(&folder, damaged);
        let damage = damage_in(folder.path()).unwrap();
        assert_eq!(damage.at, At::Log("log-0", (damaged * RECORD_BYTES) as u64));
        assert_eq!(damage.lost, Lost::Newest(damaged as u64));
    }
}

#[test]
fn a_file_that_was_made_shorter_is_told_of() {
    for (bytes, lost) in [(2 * RECORD_BYTES + 25, 3), (3 * RECORD_BYTES + 1, 4), (4 * RECORD_BYTES, 5)] {
        let folder = with_four_records();
        File::options().write(true).open(folder.path().join(NAMES[0])).unwrap().set_len(bytes as u64).unwrap();
        let damage = damage_in(folder.path()).unwrap();
        assert_eq!(damage.at, At::Log("log-0", bytes as u64));
        assert_eq!(damage.lost, Lost::Newest(lost));
    }
    let folder = with_four_records();
    let file = File::options().write(true).open(folder.path().join(NAMES[0])).unwrap();
    file.set_len(4 * RECORD_BYTES as u64 + 500).unwrap();
    assert_eq!(damage_in(folder.path()), None, "zeros follow the last record: there was no other");
}

/// Whoever wrote it may have ended before it was synced, and a torn record may lie at its end.
#[test]
fn lmdb_has_what_was_found_before_anything_is_built_on_it() {
    let folder = with_four_records();
    let logged = open(folder.path());
    assert_eq!(logged.shared.state().covered, 0);
    put(&logged, "e", "1").unwrap();
    assert!(logged.shared.state().covered >= 4);
}

/// What was read may be in the system's memory alone, which takes it for synced after a sync that failed: another sync
/// would write nothing.
#[test]
fn what_is_found_is_written_again_before_it_is_synced() {
    let folder = with_four_records();
    let path = folder.path().join(NAMES[0]);
    let written = fs::read(&path).unwrap();
    let env = open_env(folder.path());
    let (_, replayed) = replay(folder.path(), &env);
    // As the disk has it.
    fs::write(&path, vec![0; written.len()]).unwrap();
    replayed.keep(folder.path()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), written);
}

#[test]
fn damage_in_what_lmdb_has_costs_nothing() {
    for (damaged, found) in [(vec![1], Ok(4)), (vec![2], Ok(4)), (vec![1, 2], Ok(4)), (vec![2, 3], Err(3))] {
        let folder = tempfile::tempdir().unwrap();
        let logged = open(folder.path());
        put(&logged, "a", "1").unwrap();
        put(&logged, "b", "1").unwrap();
        logged.shared.drain().unwrap();
        put(&logged, "c", "1").unwrap();
        put(&logged, "d", "1").unwrap();
        drop(logged);
        damaged.iter().for_each(|record| flip(&folder, *record));
        let Replayed { number, damage, .. } = replay(folder.path(), &open_env(folder.path())).1;
        match found {
            Ok(last) => assert_eq!((number, damage), (last, None), "{damaged:?}"),
            Err(lost) => assert_eq!(damage.unwrap().lost, Lost::Newest(lost), "{damaged:?}"),
        }
    }
}

#[test]
fn another_database_s_log_is_neither_replayed_nor_damage() {
    let folder = with_four_records();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::copy(folder.path().join(NAMES[0]), elsewhere.path().join(NAMES[0])).unwrap();
    let env = open_env_of(elsewhere.path(), 2, OPTIONS);
    let (_, Replayed { over, number, damage, .. }) = replay(elsewhere.path(), &env);
    assert!(over.is_empty() && number == 0 && damage.is_none(), "{number} {damage:?}");
}

/// A folder in a file's place: the system opens it for reading and gives nothing of it.
#[test]
fn what_the_disk_does_not_give_may_have_been_acknowledged() {
    let folder = with_four_records();
    fs::rename(folder.path().join(NAMES[0]), folder.path().join("away")).unwrap();
    fs::create_dir(folder.path().join(NAMES[0])).unwrap();
    fs::write(folder.path().join(NAMES[0]).join("anything"), "").unwrap();
    let damage = damage_in(folder.path()).unwrap();
    assert!(matches!(damage.at, At::Log("log-0", _)) && damage.lost == Lost::Newest(1), "{damage}");
    assert!(damage.what.starts_with("cannot be read: "), "{damage}");
}

/// A database is opened where LMDB does not take what was found, and is as it was; it is written to when LMDB does.
#[test]
fn what_lmdb_does_not_take_at_opening_is_read_and_writing_waits() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    (0..100).for_each(|number| put(&logged, &format!("d{number}"), "1").unwrap());
    drop(logged);
    let tell: Tell = |_, notice| keep(&TOLD, notice);
    // No commit fits into this map.
    let env = open_env_of(folder.path(), 1, EnvOptions { map_bytes: 4096, map_bytes_max: 4096, ..OPTIONS });
    let (found, replayed) = replay(folder.path(), &env);
    let logged = Logged::open(folder.path(), env, Durability::Relaxed, tell, found, replayed).unwrap();
    assert!((0..100).all(|number| get(&logged, &format!("d{number}")).is_some()));
    assert!(matches!(put(&logged, "new", "1"), Err(StorageError::MapFull { .. })));
    assert!(matches!(logged.close(), Err(StorageError::MapFull { .. })), "it is not all in LMDB");
    let told = TOLD.lock().unwrap().clone();
    assert!(told[0].starts_with("true: the database is full"), "{told:?}");
    assert!(told.len() > 1 && told[1..].iter().all(|told| told.starts_with("false: ")), "{told:?}");

    let env = open_env(folder.path());
    let (found, replayed) = replay(folder.path(), &env);
    let logged = Logged::open(folder.path(), env, Durability::Relaxed, tell, found, replayed).unwrap();
    assert!(NAMES.iter().all(|name| !folder.path().join(name).exists()), "LMDB has it");
    logged.shared.state().has_failed_before();
    put(&logged, "new", "1").unwrap();
    assert!((0..100).all(|number| get(&logged, &format!("d{number}")).is_some()));
    logged.close().unwrap();
}

#[test]
fn a_lost_segment_is_told_of_by_the_one_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    let large = "x".repeat(3000);
    // Fills the first segment, which LMDB then has, and the second; a bit of both is not applied.
    while !folder.path().join(NAMES[1]).exists() {
        put(&logged, "large", &large).unwrap();
    }
    drop(logged);
    assert_eq!(damage_in(folder.path()), None);
    fs::remove_file(folder.path().join(NAMES[0])).unwrap();
    assert!(matches!(damage_in(folder.path()), Some(Damage { lost: Lost::Newest(1), .. })));
}

/// Control: were a segment written over before LMDB has what it holds, a crash would show it.
#[test]
fn a_segment_that_is_written_over_too_early_is_caught() {
    for early in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let logged = open(folder.path());
        logged.with_segments(|segments| segments.recycles_early = early);
        let large = "x".repeat(3000);
        for number in 0..20 {
            put(&logged, &format!("d{number}"), &large).unwrap();
        }
        drop(logged);
        let is_whole = damage_in(folder.path()).is_none() && {
            let logged = open(folder.path());
            (0..20).all(|number| get(&logged, &format!("d{number}")).is_some())
        };
        assert_eq!(is_whole, !early);
    }
}

/// What is in the log but not in LMDB is as much as the log may be, whoever puts it there.
#[test]
fn the_log_is_bounded_and_who_writes_waits_for_lmdb() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    let large = "x".repeat(1 << 20);
    for number in 0..4 * (super::segment::BYTES_MAX >> 20) {
        put(&logged, &format!("d{number}"), &large).unwrap();
        let state = logged.shared.state();
        let frozen = state.over.frozen.as_ref().map_or(0, |frozen| frozen.bytes());
        assert!(state.over.active.bytes() + frozen <= 2 * super::segment::BYTES_MAX as usize);
    }
    let bytes = NAMES.map(|name| fs::metadata(folder.path().join(name)).map_or(0, |file| file.len()));
    assert!(bytes.iter().all(|bytes| *bytes <= super::segment::BYTES_MAX), "{bytes:?}");
    assert!(logged.shared.state().covered > 0, "LMDB was given some");
}

/// Asking LMDB takes a thread that other databases wait for.
#[test]
fn who_writes_soon_after_lmdb_has_failed_is_refused_without_asking_it_again() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    (0..100).for_each(|number| put(&logged, &format!("d{number}"), "1").unwrap());
    drop(logged);
    // No commit fits into this map.
    let options = EnvOptions { map_bytes: 4096, map_bytes_max: 4096, ..OPTIONS };
    let logged = open_and_tell(folder.path(), options, |_, notice| keep(&TOLD, notice));
    let refused = || assert!(matches!(put(&logged, "new", "1"), Err(StorageError::MapFull { map_bytes_max: 4096 })));
    let asked = || TOLD.lock().unwrap().len();
    // The last failure is moved into the future, as the test may be held up.
    let fails_from = |at: Instant| logged.shared.state().failed.as_mut().unwrap().at = at;
    refused();
    fails_from(Instant::now() + Duration::from_secs(3600));
    (0..10).for_each(|_| refused());
    assert_eq!(asked(), 1);
    fails_from(Instant::now().checked_sub(Duration::from_secs(3600)).unwrap());
    refused();
    assert_eq!(asked(), 2);
}

/// Its record is synced, some of its rows are in memory, and its number is not taken.
#[test]
fn after_a_panic_that_broke_off_a_commit_nothing_is_read_or_written_until_the_log_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let logged = open(folder.path());
    put(&logged, "a", "1").unwrap();
    // The first thing that happens is the reading by which it is planned.
    meanwhile::set(|| meanwhile::set(|| panic!("on purpose")));
    let broken_off = |answer: Result<(), StorageError>| match answer {
        Err(StorageError::BrokenOff { what }) => assert_eq!(what, "on purpose"),
        other => panic!("{other:?}"),
    };
    broken_off(put(&logged, "b", "1"));
    broken_off(put(&logged, "c", "1"));
    broken_off(logged.read().map(drop));
    broken_off(logged.shared.drain());
    broken_off(logged.close());
    let logged = open(folder.path());
    assert_eq!(["a", "b", "c"].map(|key| get(&logged, key).is_some()), [true, true, false]);
    put(&logged, "c", "1").unwrap();
    drop(logged);
    assert!(["a", "b", "c"].iter().all(|key| get(&open(folder.path()), key).is_some()));
}

/// A panic while rows are put into LMDB is told as any other failure, and they are put there the next time.
#[test]
fn a_panic_while_lmdb_takes_rows_is_told_and_tried_again() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let logged = open_and_tell(folder.path(), OPTIONS, |_, notice| keep(&TOLD, notice));
    put(&logged, "a", "1").unwrap();
    logged.shared.state().freeze();
    meanwhile::set(|| panic!("on purpose"));
    assert!(matches!(logged.shared.apply(), Err(StorageError::Panicked { .. })));
    assert!(matches!(&TOLD.lock().unwrap()[..], [told] if told == "true: writing failed: on purpose"));
    assert_eq!((get(&logged, "a").as_deref(), logged.shared.state().covered), (Some("1"), 0));
    logged.shared.apply().unwrap();
    assert_eq!(TOLD.lock().unwrap()[1..], ["resumed"]);
    assert_eq!((get(&logged, "a").as_deref(), logged.shared.state().covered), (Some("1"), 1));
}
