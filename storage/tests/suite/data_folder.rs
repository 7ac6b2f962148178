//! The data folder: one holder, a catalogue that survives, and no old token that hides a new write.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Counted, CreateError, DataFolder, Detail, Durability, StorageError, Store, StoreOptions, Write};

use crate::db::{create, small};
use crate::feed_index::TestKeys;

fn name(text: &str) -> DbName {
    DbName::parse(text).unwrap()
}

fn open(path: &Path) -> DataFolder {
    DataFolder::open(path, small()).unwrap()
}

fn relaxed() -> StoreOptions {
    StoreOptions { durability: Durability::Relaxed, ..small() }
}

fn make(folder: &DataFolder, text: &str) -> Store {
    folder.create(&name(text), SeqFormat::Integer).unwrap()
}

/// Writes new documents; gives the last sequence.
fn write(store: &Store, docs: &[&str]) -> Sequence {
    let writes: Vec<Write> = docs.iter().map(|doc| create(doc, "{}")).collect();
    store.write(&[writes.into()]).unwrap().counters.update_seq
}

fn update_seq(store: &Store) -> Sequence {
    store.snapshot().unwrap().counters().unwrap().update_seq
}

fn names(folder: &DataFolder) -> Vec<String> {
    folder.names().iter().map(ToString::to_string).collect()
}

#[test]
fn a_folder_has_one_holder() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    assert!(matches!(DataFolder::open(dir.path(), small()), Err(StorageError::FolderInUse { .. })));
    drop(first);
    open(dir.path());
}

/// Whoever took the file for a stale one let a second server in, and acknowledged writes were lost.
#[test]
fn a_folder_has_one_holder_whose_lock_was_taken_away_too() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    fs::remove_file(dir.path().join("lock")).unwrap();
    assert!(matches!(DataFolder::open(dir.path(), small()), Err(StorageError::FolderInUse { .. })));
    first.release().unwrap();
    open(dir.path());
}

/// `data.mdb` alone was copied then, as the documentation says that it may be, and acknowledged writes were missing.
#[test]
fn after_an_orderly_end_no_database_has_a_log_whether_it_was_opened_or_not() {
    let (dir, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = open(dir.path());
    let store = make(&folder, "a");
    let logs = |folder: &Path| ["log-0", "log-1"].map(|log| folder.join("databases/a").join(log).exists());
    // The first commits go to LMDB by themselves.
    let last = (0..100).map(|doc| write(&store, &[&doc.to_string()])).find(|_| logs(dir.path()).contains(&true));
    let database = crashed.path().join("databases/a");
    fs::create_dir(crashed.path().join("databases")).unwrap();
    // Rows may go to LMDB while it is copied.
    let files = |folder: &Path| ["data.mdb", "log-0", "log-1"].map(|file| fs::read(folder.join(file)).ok());
    let there = dir.path().join("databases/a");
    copy_folder(&there, &database);
    while files(&there) != files(&database) {
        fs::remove_dir_all(&database).unwrap();
        copy_folder(&there, &database);
    }
    fs::copy(dir.path().join("catalogue.json"), crashed.path().join("catalogue.json")).unwrap();
    assert!(logs(crashed.path()).contains(&true), "as a kill leaves it");

    open(crashed.path()).close_cleanly().unwrap();
    assert_eq!(logs(crashed.path()), [false; 2]);
    let folder = open(crashed.path());
    let store = folder.open_store(&name("a")).unwrap().unwrap();
    assert_eq!(Some(update_seq(&store)), last);
}

/// What was cut short ended the process when it was read, or written to.
#[test]
fn a_file_that_is_not_walked_through_and_was_cut_short_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let options = || StoreOptions { verify_at_open_bytes_max: 0, ..small() };
    let folder = DataFolder::open(dir.path(), options()).unwrap();
    let store = make(&folder, "a");
    let body = format!("{{\"v\":\"{}\"}}", "x".repeat(3_000));
    let writes: Vec<Write> = (0..100).map(|doc| create(&format!("d{doc:03}"), &body)).collect();
    store.write(&[writes.into()]).unwrap();
    store.close().unwrap();
    let file = dir.path().join("databases/a/data.mdb");
    let whole = fs::read(&file).unwrap();
    let sound = folder.open_store(&name("a")).unwrap().unwrap();
    assert!(sound.damages().is_empty());
    sound.close().unwrap();
    for kept in [whole.len() - 4096, whole.len() / 2, whole.len() / 4] {
        fs::write(&file, &whole[..kept]).unwrap();
        let store = match folder.open_store(&name("a")) {
            Ok(store) => store.unwrap(),
            Err(error) => {
                assert!(error.is_damage(), "{kept} bytes: {error}");
                continue;
            }
        };
        assert!(!store.damages().is_empty() && store.check_writable().is_err(), "{kept} bytes");
        let snapshot = store.snapshot().unwrap();
        for doc in 0..100 {
            let id = DocId::parse(&format!("d{doc:03}")).unwrap();
            let read = snapshot.document_change(&id, Detail { bodies: true, leaves: true });
            assert!(matches!(&read, Ok(Some(_))) || read.is_err_and(|error| error.is_damage()), "{kept} bytes: {doc}");
        }
        drop(snapshot);
        store.close().unwrap();
    }
}

