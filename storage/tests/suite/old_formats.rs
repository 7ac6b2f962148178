//! Files of older formats: opened, read, written on. `tests/data/format-N/` has one of each, and some that were carried
//! on from one to the next.

use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::{DataFolder, FORMAT, Store};
use tempfile::TempDir;

use crate::damage::answers::Answers;
use crate::db::{create, rev, small, update};
use crate::every_kind;
use crate::feed_index::{TestKeys, index, tend};

/// A data folder with the database `old`, as the code of a format left it.
fn left_by(format: &str) -> TempDir {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/format-{format}"));
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("databases/old");
    fs::create_dir_all(&database).unwrap();
    fs::copy(data.join("catalogue.json"), folder.path().join("catalogue.json")).unwrap();
    let mut file = Vec::new();
    GzDecoder::new(fs::File::open(data.join("data.mdb.gz")).unwrap()).read_to_end(&mut file).unwrap();
    fs::write(database.join("data.mdb"), file).unwrap();
    folder
}

fn open(folder: &TempDir) -> Store {
    let data = DataFolder::open(folder.path(), small()).unwrap();
    data.open_store(&DbName::parse("old").unwrap()).unwrap().unwrap()
}

fn assert_clean(folder: &TempDir) {
    let report = Store::check_folder(&folder.path().join("databases/old"), &TestKeys).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// Whether the file has this row, its value sealed.
fn has_sealed(folder: &TempDir, table: &str, key: &[u8], value: &[u8]) -> bool {
    let sum = crc32c::crc32c(&[table.as_bytes(), key, value].concat()).to_be_bytes();
    let stored = [key, &[2], &sum, value].concat();
    let file = fs::read(folder.path().join("databases/old/data.mdb")).unwrap();
    file.windows(stored.len()).any(|bytes| bytes == stored)
}

/// Opens a file of a format that was born in a format, looks whether it is what it was, and writes on.
fn is_read_as_what_it_was_and_written_on(format: &str, born: u8) {
    let folder = left_by(format);
    assert_clean(&folder);
    let fresh_folder = tempfile::tempdir().unwrap();
    let fresh = Store::open(fresh_folder.path(), &small(), &every_kind::birth()).unwrap();
    every_kind::write(&fresh).unwrap();
    let truth = Answers::of(&fresh).unwrap();

    let store = open(&folder);
    assert_eq!(Answers::of(&store).unwrap().compare(&truth), Ok(Vec::new()));
    store.close().unwrap();
    assert_clean(&folder);
    assert!(has_sealed(&folder, "meta", b"format", &[1, FORMAT as u8]), "an older version would refuse it now");
    assert!(has_sealed(&folder, "meta", b"born", &[1, born]), "it decides whether rows without checksums are good");

    let store = open(&folder);
    for store in [&store, &fresh] {
        let update = update("conflict-many", &rev("2-0"), "{}");
        store.write(&[vec![index(&["edit"])].into(), vec![create("new", r#"{"n":1}"#)].into()]).unwrap();
        tend(store, 50);
        store.write(&[vec![update].into()]).unwrap();
        assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
    }
    let (after, truth) = (Answers::of(&store).unwrap(), Answers::of(&fresh).unwrap());
    assert_eq!(after.compare(&truth), Ok(Vec::new()));
    store.close().unwrap();
    assert_clean(&folder);
}

#[test]
fn format_1_is_read_as_what_it_was_and_written_on() {
    is_read_as_what_it_was_and_written_on("1", 1);
}

#[test]
fn format_2_is_read_as_what_it_was_and_written_on() {
    is_read_as_what_it_was_and_written_on("2", 2);
}

#[test]
fn format_3_is_read_as_what_it_was_and_written_on() {
    is_read_as_what_it_was_and_written_on("3", 3);
}

#[test]
fn format_4_is_read_as_what_it_was_and_written_on() {
    is_read_as_what_it_was_and_written_on("4", 4);
}

#[test]
fn rows_without_checksums_stay_good_however_many_formats_ago_they_were_written() {
    is_read_as_what_it_was_and_written_on("3-born-1", 1);
}

#[test]
fn damage_in_a_file_of_format_1_is_found_where_checksums_are() {
    let folder = left_by("1");
    let store = open(&folder);
    store.write(&[vec![create("new", r#"{"text":"unmistakable"}"#)].into()]).unwrap();
    store.close().unwrap();
    let file = folder.path().join("databases/old/data.mdb");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(12).position(|bytes| bytes == b"unmistakable").unwrap();
    bytes[at] = b'U';
    fs::write(&file, bytes).unwrap();
    let store = open(&folder);
    let problems = store.check().unwrap().problems;
    assert!(problems[0].contains("checksum does not match; table bodies cannot be read after key"), "{problems:?}");
    assert_eq!(store.damages().len(), 1);
}
