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
use crate::error::StorageError;

/// Bytes read at once while every page is touched.
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
    /// Pages the disk did not give.
    unreadable: BTreeSet<u64>,
}

impl PageFile {
    /// Opens the file in a folder; `None` when there is none, or nothing in it, which is a database about to be made.
    pub fn open(folder: &Path) -> Result<Option<PageFile>, StorageError> {
        let path = folder.join(DATA_FILE);
        let file = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(StorageError::io(&path))?,
        };
        if file.metadata().map_err(StorageError::io(&path))?.len() == 0 {
            return Ok(None);
        }
        let map = map_file(&file).map_err(StorageError::io(&path))?;
        Ok(Some(PageFile { path, file, map, page_bytes: 0, unreadable: BTreeSet::new() }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of it, before the size of its pages is known.
    pub fn bytes(&self) -> &[u8] {
        &self.map
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
        let mut buffer = vec![0; self.page_bytes * STRIDE_PAGES];
        for first in (0..self.pages()).step_by(STRIDE_PAGES) {
            let pages = (self.pages() - first).min(STRIDE_PAGES as u64);
            let stride = &mut buffer[..pages as usize * self.page_bytes];
            if self.file.read_exact_at(stride, first * self.page_bytes as u64).is_err() {
                self.touch_each(first..first + pages);
            }
        }
    }

    fn touch_each(&mut self, pages: std::ops::Range<u64>) {
        let mut buffer = vec![0; self.page_bytes];
        for page in pages {
            if self.file.read_exact_at(&mut buffer, page * self.page_bytes as u64).is_err() {
                self.unreadable.insert(page);
            }
        }
    }

    /// A page's bytes.
    pub fn page(&self, number: u64) -> Result<&[u8], Wrong> {
        self.run(number, 1)
    }

    /// The bytes of pages that lie one behind the other.
    pub fn run(&self, first: u64, pages: u64) -> Result<&[u8], Wrong> {
        let end = first.checked_add(pages).filter(|end| *end <= self.pages());
        let end = end.ok_or_else(|| format!("page {first} lies outside of the file's {} pages", self.pages()))?;
        if let Some(page) = self.unreadable.range(first..end).next() {
            return Err(format!("page {page} cannot be read from the disk"));
        }
        Ok(&self.map[first as usize * self.page_bytes..end as usize * self.page_bytes])
    }

    /// Why something of it cannot be read.
    pub fn damaged(&self, damage: &Damage) -> StorageError {
        StorageError::DamagedFile { file: self.path.clone(), damage: Box::new(damage.clone()) }
    }
}