#[test]
fn a_check_of_a_copy_makes_nothing_in_it() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = make(&open(dir.path()), "a");
    write(&store, &["x"]);
    store.close().unwrap();
    fs::copy(dir.path().join("databases/a/data.mdb"), copy.path().join("data.mdb")).unwrap();
    let report = Store::check_folder(copy.path(), &TestKeys).unwrap();
    assert!(report.is_clean() && report.docs == 1, "{report:?}");
    let files: Vec<_> = fs::read_dir(copy.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["data.mdb"]);
}

/// Files were written to where the path led by then, and what was acknowledged was not found again.
#[test]
fn a_folder_stays_the_one_that_was_opened_when_its_path_leads_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, link) = (dir.path().join("first"), dir.path().join("second"), dir.path().join("link"));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    symlink(&first, &link).unwrap();
    let folder = open(&link);
    make(&folder, "old").close().unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&second, &link).unwrap();
    let store = folder.open_store(&name("old")).unwrap().unwrap();
    let last = write(&store, &["x"]);
    store.close().unwrap();
    make(&folder, "new").close().unwrap();
    folder.close_cleanly().unwrap();
    drop(folder);
    assert_eq!(fs::read_dir(&second).unwrap().count(), 0, "it was never opened");
    let folder = open(&first);
    assert_eq!(names(&folder), ["new", "old"]);
    assert_eq!(update_seq(&folder.open_store(&name("old")).unwrap().unwrap()), last);
}

#[test]
fn a_folder_must_be_named() {
    let error = DataFolder::open(Path::new(""), small()).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "the data folder: the path is empty: a folder must be named");
}

#[test]
fn a_database_is_made_once_and_opens_again_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let store = folder.create(&name("a/b"), SeqFormat::Versionstamp).unwrap();
    assert!(matches!(folder.create(&name("a/b"), SeqFormat::Integer), Err(CreateError::Exists)));
    let (last, uuid) = (write(&store, &["x", "y"]), store.identity().uuid);
    store.close().unwrap();
    let server_uuid = folder.server_uuid();
    drop(folder);
    let folder = open(dir.path());
    assert_eq!((folder.server_uuid(), names(&folder)), (server_uuid, vec!["a/b".to_owned()]));
    assert!(folder.contains(&name("a/b")) && !folder.contains(&name("b")));
    assert!(folder.open_store(&name("b")).unwrap().is_none());
    let store = folder.open_store(&name("a/b")).unwrap().unwrap();
    assert_eq!((store.identity().uuid, store.seq_format()), (uuid, SeqFormat::Versionstamp));
    assert_eq!(update_seq(&store), last);
}

