//! The pages of a file.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::Mmap;

use super::damage::Damage;
use super::page::Wrong;
use crate::env::{DATA_FILE, map_file};
use crate::error::{StorageError, if_there};

/// Pages read at once while every page is touched.
const STRIDE_PAGES: usize = 256;

/// Tells a file from what it was before, or from another in its place; `None` when it is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileState(Option<(u64, u64, SystemTime)>);

impl FileState {
    pub fn of(path: &Path) -> FileState {
        let state = std::fs::metadata(path).and_then(|file| Ok((file.ino(), file.len(), file.modified()?)));
        FileState(state.ok())
    }
}

/// A file as long as it was when it was opened.
pub(crate) struct PageFile {
    path: PathBuf,
    file: File,
    map: Mmap,
    page_bytes: usize,
    /// Pages the disk did not give; `None` while not every page was asked for.
    unreadable: Option<BTreeSet<u64>>,
}

impl PageFile {
    /// Opens the file in a folder; `None` when there is none, or nothing in it, which is a database about to be made.
    pub fn open(folder: &Path) -> Result<Option<PageFile>, StorageError> {
        let path = folder.join(DATA_FILE);
        let Some(file) = if_there(File::open(&path)).map_err(StorageError::io(&path))? else { return Ok(None) };
        if file.metadata().map_err(StorageError::io(&path))?.len() == 0 {
            return Ok(None);
        }
        let map = map_file(&file).map_err(StorageError::io(&path))?;
        Ok(Some(PageFile { path, file, map, page_bytes: 0, unreadable: None }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long it is.
    pub fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Whether it has become longer since it was opened: what is read of it now may lead behind its end.
    pub fn has_grown(&self) -> bool {
        self.file.metadata().is_ok_and(|now| now.len() > self.len())
    }

    /// Bytes of it, before the size of its pages is known; nothing where the disk does not give them.
    pub fn read<const LENGTH: usize>(&self, at: u64) -> Option<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        self.file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    }

    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    pub fn set_page_bytes(&mut self, page_bytes: usize) {
        self.page_bytes = page_bytes;
    }

    /// How many whole pages there are.
    pub fn pages(&self) -> u64 {
        (self.map.len() / self.page_bytes.max(1)) as u64
    }

    /// Reads every page from the disk, in order: a page of the map that the disk does not give would end the process.
    pub fn touch_all(&mut self) {
        let mut unreadable = BTreeSet::new();
        let mut buffer = Vec::new();
        for first in (0..self.pages()).step_by(STRIDE_PAGES) {
            let pages = (self.pages() - first).min(STRIDE_PAGES as u64);
            let (at, bytes) = (first as usize * self.page_bytes, pages as usize * self.page_bytes);
            if populate(&self.map, at, bytes) {
                continue;
            }
            buffer.resize(bytes, 0);
            if self.file.read_exact_at(&mut buffer, at as u64).is_err() {
                unreadable.extend((first..first + pages).filter(|page| !self.is_given(*page)));
            }
        }
        self.unreadable = Some(unreadable);
    }

    /// Whether the disk gives a page.
    fn is_given(&self, page: u64) -> bool {
        let mut buffer = vec![0; self.page_bytes];
        self.file.read_exact_at(&mut buffer, page * self.page_bytes as u64).is_ok()
    }

    /// A page's bytes.
    pub fn page(&self, number: u64) -> Result<&[u8], Wrong> {
        self.run(number, 1)
    }

    /// The bytes of pages that lie one behind the other.
    pub fn run(&self, first: u64, pages: u64) -> Result<&[u8], Wrong> {
        let end = first.checked_add(pages).filter(|end| *end <= self.pages());
        let end = end.ok_or_else(|| format!("page {first} lies outside of the file's {} pages", self.pages()))?;
        let unreadable = match &self.unreadable {
            Some(unreadable) => unreadable.range(first..end).next().copied(),
            None => (first..end).find(|page| !self.is_given(*page)),
        };
        if let Some(page) = unreadable {
            return Err(format!("page {page} cannot be read from the disk"));
        }
        Ok(&self.map[first as usize * self.page_bytes..end as usize * self.page_bytes])
    }

    /// Why something of it cannot be read.
    pub fn damaged(&self, damage: &Damage) -> StorageError {
        StorageError::DamagedFile { file: self.path.clone(), damage: Box::new(damage.clone()) }
    }
}

/// Has the system put a part of a file into its map, where it can do so in one call; `false` where it cannot, or the
/// disk does not give all of it.
fn populate(map: &Mmap, at: usize, bytes: usize) -> bool {
    #[cfg(target_os = "linux")]
    return map.advise_range(memmap2::Advice::PopulateRead, at, bytes).is_ok();
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file lost since it was mapped is as what its disk does not give: to look at the map there ends the
    /// process.
    #[test]
    fn a_page_that_the_disk_does_not_give_is_damage_before_and_behind_the_walk() {
        const PAGE: usize = 4096;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(DATA_FILE);
        std::fs::write(&path, vec![1; 4 * PAGE]).unwrap();
        let mut file = PageFile::open(folder.path()).unwrap().unwrap();
        file.set_page_bytes(PAGE);
        File::options().write(true).open(&path).unwrap().set_len(2 * PAGE as u64).unwrap();
        let unreadable = |page: u64| Err(format!("page {page} cannot be read from the disk"));
        for walked in [false, true] {
            if walked {
                file.touch_all();
            }
            assert_eq!(file.page(1), Ok(&[1; PAGE][..]), "walked: {walked}");
            assert_eq!(file.run(1, 3), unreadable(2), "walked: {walked}");
            assert_eq!(file.page(3), unreadable(3), "walked: {walked}");
        }
        assert_eq!((file.read::<4>(PAGE as u64), file.read::<4>(2 * PAGE as u64)), (Some([1; 4]), None));
    }
}
