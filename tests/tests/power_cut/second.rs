//! A second cut, while what the first has left is opened, put in order and written on.

use std::fs::{self, File};
use std::path::Path;

use rand::Rng;

use seqtide_tests::preload;

use crate::disk::{Disk, Trust};
use crate::image::{Image, Kept};
use crate::log::{Log, Moment};
use crate::reader::{Reader, WRITTEN_AFTERWARDS};
use crate::recording::inode_of;
use crate::trial::{Fault, Trial};

impl Trial<'_> {
    /// Cuts, and cuts once more while the image is read as the server would read it, and written on.
    ///
    /// # Panics
    /// When anything is wrong after either.
    pub fn assert_survives_twice(&mut self, cut: Moment, kept: Kept) {
        let folder = self.make_image(cut, kept);
        let before = Disk::of_folder(&folder, inode_of(&folder));
        let recovery = self.record_recovery(&folder);
        let disk = before.go_on(&recovery, Trust::ALL);

        let (second, kept_then) = (self.rng.random_range(1..=recovery.moments), self.any_kept());
        let folder = self.images.path().join("second");
        remove(&folder);
        fs::create_dir(&folder).expect("a folder for the image");
        Image { disk: &disk, cut: second, kept: kept_then, rng: &mut self.rng }.write_to(&folder);
        let found = match self.reader.read(&self.recording.data.below(&folder)) {
            Err(damage) => Some(Fault::Damaged(damage)),
            Ok(mut holds) => {
                holds.retain(|key, _| !key.contains(WRITTEN_AFTERWARDS));
                let broken = self.recording.promises.broken_by(&holds, cut);
                Some(broken).filter(|broken| !broken.is_empty()).map(Fault::Lost)
            }
        };
        if let Some(fault) = found {
            self.images.disable_cleanup(true);
            panic!(
                "{fault}: seed {}: cut at {cut}, kept {kept:?}, then at {second} of {} of the recovery, kept \
                 {kept_then:?}, the image is beside {}",
                self.recording.seed,
                recovery.moments,
                folder.display()
            );
        }
    }

    /// Reads an image and writes to it under the recorder.
    fn record_recovery(&mut self, folder: &Path) -> Log {
        let log = self.images.path().join("log");
        let _ = fs::remove_file(&log);
        let preload = self.images.path().join("preloaded.so");
        if !preload.exists() {
            preload::build("recorder/recorder.c", self.images.path());
        }
        let recorded =
            [("LD_PRELOAD", preload.as_path()), ("RECORDER_LOG", log.as_path()), ("RECORDER_FOLDER", folder)];
        let read = Reader::with(&recorded).read(&self.recording.data.below(folder));
        read.unwrap_or_else(|damage| panic!("{damage}: seed {}", self.recording.seed));
        Log::parse(&fs::read(&log).expect("the log"))
    }
}

/// Removes a folder, if it is there.
pub fn remove(folder: &Path) {
    if File::open(folder).is_ok() {
        fs::remove_dir_all(folder).expect("the image before");
    }
}