/// They inherited LMDB's descriptor, and could write to the file.
#[test]
fn programs_that_this_one_starts_have_no_file_of_a_database_open() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let stores = ["a", "b", "c"].map(|text| make(&folder, text));
    let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let path = dir.path().canonicalize().unwrap();
    assert!(listed.contains("/dev/null"), "it lists what is open: {listed}");
    assert!(!listed.contains(path.to_str().unwrap()), "{listed}");
    for store in stores {
        store.close().unwrap();
    }
}

#[test]
fn two_at_once_make_a_database_once() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    for round in 0..20 {
        let name = name(&format!("d{round}"));
        let made: Vec<_> = std::thread::scope(|scope| {
            let makers = [(); 2].map(|()| scope.spawn(|| folder.create(&name, SeqFormat::Integer)));
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        let exists = made.iter().filter(|made| matches!(made, Err(CreateError::Exists))).count();
        assert_eq!((exists, made.iter().filter(|made| made.is_ok()).count()), (1, 1));
    }
}

#[test]
fn a_database_made_again_counts_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let store = make(&folder, "a");
    let last = write(&store, &["x", "y", "z"]);
    store.close().unwrap();
    folder.delete(&name("a"), Counted::To(last)).unwrap();
    assert_eq!(names(&folder), Vec::<String>::new());
    assert!(!dir.path().join("databases/a").exists());
    drop(folder);
    let folder = open(dir.path());
    let again = make(&folder, "a");
    assert_eq!(update_seq(&again), last);
    assert_eq!(write(&again, &["x"]), Sequence::new(0, 4));
    let other = make(&folder, "other");
    assert_eq!(write(&other, &["x"]), Sequence::new(0, 1), "names do not share their count");
}

#[test]
fn a_floor_never_sinks() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let store = make(&folder, "a");
    let last = write(&store, &["x", "y"]);
    store.close().unwrap();
    folder.delete(&name("a"), Counted::To(last)).unwrap();
    make(&folder, "a").close().unwrap();
    folder.delete(&name("a"), Counted::To(Sequence::ZERO)).unwrap();
    assert_eq!(update_seq(&make(&folder, "a")), last);
}

/// Opens and closes a database whose file is no database, which it says.
fn see_damage(folder: &DataFolder, text: &str, dir: &Path) {
    fs::write(dir.join("databases").join(text).join("data.mdb"), "no database").unwrap();
    assert!(folder.open_store(&name(text)).is_err_and(|error| error.is_damage()));
}

#[test]
fn one_made_under_the_name_of_a_damaged_one_counts_above_all_that_it_may_have_given_out() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let store = make(&folder, "a");
    let last = write(&store, &["x", "y"]);
    store.close().unwrap();
    see_damage(&folder, "a", dir.path());
    folder.delete(&name("a"), Counted::AtLeast(Sequence::ZERO)).unwrap();
    assert!(update_seq(&make(&folder, "a")).incarnation > last.incarnation);
    // What can be read of it may be further than the catalogue knows.
    folder.delete(&name("a"), Counted::AtLeast(Sequence::new(7, 70))).unwrap();
    assert_eq!(update_seq(&make(&folder, "a")), Sequence::new(8, 70));
}

/// An older copy of the file, or a new one: who puts it there need not remember to say so.
#[test]
fn what_is_put_in_the_place_of_a_damaged_database_counts_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let file = dir.path().join("databases/a/data.mdb");
    let store = make(&folder, "a");
    write(&store, &["x"]);
    store.close().unwrap();
    let older = fs::read(&file).unwrap();
    let store = folder.open_store(&name("a")).unwrap().unwrap();
    let last = write(&store, &["y", "z"]);
    store.close().unwrap();
    see_damage(&folder, "a", dir.path());
    drop(folder);
    fs::write(&file, older).unwrap();
    let store = open(dir.path()).open_store(&name("a")).unwrap().unwrap();
    assert!(write(&store, &["new"]) > last);
}

