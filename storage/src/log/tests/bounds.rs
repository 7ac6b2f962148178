//! What a log may take of the disk, of the map, of readers' slots and of memory, and what it does where it may not.

use super::*;
use crate::log::claims::{Claim, Total};

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
