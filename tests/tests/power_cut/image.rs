//! The files as a power cut could have left them: what is safe, and of what came later whatever the disk happened to
//! have written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::disk::{Disk, DiskFile, DiskFolder, Node, PAGE, Version};
use crate::log::Moment;

/// What a disk writes in one piece.
const SECTOR: usize = 512;

/// LMDB's meta pages, which say where a database's trees begin, are the first of its file.
const META_PAGES: usize = 2;

/// What a disk kept of the pages written after the last sync.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kept {
    All,
    Nothing,
    OnlyMetaPages,
    AllButMetaPages,
    /// Each page on its own: kept, dropped, at a version in between, or torn.
    Random,
}

/// A page of which some sectors may be of one version and some of another.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    Dropped,
    Between,
    Torn,
}

/// Makes the files of a disk after a power cut.
pub struct Image<'a> {
    pub disk: &'a Disk,
    pub cut: Moment,
    pub kept: Kept,
    pub rng: &'a mut StdRng,
}

impl Image<'_> {
    /// Writes them below `folder`, which must be there and empty.
    ///
    /// # Panics
    /// When the files cannot be written.
    pub fn write_to(&mut self, folder: &Path) {
        self.write_folder(0, folder);
    }

    fn write_folder(&mut self, node: usize, path: &Path) {
        let disk = self.disk;
        let Node::Folder(folder) = &disk.nodes[node] else { unreachable!("only folders are asked for") };
        for (name, node) in self.names(folder) {
            let path = path.join(name);
            match &disk.nodes[node] {
                Node::File(file) => self.write_file(file, &path),
                Node::Folder(_) => {
                    fs::create_dir(&path).expect("a folder of the image");
                    self.write_folder(node, &path);
                }
            }
        }
    }

    /// The names a folder has: a journal keeps the first of the unsynced changes, other disks keep any.
    fn names(&mut self, folder: &DiskFolder) -> BTreeMap<String, usize> {
        let journal = self.rng.random_bool(0.5);
        let mut names = BTreeMap::new();
        let mut broken_off = false;
        for change in folder.changes.iter().take_while(|change| change.begin < self.cut) {
            let kept = change.safe_at(self.cut)
                || match self.kept {
                    Kept::All => true,
                    Kept::Nothing => false,
                    _ => !(journal && broken_off) && self.rng.random(),
                };
            if !kept {
                broken_off = true;
                continue;
            }
            for (name, node) in &change.value {
                match node {
                    Some(node) => names.insert(name.clone(), *node),
                    None => names.remove(name),
                };
            }
        }
        names
    }

    fn write_file(&mut self, file: &DiskFile, path: &Path) {
        let out = File::create(path).expect("a file of the image");
        let length = self.length(file);
        out.set_len(length as u64).expect("room for the image");
        for number in 0..file.pages.len().min(length.div_ceil(PAGE)) {
            let Some(page) = self.page(&file.pages[number], number) else { continue };
            let bytes = &page[..PAGE.min(length - number * PAGE)];
            if bytes.iter().all(|byte| *byte == 0) {
                // As it is where nothing is written.
                continue;
            }
            out.write_all_at(bytes, (number * PAGE) as u64).expect("room for the image");
        }
    }

    /// The length at the last sync, or any it has had since.
    fn length(&mut self, file: &DiskFile) -> usize {
        let (safe, later) = self.split(&file.lengths);
        let safe = safe.map_or(0, |version| version.value);
        match self.kept {
            Kept::Nothing => safe,
            Kept::All => later.last().map_or(safe, |version| version.value),
            _ if self.rng.random() => later.last().map_or(safe, |version| version.value),
            _ => later.choose(self.rng).filter(|_| self.rng.random()).map_or(safe, |version| version.value),
        }
    }

    /// A page's bytes; none stands for zeros.
    fn page(&mut self, versions: &[Version<Box<[u8]>>], number: usize) -> Option<Vec<u8>> {
        let (safe, later) = self.split(versions);
        let safe = safe.map(|version| version.value.to_vec());
        let Some(newest) = later.last() else { return safe };
        match self.fate(number) {
            Fate::Kept => Some(newest.value.to_vec()),
            Fate::Dropped => safe,
            Fate::Between => later.choose(self.rng).map(|version| version.value.to_vec()),
            Fate::Torn => Some(self.torn(&safe.unwrap_or_else(|| vec![0; PAGE]), later)),
        }
    }

    fn fate(&mut self, page: usize) -> Fate {
        let kept = match self.kept {
            Kept::All => true,
            Kept::Nothing => false,
            Kept::OnlyMetaPages => page < META_PAGES,
            Kept::AllButMetaPages => page >= META_PAGES,
            Kept::Random => {
                let fates = [Fate::Kept, Fate::Kept, Fate::Dropped, Fate::Dropped, Fate::Between, Fate::Torn];
                return *fates.choose(self.rng).expect("not empty");
            }
        };
        if kept { Fate::Kept } else { Fate::Dropped }
    }

    /// Each sector of any version the page may have had.
    fn torn(&mut self, safe: &[u8], later: &[Version<Box<[u8]>>]) -> Vec<u8> {
        let mut bytes = safe.to_vec();
        for (number, sector) in bytes.chunks_mut(SECTOR).enumerate() {
            if self.rng.random() {
                let version = later.choose(self.rng).expect("a later version");
                sector.copy_from_slice(&version.value[number * SECTOR..][..SECTOR]);
            }
        }
        bytes
    }

    /// The newest version that is safe, and those begun after it before the cut.
    fn split<'v, T>(&self, versions: &'v [Version<T>]) -> (Option<&'v Version<T>>, &'v [Version<T>]) {
        let begun = &versions[..versions.partition_point(|version| version.begin < self.cut)];
        match begun.iter().rposition(|version| version.safe_at(self.cut)) {
            Some(safe) => (Some(&begun[safe]), &begun[safe + 1..]),
            None => (None, begun),
        }
    }
}
