//! Power cuts, where a kill shows nothing because the page cache survives it: every write and sync of the real server
//! is recorded, its files are rebuilt as a cut at any moment could have left them, and what was acknowledged before is
//! looked for.
//!
//! `SEQTIDE_POWER_CUTS` sets the number of random cuts, `SEQTIDE_TEST_SEED` the seed of load and cuts. The order in
//! which the server's threads run is not the seed's: a failure keeps its image.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod disk;
mod files;
mod image;
mod load;
mod log;
mod promise;
mod reader;
mod recording;
mod restart;
mod second;
mod trial;

use std::sync::LazyLock;
use std::time::Instant;

use seqtide_tests::workload::{seed, setting};

use crate::disk::Trust;
use crate::image::Kept;
use crate::recording::{DataFolder, Recording};
use crate::trial::{Fault, Trial};

const CUTS: usize = 2000;
const CUTS_OF_A_CONTROL: usize = 150;

/// One run of the server serves most tests.
static RECORDING: LazyLock<Recording> = LazyLock::new(|| Recording::make(DataFolder::Given, "full", seed()));

fn cuts() -> usize {
    setting("SEQTIDE_POWER_CUTS").map_or(CUTS, |cuts| cuts as usize)
}

#[test]
fn acknowledged_writes_survive_a_power_cut() {
    let begun = Instant::now();
    Trial::new(&RECORDING, Trust::ALL).assert_survived(cuts());
    println!("{} cuts in {:.1} s", cuts(), begun.elapsed().as_secs_f64());
}

/// Opening a database after a cut replays the log and puts it into LMDB; that may be cut as well.
#[test]
fn acknowledged_writes_survive_a_second_cut_while_the_first_is_recovered_from() {
    let mut trial = Trial::new(&RECORDING, Trust::ALL);
    for _ in 0..cuts() / 10 {
        let (cut, kept) = trial.any_cut();
        trial.assert_survives_twice(cut, kept);
    }
}

#[test]
fn a_data_folder_the_server_made_survives_with_what_is_in_it() {
    let recording = Recording::make(DataFolder::Made, "full", seed());
    Trial::new(&recording, Trust::ALL).assert_survived(cuts() / 10);
}

/// A disk that writes nothing before it is told to is the strictest witness of when an answer was sent.
#[test]
fn no_answer_is_sent_before_its_sync() {
    let mut trial = Trial::new(&RECORDING, Trust::ALL);
    let answers = RECORDING.promises.moments();
    assert!(answers.len() > 200, "too few answers to prove anything: {}", answers.len());
    for answer in answers {
        trial.assert_survives(answer + 1, Kept::Nothing);
    }
}

/// What relaxed durability says of itself. That commits are lost is a control too: the same server, syncing less.
#[test]
fn relaxed_durability_loses_commits_but_never_the_file() {
    let recording = Recording::make(DataFolder::Given, "relaxed", seed());
    let mut trial = Trial::new(&recording, Trust::ALL);
    let mut lost = 0;
    for _ in 0..cuts() / 10 {
        let (cut, kept) = trial.any_cut();
        match trial.cut(&recording.promises, cut, kept) {
            Some(fault @ Fault::Damaged(_)) => panic!("{fault}: {}", trial.keep_image(cut, kept)),
            Some(Fault::Lost(_)) => lost += 1,
            None => {}
        }
    }
    assert!(lost > 0, "seed {}: no cut cost a commit", recording.seed);
}

/// Control: had one of the last answers been sent before its commit's last sync, that would be seen.
#[test]
fn an_answer_sent_before_its_sync_is_caught() {
    let mut trial = Trial::new(&RECORDING, Trust::ALL);
    for &sent in RECORDING.promises.moments().iter().rev().take(load::WRITES_ALONE) {
        let early = trial.last_sync_before(sent);
        let promises = RECORDING.promises.with_answer_moved(sent, early);
        let fault = trial.cut(&promises, early + 1, Kept::Nothing);
        assert!(
            matches!(fault, Some(Fault::Lost(_))),
            "seed {}: answer at {sent}, sync at {early}: found {fault:?}",
            RECORDING.seed
        );
    }
}

/// Control: a disk that does not do one of the things it is believed to do loses what was acknowledged.
fn assert_caught(trust: Trust) {
    let mut trial = Trial::new(&RECORDING, trust);
    let mut faults = 0;
    for _ in 0..CUTS_OF_A_CONTROL {
        let (cut, kept) = trial.any_cut();
        faults += usize::from(trial.cut(&RECORDING.promises, cut, kept).is_some());
    }
    println!("{faults} of {CUTS_OF_A_CONTROL} cuts show it");
    assert!(faults > 0, "seed {}: none of {CUTS_OF_A_CONTROL} cuts shows it", RECORDING.seed);
}

#[test]
fn a_disk_that_ignores_syncs_of_files_is_caught() {
    assert_caught(Trust { file_syncs: false, ..Trust::ALL });
}

/// LMDB's meta pages: what it has is not safe when a file of the log is written over that has it too.
#[test]
fn a_disk_that_ignores_synced_writes_is_caught() {
    assert_caught(Trust { synced_writes: false, ..Trust::ALL });
}

#[test]
fn a_disk_that_ignores_syncs_of_folders_is_caught() {
    assert_caught(Trust { folder_syncs: false, ..Trust::ALL });
}