/// A copy of the whole folder, put back: databases that were made, or made again, since it was taken count above their
/// tokens.
#[test]
fn in_a_folder_that_is_said_to_be_restored_every_database_counts_above_its_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let catalogue = dir.path().join("catalogue.json");
    let folder = open(dir.path());
    make(&folder, "a").close().unwrap();
    drop(folder);
    let copy = fs::read_to_string(&catalogue).unwrap();
    let (files_of_a, copied) = (dir.path().join("databases/a"), dir.path().join("copied"));
    copy_folder(&files_of_a, &copied);
    let folder = open(dir.path());
    let since = make(&folder, "since");
    let of_since = write(&since, &["x", "y"]);
    let store = folder.open_store(&name("a")).unwrap().unwrap();
    let of_a = write(&store, &["x"]);
    store.close().unwrap();
    since.close().unwrap();
    drop(folder);

    let mut copy: serde_json::Value = serde_json::from_str(&copy).unwrap();
    copy["restored"] = true.into();
    // As of a folder that had been restored four times since.
    copy["floor_of_all"]["incarnation"] = 4.into();
    fs::write(&catalogue, copy.to_string()).unwrap();
    fs::remove_dir_all(dir.path().join("databases")).unwrap();
    fs::create_dir(dir.path().join("databases")).unwrap();
    fs::rename(&copied, &files_of_a).unwrap();
    let folder = open(dir.path());
    let again = write(&folder.open_store(&name("a")).unwrap().unwrap(), &["x"]);
    assert!(again > of_a && again.incarnation == 5, "{again:?}");
    let made = make(&folder, "since");
    let last = write(&made, &["x"]);
    assert!(last > of_since && last.incarnation == 5, "{last:?}");
    made.close().unwrap();
    drop(folder);
    let made = open(dir.path()).open_store(&name("since")).unwrap().unwrap();
    assert_eq!(update_seq(&made), last, "once");
}

#[test]
fn names_forgotten_one_by_one_are_remembered_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut floors: Vec<String> =
        (0..10_000).map(|n| format!(r#"{{"name":"n{n}","version":5,"incarnation":0}}"#)).collect();
    floors[0] = r#"{"name":"n0","version":70,"incarnation":3}"#.to_owned();
    let text = format!(
        r#"{{"server_uuid":"u","databases":{{}},"floors":[{}],"floor_of_all":{{"version":0,"incarnation":0}}}}"#,
        floors.join(",")
    );
    fs::write(dir.path().join("catalogue.json"), text).unwrap();
    let folder = open(dir.path());
    make(&folder, "one-more").close().unwrap();
    folder.delete(&name("one-more"), Counted::To(Sequence::new(0, 1))).unwrap();
    for text in ["n0", "fresh"] {
        assert_eq!(update_seq(&make(&folder, text)), Sequence::new(3, 70), "{text}");
    }
}

fn mark_unfinished(dir: &Path, database: &str) {
    let file = dir.join("catalogue.json");
    let mut catalogue: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    catalogue["databases"][database]["unfinished"] = true.into();
    fs::write(&file, catalogue.to_string()).unwrap();
}

#[test]
fn what_was_cut_short_is_gone_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    for text in ["cut", "whole"] {
        make(&folder, text).close().unwrap();
    }
    drop(folder);
    mark_unfinished(dir.path(), "cut");
    fs::remove_file(dir.path().join("databases/cut/data.mdb")).unwrap();
    let folder = open(dir.path());
    assert_eq!(names(&folder), ["whole"]);
    assert!(!dir.path().join("databases/cut").exists());
    make(&folder, "cut").close().unwrap();
    assert_eq!(names(&folder), ["cut", "whole"]);
}

#[test]
fn what_is_left_of_a_database_and_cannot_be_removed_keeps_no_other_from_being_opened() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    for text in ["cut", "whole"] {
        make(&folder, text).close().unwrap();
    }
    drop(folder);
    mark_unfinished(dir.path(), "cut");
    let in_the_way = dir.path().join("databases/cut");
    fs::remove_dir_all(&in_the_way).unwrap();
    fs::write(&in_the_way, "").unwrap();
    for _ in 0..2 {
        let folder = open(dir.path());
        assert_eq!(names(&folder), ["whole"]);
        folder.open_store(&name("whole")).unwrap().unwrap().close().unwrap();
        assert!(matches!(folder.create(&name("cut"), SeqFormat::Integer), Err(CreateError::Storage(_))));
    }
    fs::remove_file(&in_the_way).unwrap();
    let folder = open(dir.path());
    make(&folder, "cut").close().unwrap();
    assert_eq!(names(&folder), ["cut", "whole"]);
}

