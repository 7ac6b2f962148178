//! The log of databases' updates from one life of a data folder to the next: tokens never rewind, and no update is
//! lost.

use std::fs;
use std::path::Path;

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Counted, DataFolder, Direction, ReadUpdates};

use crate::db::small;

fn name(text: &str) -> DbName {
    DbName::parse(text).unwrap()
}

fn open(path: &Path) -> DataFolder {
    DataFolder::open(path, small()).unwrap()
}

fn make(folder: &DataFolder, text: &str) {
    folder.create(&name(text), SeqFormat::Integer).unwrap().close().unwrap();
}

/// What a commit does.
fn update(folder: &DataFolder, text: &str) {
    folder.make_room_for_updates().unwrap();
    folder.note_update(&name(text));
}

/// All rows after a sequence, as `(kind, name, seq)`.
fn rows_after(folder: &DataFolder, after: u64) -> Vec<(&'static str, String, u64)> {
    let (after, up_to) = (Sequence::new(0, after), Sequence::MAX);
    let wanted = ReadUpdates { after, up_to, rows_max: 1000, direction: Direction::Forward };
    let page = folder.updates().read(wanted, |_| true);
    page.rows.iter().map(|row| (row.kind.name(), row.name.to_string(), row.seq.version)).collect()
}

fn kinds(rows: &[(&'static str, String, u64)]) -> Vec<String> {
    rows.iter().map(|(kind, name, _)| format!("{kind} {name}")).collect()
}

fn newest(folder: &DataFolder) -> u64 {
    folder.updates().newest().version
}

#[test]
fn an_orderly_end_keeps_every_row_and_token() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    for text in ["a", "b", "c"] {
        make(&folder, text);
        update(&folder, text);
    }
    update(&folder, "a");
    folder.delete(&name("b"), Counted::To(Sequence::ZERO)).unwrap();
    let (rows, last) = (rows_after(&folder, 0), newest(&folder));
    assert_eq!(kinds(&rows), ["created a", "created c", "updated c", "updated a", "deleted b"]);
    folder.close_cleanly().unwrap();
    drop(folder);
    for _idle_life in 0..2 {
        let folder = open(dir.path());
        assert_eq!((rows_after(&folder, 0), newest(&folder)), (rows.clone(), last));
        folder.close_cleanly().unwrap();
    }
    let folder = open(dir.path());
    update(&folder, "c");
    assert_eq!(rows_after(&folder, last), [("updated", "c".to_owned(), last + 1)]);
}

#[test]
fn after_a_crash_every_database_is_announced_above_all_that_was_given_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut token = 0;
    for life in 0..4 {
        let folder = open(dir.path());
        make(&folder, &format!("made-in-{life}"));
        update(&folder, "made-in-0");
        let gone = format!("gone-in-{life}");
        make(&folder, &gone);
        folder.delete(&name(&gone), Counted::To(Sequence::ZERO)).unwrap();
        assert!(newest(&folder) > token, "tokens never rewind");
        token = newest(&folder);
        let before = rows_after(&folder, 0);
        drop(folder);
        let folder = open(dir.path());
        let announced = rows_after(&folder, token);
        let expected: Vec<String> = (0..=life).map(|life| format!("updated made-in-{life}")).collect();
        assert_eq!(kinds(&announced), expected);
        let exact = |rows: &[(&'static str, String, u64)]| -> Vec<_> {
            rows.iter().filter(|(kind, ..)| *kind != "updated").cloned().collect()
        };
        assert_eq!(exact(&rows_after(&folder, 0)), exact(&before), "what was made and deleted is known to the number");
        token = newest(&folder);
        if life % 2 == 1 {
            folder.close_cleanly().unwrap();
        }
    }
}

#[test]
fn a_life_without_writes_needs_no_orderly_end() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    make(&folder, "a");
    update(&folder, "a");
    folder.close_cleanly().unwrap();
    drop(folder);
    let before = rows_after(&open(dir.path()), 0);
    let folder = open(dir.path());
    assert_eq!(rows_after(&folder, 0), before);
    make(&folder, "b");
    folder.delete(&name("a"), Counted::To(Sequence::ZERO)).unwrap();
    let rows = rows_after(&folder, 0);
    drop(folder);
    assert_eq!(rows_after(&open(dir.path()), 0), rows, "making and deleting is noted as it happens");
}

