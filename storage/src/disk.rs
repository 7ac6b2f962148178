//! What LMDB leaves to its user when the disk says no: to find out why, to make the last commit safe again, and to have
//! the blocks of its lock file before they are needed.
//!
//! A commit writes pages that nobody needs yet, syncs them, and then overwrites one of the two meta pages. When any of
//! it fails, the tables are what they were, as long as both meta pages are. Those a sync had failed for may be gone from
//! memory as if they had been written, so another sync proves nothing: they are written once more, then synced.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use crate::error::StorageError;

/// LMDB has two meta pages, at the beginning of its file.
const META_PAGES: usize = 2;

/// As much as the smallest file system's block: what does not fit is refused, not cut short.
const PROBE: [u8; 4096] = [0; 4096];

/// The meta pages as they were before a commit, to be put back if it fails.
pub(crate) struct MetaPages {
    data: Arc<File>,
    pages: Vec<u8>,
}

impl MetaPages {
    /// Those of LMDB's data file, which must not be written meanwhile.
    pub fn read(data: Arc<File>, page_bytes: usize) -> io::Result<MetaPages> {
        let mut pages = vec![0; META_PAGES * page_bytes];
        data.read_exact_at(&mut pages, 0)?;
        Ok(MetaPages { data, pages })
    }

    /// Puts them back: whoever opens the file from now on finds the last commit.
    pub fn put_back(&self) -> io::Result<()> {
        self.data.write_all_at(&self.pages, 0)
    }

    /// Makes them safe from a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.data.sync_data()
    }

    /// Why a commit failed. LMDB reports a write that was cut short as `EIO`; going on with it tells a full disk, or a
    /// quota used up, from a broken one, unless there has come room meanwhile.
    pub fn why(&self, error: io::Error) -> io::Error {
        if error.raw_os_error() != Some(Errno::IO.raw_os_error()) {
            return error;
        }
        let probe = |end| {
            let written = self.data.write_all_at(&PROBE, end);
            // Behind LMDB's last page nobody looks; a file that stays longer does no harm.
            let _ = self.data.set_len(end);
            written
        };
        match self.data.metadata().and_then(|data| probe(data.len())) {
            Err(why) if is_full(&why) => why,
            _ => error,
        }
    }
}

/// Whether an error says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// How many bytes of a folder's disk are free for this process.
///
/// # Errors
/// [`io::Error`] when the system does not say.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// LMDB's table of readers in a database's folder, its lock file.
pub(crate) const READERS_NAME: &str = "lock.mdb";

/// Has the blocks of LMDB's lock file allocated. LMDB makes it with holes and writes to it through its mapping, where a
/// full disk is no error but the end of the process (`SIGBUS`).
///
/// # Errors
/// [`StorageError`], on a full disk before anything is opened.
pub(crate) fn allocate_lock_file(folder: &Path, readers_max: u32) -> Result<(), StorageError> {
    /// `MDB_reader` is a cache line; `MDB_txninfo` has three before the readers.
    const LINE_BYTES: u64 = 64;
    let path = folder.join(READERS_NAME);
    let allocate = || {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, LINE_BYTES * (u64::from(readers_max) + 3)) {
            // Not every file system can.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    };
    allocate().map_err(StorageError::io(&path))
}
