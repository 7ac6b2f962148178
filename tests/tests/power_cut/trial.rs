//! One cut after another: rebuild the files, read them, compare with what was promised.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use crate::disk::{Disk, Trust};
use crate::image::{Image, Kept};
use crate::log::{Event, Moment, Record};
use crate::promise::Promises;
use crate::reader::Reader;
use crate::recording::Recording;
use crate::second::remove;

/// Cuts of one recording, on a disk of which something is believed.
pub struct Trial<'a> {
    pub(super) recording: &'a Recording,
    disk: Disk,
    pub(super) reader: Reader,
    pub(super) rng: StdRng,
    /// As it was before the last image, to make that image once more.
    rng_before: StdRng,
    pub(super) images: TempDir,
    answers: Vec<Moment>,
}

/// What is wrong after a cut.
#[derive(Debug)]
pub enum Fault {
    /// The files cannot be read, or an invariant is broken.
    Damaged(String),
    /// All is well with the files, but these promises are not kept.
    Lost(Vec<String>),
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Damaged(damage) => write!(f, "damaged: {damage}"),
            Fault::Lost(broken) => write!(f, "{} promises broken, among them {}", broken.len(), broken[0]),
        }
    }
}

impl<'a> Trial<'a> {
    pub fn new(recording: &'a Recording, trust: Trust) -> Trial<'a> {
        Trial {
            recording,
            disk: recording.disk(trust),
            reader: Reader::new(),
            rng: StdRng::seed_from_u64(recording.seed),
            rng_before: StdRng::seed_from_u64(recording.seed),
            images: images(),
            answers: recording.promises.moments(),
        }
    }

    /// A random cut: anywhere, right after an answer, or inside a sync; and what the disk keeps.
    pub fn any_cut(&mut self) -> (Moment, Kept) {
        let cut = match self.rng.random_range(0..3) {
            0 => self.rng.random_range(0..=self.recording.log.moments),
            1 => *self.answers.choose(&mut self.rng).expect("answers") + 1,
            _ => {
                let syncs: Vec<&Record> = self.recording.log.records.iter().filter(|record| is_sync(record)).collect();
                let sync = syncs.choose(&mut self.rng).expect("syncs");
                self.rng.random_range(sync.begin + 1..=sync.end)
            }
        };
        (cut, self.any_kept())
    }

    pub(super) fn any_kept(&mut self) -> Kept {
        match self.rng.random_range(0..10) {
            0 => Kept::All,
            1 => Kept::Nothing,
            2 => Kept::OnlyMetaPages,
            3 => Kept::AllButMetaPages,
            _ => Kept::Random,
        }
    }

    /// Cuts at random.
    ///
    /// # Panics
    /// When anything is wrong afterwards.
    pub fn assert_survived(&mut self, cuts: usize) {
        for _ in 0..cuts {
            let (cut, kept) = self.any_cut();
            self.assert_survives(cut, kept);
        }
    }

    /// Cuts once.
    ///
    /// # Panics
    /// When anything is wrong afterwards.
    pub fn assert_survives(&mut self, cut: Moment, kept: Kept) {
        if let Some(fault) = self.cut(&self.recording.promises, cut, kept) {
            panic!("{fault}: {}", self.keep_image(cut, kept));
        }
    }

    /// What is wrong after a cut, if anything is.
    pub fn cut(&mut self, promises: &Promises, cut: Moment, kept: Kept) -> Option<Fault> {
        self.rng_before = self.rng.clone();
        let folder = self.make_image(cut, kept);
        match self.reader.read(&self.recording.data.below(&folder)) {
            Err(damage) => Some(Fault::Damaged(damage)),
            Ok(holds) => Some(promises.broken_by(&holds, cut)).filter(|broken| !broken.is_empty()).map(Fault::Lost),
        }
    }

    pub(super) fn make_image(&mut self, cut: Moment, kept: Kept) -> PathBuf {
        let folder = self.images.path().join("image");
        remove(&folder);
        fs::create_dir(&folder).expect("a folder for the image");
        Image { disk: &self.disk, cut, kept, rng: &mut self.rng }.write_to(&folder);
        folder
    }

    /// The beginning of the last sync that ended before a moment.
    pub fn last_sync_before(&self, moment: Moment) -> Moment {
        let ended = self.recording.log.records.iter().filter(|record| is_sync(record) && record.end < moment);
        ended.max_by_key(|record| record.end).expect("a sync").begin
    }

    /// Makes the last image once more, as the reader has written to it, and keeps it; says where.
    pub fn keep_image(&mut self, cut: Moment, kept: Kept) -> String {
        self.images.disable_cleanup(true);
        self.rng = self.rng_before.clone();
        let image = self.make_image(cut, kept);
        let Recording { log, seed, .. } = self.recording;
        format!("seed {seed}: cut at {cut} of {}, kept {kept:?}, the image is in {}", log.moments, image.display())
    }
}

fn is_sync(record: &Record) -> bool {
    matches!(record.event, Event::Sync { .. } | Event::Write { synced: true, .. })
}

/// In memory where the machine has a place for it.
fn images() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    TempDir::with_prefix_in("seqtide-image-", folder).expect("a folder for images")
}