#[test]
fn room_for_a_commit_is_on_disk_before_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    make(&folder, "a");
    folder.close_cleanly().unwrap();
    drop(folder);
    let folder = open(dir.path());
    let token = newest(&folder);
    folder.make_room_for_updates().unwrap();
    drop(folder);
    let rows = rows_after(&open(dir.path()), token);
    assert_eq!(kinds(&rows), ["updated a"], "the commit may have been made, and nobody was told");
}

#[test]
fn a_folder_s_databases_are_announced_when_nothing_is_known_of_their_updates() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    for text in ["a", "b"] {
        make(&folder, text);
    }
    drop(folder);
    let file = dir.path().join("catalogue.json");
    let mut catalogue: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    catalogue.as_object_mut().unwrap().remove("updates").unwrap();
    for (_, entry) in catalogue["databases"].as_object_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("created").unwrap();
    }
    fs::write(&file, catalogue.to_string()).unwrap();
    assert_eq!(kinds(&rows_after(&open(dir.path()), 0)), ["updated a", "updated b"]);
}

#[test]
fn databases_that_were_put_here_are_announced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    for text in ["moved", "restored"] {
        make(&folder, text);
    }
    folder.close_cleanly().unwrap();
    drop(folder);
    let file = dir.path().join("catalogue.json");
    let mut catalogue: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    catalogue["databases"].as_object_mut().unwrap().remove("moved").unwrap();
    catalogue["databases"]["restored"]["uuid"] = "".into();
    fs::write(&file, catalogue.to_string()).unwrap();
    let rows = rows_after(&open(dir.path()), 2);
    assert_eq!(kinds(&rows), ["created moved", "updated restored"]);
}

#[test]
fn a_deletion_whose_folder_cannot_be_removed_stays_one_however_the_process_ends() {
    for is_orderly in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let folder = open(dir.path());
        for text in ["gone", "there"] {
            make(&folder, text);
        }
        // A file is no folder of a database, and is not removed as one.
        let in_the_way = dir.path().join("databases/gone");
        fs::remove_dir_all(&in_the_way).unwrap();
        fs::write(&in_the_way, "").unwrap();
        folder.delete(&name("gone"), Counted::To(Sequence::ZERO)).unwrap_err();
        let told = ["created there", "deleted gone"];
        assert_eq!(kinds(&rows_after(&folder, 0)), told);
        if is_orderly {
            folder.close_cleanly().unwrap();
        } else {
            update(&folder, "there");
        }
        drop(folder);
        let mut expected = told.to_vec();
        expected.extend((!is_orderly).then_some("updated there"));
        for _ in 0..2 {
            let folder = open(dir.path());
            assert_eq!(kinds(&rows_after(&folder, 0)), expected);
        }
        fs::remove_file(&in_the_way).unwrap();
        assert_eq!(kinds(&rows_after(&open(dir.path()), 0)), expected);
    }
}

#[test]
fn a_deletion_that_was_cut_short_is_told_of_and_a_creation_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    for text in ["cut", "gone"] {
        make(&folder, text);
    }
    folder.delete(&name("gone"), Counted::To(Sequence::ZERO)).unwrap();
    make(&folder, "gone");
    let token = newest(&folder);
    drop(folder);
    let file = dir.path().join("catalogue.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut catalogue: serde_json::Value = serde_json::from_str(&text).unwrap();
    catalogue["databases"]["gone"]["unfinished"] = true.into();
    fs::write(&file, catalogue.to_string()).unwrap();
    let rows = rows_after(&open(dir.path()), 0);
    let of_gone: Vec<_> = rows.iter().filter(|(_, name, _)| name == "gone").collect();
    assert_eq!(of_gone.len(), 1);
    assert!(of_gone[0].0 == "deleted" && of_gone[0].2 < token, "its successor was never there: {rows:?}");
}

/// As on a full disk: what happened is told when there is room again, and no sequence was given out before.
#[test]
fn updates_wait_while_the_catalogue_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    make(&folder, "a");
    make(&folder, "b");
    let token = newest(&folder);
    let in_the_way = dir.path().join("catalogue.json.new");
    fs::create_dir(&in_the_way).unwrap();
    assert!(folder.make_room_for_updates().is_err());
    for text in ["b", "a", "b"] {
        folder.note_update(&name(text));
    }
    assert_eq!(newest(&folder), token);
    fs::remove_dir(&in_the_way).unwrap();
    assert!(folder.make_room_for_updates().unwrap());
    assert_eq!(kinds(&rows_after(&folder, token)), ["updated a", "updated b"]);
    assert!(!folder.make_room_for_updates().unwrap(), "there is enough");
}