#[test]
fn a_database_that_could_not_be_made_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let bad = StoreOptions { map_bytes: 4097, ..small() };
    let folder = DataFolder::open(dir.path(), bad).unwrap();
    assert!(matches!(folder.create(&name("a"), SeqFormat::Integer), Err(CreateError::Storage(_))));
    assert!(names(&folder).is_empty() && !dir.path().join("databases/a").exists());
    drop(folder);
    assert_eq!(update_seq(&make(&open(dir.path()), "a")), Sequence::ZERO);
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn a_folder_from_elsewhere_is_taken_in_with_a_higher_incarnation() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let there = open(elsewhere.path());
    let store = make(&there, "moved");
    let last = write(&store, &["x", "y"]);
    store.close().unwrap();
    drop(open(dir.path()));
    let databases = dir.path().join("databases");
    copy_folder(&elsewhere.path().join("databases/moved"), &databases.join("moved"));
    fs::write(databases.join("notes"), "no database").unwrap();
    let folder = open(dir.path());
    assert_eq!(names(&folder), ["moved"]);
    for _reopened in 0..2 {
        let store = folder.open_store(&name("moved")).unwrap().unwrap();
        assert_eq!(update_seq(&store), Sequence::new(last.incarnation + 1, last.version));
        store.close().unwrap();
    }
    let store = folder.open_store(&name("moved")).unwrap().unwrap();
    assert_eq!(write(&store, &["z"]), Sequence::new(1, 3));
    assert_eq!(store.snapshot().unwrap().rows_after(last).unwrap(), 1);
}

#[test]
fn a_folder_that_takes_a_deleted_databases_name_sorts_above_it() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(&open(elsewhere.path()), "a").close().unwrap();
    let folder = open(dir.path());
    make(&folder, "a").close().unwrap();
    let last = Sequence::new(1, 500);
    folder.delete(&name("a"), Counted::To(last)).unwrap();
    drop(folder);
    copy_folder(&elsewhere.path().join("databases/a"), &dir.path().join("databases/a"));
    let store = open(dir.path()).open_store(&name("a")).unwrap().unwrap();
    assert!(update_seq(&store) > last);
}

#[test]
fn a_folder_in_the_way_is_neither_opened_nor_lost() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = make(&open(elsewhere.path()), "a");
    write(&store, &["x"]);
    store.close().unwrap();
    let folder = open(dir.path());
    copy_folder(&elsewhere.path().join("databases/a"), &dir.path().join("databases/a"));
    assert!(matches!(folder.create(&name("a"), SeqFormat::Integer), Err(CreateError::Exists)));
    drop(folder);
    let store = open(dir.path()).open_store(&name("a")).unwrap().unwrap();
    assert_eq!(update_seq(&store), Sequence::new(1, 1));
}

#[test]
fn a_lost_folder_begins_anew_above_the_tokens_of_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let store = make(&folder, "a");
    let last = write(&store, &["x", "y"]);
    store.close().unwrap();
    fs::remove_dir_all(dir.path().join("databases/a")).unwrap();
    let store = folder.open_store(&name("a")).unwrap().unwrap();
    assert_eq!(store.snapshot().unwrap().counters().unwrap().rows(), 0);
    assert!(write(&store, &["x"]) > last);
}

/// Opens a folder in relaxed durability, writes a document, and ends cleanly or not; gives the sequence.
fn relaxed_run(dir: &Path, doc: &str, cleanly: bool) -> Sequence {
    let folder = DataFolder::open(dir, relaxed()).unwrap();
    let store = folder.open_store(&name("a")).unwrap().unwrap_or_else(|| make(&folder, "a"));
    let last = write(&store, &[doc]);
    store.close().unwrap();
    if cleanly {
        folder.close_cleanly().unwrap();
    }
    last
}

