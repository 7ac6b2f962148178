//! A disk that fails when it is told to.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Output;

use rustix::io::Errno;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use seqtide_tests::http::SOON;
use seqtide_tests::server::{Launch, seqtide_command};
use seqtide_tests::{Database, Server, preload};

use crate::load::write_despite;

/// Room without an end.
pub const PLENTY: i64 = i64::MAX / 2;

/// What can be made to fail; the places of these numbers in the control file of `faults/disk.c`.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// Writes of the first two pages that do not sync by themselves: `EIO`, and nothing is written.
    MetaPutBack = 1,
    /// Writes that sync by themselves, as LMDB's of its meta pages: `EIO`, though they were made.
    SyncedWrites = 2,
    /// Syncs of files: `EIO`.
    Syncs = 3,
    /// Syncs of the log's files: `EIO`. From before its first record on, it is not used at all.
    LogSyncs = 4,
    /// Reads of the log's files: `EIO`.
    LogReads = 5,
}

/// The place of the error that opening a file for writing ends in.
const OPENS: u64 = 6;

/// The place of what cuts LMDB's next write short.
const CUTS_TABLES: u64 = 7;

/// The place of what refuses writes past the page cache, and counts them: 1 and as many as were refused.
const DIRECT_WRITES: u64 = 8;

/// The disk of one data folder.
pub struct Disk {
    folder: TempDir,
    control: File,
}

impl Disk {
    /// A disk on which files may grow by so many bytes.
    pub fn with_room(bytes: i64) -> Disk {
        let folder = TempDir::with_prefix("seqtide-full-disk-").expect("a temporary folder");
        let path = folder.path().join("control");
        let control = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
        control.set_len(4096).expect("a page");
        let disk = Disk { folder, control };
        disk.set_room(bytes);
        disk
    }

    /// A server whose data is on this disk.
    pub fn launch(&self) -> Launch {
        let launch = Server::launch().data_dir(self.folder.path().join("data"));
        self.variables().into_iter().fold(launch, |launch, (name, value)| launch.env(name, value))
    }

    /// From now on files may grow by so many bytes.
    pub fn set_room(&self, bytes: i64) {
        self.set(0, bytes);
    }

    /// From now on this fails, or works again.
    pub fn set_fault(&self, fault: Fault, fails: bool) {
        self.set(fault as u64, i64::from(fails));
    }

    /// From now on LMDB fails, under a write that the log took: a commit that follows another soon goes there.
    ///
    /// # Panics
    /// When the log never takes it.
    pub async fn fail_lmdb_under(&self, database: &Database, method: &str, path: &str, body: &Value) {
        let deadline = Instant::now() + SOON;
        for number in 0.. {
            self.set_fault(Fault::SyncedWrites, false);
            write_despite(database, &format!("/_local/{number}"), 500).await;
            self.set_fault(Fault::SyncedWrites, true);
            let answer = database.request(method, path).json(body).send().await;
            if answer.status == 201 {
                return;
            }
            // It came too late for the log, and LMDB did not take it either.
            answer.assert_status(500);
            assert!(Instant::now() < deadline, "the log never takes it");
        }
    }

    /// The next write that syncs by itself fails, and from then on all of them, and all syncs.
    pub fn fail_from_the_next_synced_write(&self) {
        self.set(Fault::SyncedWrites as u64, 2);
    }

    /// The next write by which LMDB's file grows finds room for half of it; what follows finds the room there is.
    pub fn cut_next_write_of_tables(&self) {
        self.set(CUTS_TABLES, 1);
    }

    /// Whether no such write has come since.
    pub fn cuts_next_write_of_tables(&self) -> bool {
        self.get(CUTS_TABLES) != 0
    }

    /// From now on writes past the page cache are refused (`EINVAL`).
    pub fn refuse_direct_writes(&self) {
        self.set(DIRECT_WRITES, 1);
    }

    /// How many were refused.
    pub fn direct_writes_refused(&self) -> i64 {
        self.get(DIRECT_WRITES) - 1
    }

    /// `seqtide check` of a data folder on this disk, where opening a file for writing ends in this error.
    pub fn check_without_writing(&self, error: Errno) -> Output {
        let folder = self.folder.path();
        self.set(OPENS, error.raw_os_error().into());
        let mut check = seqtide_command();
        check.arg("check").arg(folder.join("data")).envs(self.variables());
        let checked = check.output().expect("the binary runs");
        self.set(OPENS, 0);
        checked
    }

    fn variables(&self) -> [(&'static str, PathBuf); 3] {
        let folder = self.folder.path();
        [
            ("LD_PRELOAD", preload::build("faults/disk.c", folder)),
            ("FAULTS_CONTROL", folder.join("control")),
            ("FAULTS_FOLDER", folder.join("data")),
        ]
    }

    fn get(&self, place: u64) -> i64 {
        let mut number = [0; 8];
        self.control.read_exact_at(&mut number, 8 * place).expect("the control file");
        i64::from_ne_bytes(number)
    }

    fn set(&self, place: u64, number: i64) {
        self.control.write_all_at(&number.to_ne_bytes(), 8 * place).expect("the control file");
    }
}
