//! Single damages, each at its place, and several at once.

use std::fs;
use std::path::Path;

use seqtide_storage::{Lost, StorageError, Store, Table};
use tempfile::TempDir;

use super::answers::{Answers, is_named};
use crate::db::small;
use crate::every_kind;
use crate::feed_index::TestKeys;

/// Where transaction numbers stand in the meta pages, and a byte that is the same in every file.
const TRANSACTIONS: [usize; 2] = [16 + 128, 4096 + 16 + 128];
const MAGIC: usize = 16;

fn open(folder: &Path) -> Result<Store, StorageError> {
    Store::open(folder, &small(), &every_kind::birth())
}

/// A database that was closed, with its answers.
fn closed() -> (TempDir, Answers) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    every_kind::write(&store).unwrap();
    let answers = Answers::of(&store).unwrap();
    store.close().unwrap();
    (folder, answers)
}

/// Changes the file's bytes.
fn change(folder: &TempDir, change: impl FnOnce(&mut Vec<u8>)) {
    let file = folder.path().join("data.mdb");
    let mut bytes = fs::read(&file).unwrap();
    change(&mut bytes);
    fs::write(&file, bytes).unwrap();
}

fn flip_all(bytes: &mut [u8], what: &str) {
    let places: Vec<usize> =
        (0..bytes.len() - what.len()).filter(|at| bytes[*at..].starts_with(what.as_bytes())).collect();
    assert!(!places.is_empty(), "{what} is in the file");
    places.into_iter().for_each(|at| bytes[at] ^= 0x20);
}

fn transaction(bytes: &[u8], page: usize) -> u64 {
    u64::from_ne_bytes(bytes[TRANSACTIONS[page]..][..8].try_into().unwrap())
}

#[test]
fn several_damages_are_named_each_and_lose_no_more_than_their_rows() {
    let (folder, truth) = closed();
    let bodies = ["small-010.1.1", "small-080.2.1", "large-3.1.40"];
    change(&folder, |bytes| bodies.iter().for_each(|body| flip_all(bytes, body)));
    let store = open(folder.path()).unwrap();
    let lost = Answers::of(&store).unwrap().compare(&truth).unwrap();
    assert_eq!(lost, ["large-3", "small-010", "small-080"], "{:?}", store.damages());
    let of_bodies = |lost: &Lost| matches!(lost, Lost::Keys { table: Table::Bodies, .. });
    assert!(store.damages().len() == 3 && store.damages().iter().all(|damage| of_bodies(&damage.lost)));
    assert!(store.write(&[]).is_err_and(|error| matches!(error, StorageError::ReadOnly { damages: 3, .. })));
}

#[test]
fn the_meta_page_before_the_newest_is_put_right() {
    for at in [MAGIC, TRANSACTIONS[0] % 4096 + 7] {
        let (folder, truth) = closed();
        change(&folder, |bytes| {
            let older = if transaction(bytes, 0) < transaction(bytes, 1) { 0 } else { 1 };
            bytes[older * 4096 + at] ^= 0x40;
        });
        let report = Store::check_folder(folder.path(), &TestKeys).unwrap();
        assert!(report.problems_total == 1 && report.problems[0].contains("before the newest"), "{report:?}");
        let store = open(folder.path()).unwrap();
        assert!(store.damages().is_empty() && store.mended().is_some(), "{:?}", store.damages());
        assert_eq!(Answers::of(&store).unwrap().compare(&truth), Ok(Vec::new()));
        store.write(&[vec![crate::db::create("new", "{}")].into()]).unwrap();
        store.close().unwrap();
        assert_eq!(Store::check_folder(folder.path(), &TestKeys).unwrap().problems, Vec::<String>::new());
        assert!(open(folder.path()).unwrap().mended().is_none());
    }
}

#[test]
fn an_older_commit_is_never_taken_for_the_newest() {
    let (folder, truth) = closed();
    let newest = |bytes: &[u8]| usize::from(transaction(bytes, 0) < transaction(bytes, 1));
    let at = TRANSACTIONS[newest(&fs::read(folder.path().join("data.mdb")).unwrap())];
    for low_byte in (0..=255).step_by(17) {
        change(&folder, |bytes| bytes[at] = low_byte);
        let store = open(folder.path()).unwrap();
        assert_eq!(Answers::of(&store).unwrap().compare(&truth), Ok(Vec::new()), "{low_byte}: {:?}", store.damages());
        store.close().unwrap();
    }
}

#[test]
fn a_newest_meta_page_that_is_gone_is_an_error_and_not_the_state_before() {
    let (folder, _) = closed();
    change(&folder, |bytes| {
        let newest = if transaction(bytes, 0) > transaction(bytes, 1) { 0 } else { 4096 };
        bytes[newest..newest + 4096].fill(0xff);
    });
    let error = open(folder.path()).map(drop).unwrap_err();
    assert!(is_named(&error) && error.to_string().contains("nothing of the database can be read"), "{error}");
    assert!(Store::check_folder(folder.path(), &TestKeys).is_err_and(|error| is_named(&error)));
}

#[test]
fn a_file_that_ends_early_loses_what_was_behind_its_end() {
    let (folder, truth) = closed();
    change(&folder, |bytes| bytes.truncate(bytes.len() / 4096 / 2 * 4096));
    match open(folder.path()) {
        Ok(store) => {
            assert!(!Answers::of(&store).unwrap().compare(&truth).unwrap().is_empty());
            assert!(store.write(&[]).is_err());
        }
        Err(error) => assert!(is_named(&error), "{error}"),
    }
}

#[test]
fn a_file_too_large_to_be_walked_through_is_opened_and_its_rows_are_still_proved() {
    let (folder, truth) = closed();
    change(&folder, |bytes| flip_all(bytes, "small-010.1.1"));
    let options = seqtide_storage::StoreOptions { verify_at_open_bytes_max: 4096, ..small() };
    let store = Store::open(folder.path(), &options, &every_kind::birth()).unwrap();
    assert!(store.damages().is_empty());
    assert_eq!(Answers::of(&store).unwrap().compare(&truth), Ok(vec!["small-010".to_owned()]));
    store.write(&[vec![crate::db::create("new", "{}")].into()]).unwrap();
}
