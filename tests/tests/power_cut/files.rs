//! Comparing what the log says of the files with the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// LMDB writes it through a shared mapping; it holds nothing that outlives a process.
const LOCK_FILE: &str = "lock.mdb";

/// Asserts that two folders hold the same: else something changed that the recorder did not see.
///
/// # Panics
/// When they differ.
pub fn same_files(found: &Path, rebuilt: &Path) {
    let (found, rebuilt) = (all_files(found), all_files(rebuilt));
    assert!(found.keys().eq(rebuilt.keys()), "files {:?}, recorded {:?}", found.keys(), rebuilt.keys());
    for (path, bytes) in &found {
        let recorded = &rebuilt[path];
        assert_eq!(bytes.len(), recorded.len(), "length of {path}");
        let differs = bytes.iter().zip(recorded).position(|(found, recorded)| found != recorded);
        assert!(differs.is_none(), "{path}: a write at {differs:?} was not recorded");
    }
}

/// All files below a folder by their paths; a folder ends in a slash.
fn all_files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            files.insert(format!("{name}/"), Vec::new());
            files.extend(all_files(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else if name != LOCK_FILE {
            files.insert(name, fs::read(&path).expect("a file"));
        }
    }
    files
}
