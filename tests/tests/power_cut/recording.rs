//! A run of the real server under the recorder.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use seqtide_tests::{Server, preload};

use crate::disk::{Disk, Trust};
use crate::files::same_files;
use crate::image::{Image, Kept};
use crate::load;
use crate::log::{Event, Inode, Log, Moment};
use crate::promise::Promises;

/// The least a database may start with.
const MAP_BYTES: u64 = 1 << 20;

/// Where the data folder is before the server starts.
#[derive(Clone, Copy, PartialEq)]
pub enum DataFolder {
    /// It is there, empty.
    Given,
    /// The server makes it.
    Made,
}

impl DataFolder {
    /// The data folder, given the one that is recorded.
    pub fn below(self, recorded: &Path) -> PathBuf {
        match self {
            DataFolder::Given => recorded.to_owned(),
            DataFolder::Made => recorded.join("data"),
        }
    }
}

/// What the server did with its files, and what it promised when.
pub struct Recording {
    pub log: Log,
    pub promises: Promises,
    pub data: DataFolder,
    pub seed: u64,
    pub folder: PathBuf,
    pub inode: Inode,
}

impl Recording {
    /// Runs the server under load. Its settings are such that the map grows and garbage is reclaimed on the way.
    ///
    /// # Panics
    /// When the recorder did not see all that happened to the files.
    pub fn make(data: DataFolder, durability: &str, seed: u64) -> Recording {
        let work = TempDir::with_prefix("seqtide-power-cut-").expect("a temporary folder");
        let folder = work.path().join("disk");
        fs::create_dir(&folder).expect("a folder");
        let log = work.path().join("log");
        let mut server = Server::launch()
            .data_dir(data.below(&folder))
            .arg(format!("--durability={durability}"))
            .arg(format!("--storage-map-bytes={MAP_BYTES}"))
            .arg("--storage-reclaim-garbage-percent=10")
            .arg("--storage-reclaim-floor-bytes=10000")
            .env("LD_PRELOAD", preload::build("recorder/recorder.c", work.path()))
            .env("RECORDER_LOG", &log)
            .env("RECORDER_FOLDER", &folder)
            .start();
        let marks = Arc::new(OpenOptions::new().append(true).open(&log).expect("the log of the recorder"));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let acknowledged = runtime.block_on(load::run(&server, marks, seed));
        server.stop();
        let file = data.below(&folder).join("databases").join(load::DATABASE).join("data.mdb");
        assert!(fs::metadata(file).expect("a database").len() > MAP_BYTES, "the load should make the map grow");

        let log = Log::parse(&fs::read(&log).expect("the log"));
        assert!(durability == "relaxed" || log_is_recycled(&log), "the load should fill both files of the log");
        let promises = Promises::find(&acknowledged, &log);
        let recording = Recording { log, promises, data, seed, inode: inode_of(&folder), folder };
        let rebuilt = work.path().join("rebuilt");
        fs::create_dir(&rebuilt).expect("a folder");
        let (disk, mut rng) = (recording.disk(Trust::ALL), StdRng::seed_from_u64(seed));
        Image { disk: &disk, cut: Moment::MAX, kept: Kept::All, rng: &mut rng }.write_to(&rebuilt);
        same_files(&recording.folder, &rebuilt);
        recording
    }

    /// The files with all their past.
    pub fn disk(&self, trust: Trust) -> Disk {
        Disk::replay(&self.log, &self.folder, self.inode, trust)
    }
}

/// Whether a file of the log was written over after it had been in use: several times from its beginning, each time
/// after it was once filled with zeros.
fn log_is_recycled(log: &Log) -> bool {
    let made = log.records.iter().filter_map(|record| match &record.event {
        Event::Create { path, made } if path.ends_with("/log-0") => Some(*made),
        _ => None,
    });
    made.into_iter().any(|log_0| {
        let begins = |record: &&crate::log::Record| match &record.event {
            Event::Write { file, offset: 0, .. } => *file == log_0,
            _ => false,
        };
        log.records.iter().filter(begins).count() > 2
    })
}

/// By which the recorder knows a file or folder.
pub fn inode_of(folder: &Path) -> Inode {
    let found = File::open(folder).and_then(|folder| folder.metadata()).expect("a folder");
    (found.dev(), found.ino())
}