#[test]
fn an_unclean_stop_raises_incarnations_only_where_commits_may_be_lost() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(relaxed_run(dir.path(), "1", true), Sequence::new(0, 1));
    assert_eq!(relaxed_run(dir.path(), "2", false), Sequence::new(0, 2));
    assert_eq!(relaxed_run(dir.path(), "3", true), Sequence::new(1, 3));
    assert_eq!(relaxed_run(dir.path(), "4", false), Sequence::new(1, 4));
    for (doc, expected) in [("5", Sequence::new(2, 5)), ("6", Sequence::new(2, 6))] {
        let folder = open(dir.path());
        let store = folder.open_store(&name("a")).unwrap().unwrap();
        assert_eq!(write(&store, &[doc]), expected, "a full run that ends uncleanly loses nothing");
        store.close().unwrap();
    }
}

/// One file that could not be opened made the end an unclean one for all.
#[test]
fn a_database_that_cannot_be_synced_is_the_only_one_to_which_the_end_is_unclean() {
    let dir = tempfile::tempdir().unwrap();
    relaxed_run(dir.path(), "1", true);
    let folder = DataFolder::open(dir.path(), relaxed()).unwrap();
    make(&folder, "b").close().unwrap();
    let (file, aside) = (dir.path().join("databases/b/data.mdb"), dir.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    symlink("data.mdb", &file).unwrap();
    assert!(matches!(folder.close_cleanly(), Err(StorageError::Io { .. })), "it is a link to itself");
    drop(folder);
    fs::rename(&aside, &file).unwrap();
    let folder = DataFolder::open(dir.path(), relaxed()).unwrap();
    for (database, incarnation) in [("a", 0), ("b", 1)] {
        let store = folder.open_store(&name(database)).unwrap().unwrap();
        assert_eq!(update_seq(&store).incarnation, incarnation, "{database}");
    }
}

#[test]
fn without_the_catalogue_too_no_token_of_a_deleted_database_hides_what_is_written_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    make(&folder, "kept").close().unwrap();
    let store = make(&folder, "gone");
    let last = write(&store, &["x", "y"]);
    store.close().unwrap();
    folder.delete(&name("gone"), Counted::To(last)).unwrap();
    drop(folder);
    fs::remove_file(dir.path().join("catalogue.json")).unwrap();
    let folder = open(dir.path());
    assert_eq!(names(&folder), ["kept"]);
    assert!(write(&make(&folder, "gone"), &["x"]) > last);
}

#[test]
fn a_folder_whose_end_cannot_be_noted_is_free_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    make(&folder, "a").close().unwrap();
    let in_the_way = dir.path().join("catalogue.json.new");
    fs::create_dir(&in_the_way).unwrap();
    assert!(matches!(folder.close_cleanly(), Err(StorageError::Io { .. })));
    fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(names(&open(dir.path())), ["a"]);
}

#[test]
fn the_last_incarnation_stays() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = make(&open(elsewhere.path()), "a");
    store.raise_incarnation(u8::MAX).unwrap();
    store.close().unwrap();
    drop(open(dir.path()));
    copy_folder(&elsewhere.path().join("databases/a"), &dir.path().join("databases/a"));
    let store = open(dir.path()).open_store(&name("a")).unwrap().unwrap();
    assert_eq!(update_seq(&store).incarnation, u8::MAX);
}

/// A full disk must not keep a server from starting, nor from ending well.
#[test]
fn a_catalogue_that_does_not_change_is_not_written() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    make(&folder, "a").close().unwrap();
    folder.close_cleanly().unwrap();
    drop(folder);
    let written = || fs::metadata(dir.path().join("catalogue.json")).unwrap().ino();
    let before = written();
    let folder = open(dir.path());
    folder.open_store(&name("a")).unwrap().unwrap().close().unwrap();
    folder.close_cleanly().unwrap();
    assert_eq!(written(), before);
}

#[test]
fn a_damaged_catalogue_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    fs::write(dir.path().join("catalogue.json"), "{").unwrap();
    let error = DataFolder::open(dir.path(), small()).map(drop).unwrap_err().to_string();
    assert!(error.contains("catalogue.json"), "{error}");
}
