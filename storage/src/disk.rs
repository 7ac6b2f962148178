//! What LMDB leaves to its user when the disk says no: to find out why, to make the last commit safe again, and to have
//! the blocks of its lock file before they are needed.
//!
//! A commit writes pages that nobody needs yet, syncs them, and then overwrites one of the two meta pages. When any of
//! it fails, the tables are what they were, as long as both meta pages are. Where a sync of these has failed, the
//! system may have let go of them as if they had been written, so that another sync proves nothing: they are written
//! once more, then synced.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate, statvfs};
use rustix::io::Errno;

use crate::error::{StorageError, if_there, is_full};

/// LMDB has two meta pages, at the beginning of its file.
const META_PAGES: usize = 2;
/// The largest pages that LMDB makes.
const PAGE_BYTES_MAX: u64 = 32 << 10;

/// As much as the smallest file system's block: what does not fit is refused, not cut short.
const PROBE: [u8; 4096] = [0; 4096];

/// More than LMDB writes at once, in bytes, where a document is as large as it may be by default.
const WRITE_BYTES_MAX: u64 = 16 << 20;
/// What the disk is asked to take at once.
const PIECE_BYTES: usize = 1 << 20;

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

    /// Why a commit failed. LMDB reports a write that was cut short as `EIO`, whatever the reason. Writing on tells a
    /// full disk, or a quota used up, from a broken one, unless there is room again by now. As a small write may fit
    /// where a large one did not, as much is written as LMDB writes at once.
    pub fn why(&self, error: io::Error) -> io::Error {
        if error.raw_os_error() != Some(Errno::IO.raw_os_error()) {
            return error;
        }
        let probe = |end| {
            let written = probe(end, |bytes, at| self.data.write_all_at(bytes, at));
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

/// Syncs LMDB's data file, if there is one, before it is opened.
///
/// # Errors
/// [`io::Error`]. The meta pages are written once more then: by themselves, they would count as synced the next time.
pub(crate) fn sync_what_is_there(data: &Path) -> io::Result<()> {
    let Some(data) = open_to_sync(data, OFlags::empty())? else { return Ok(()) };
    data.sync_data().inspect_err(|_| {
        let mut pages = Vec::new();
        let read = (&data).take(META_PAGES as u64 * PAGE_BYTES_MAX).read_to_end(&mut pages);
        let _ = read.and_then(|_| data.write_all_at(&pages, 0));
    })
}

/// The same for less, where a commit may have been broken off that had written much: syncs the meta pages alone. Each
/// commit has synced the pages that its meta page leads to before it wrote that, with relaxed durability too. They are
/// written once more, in a way that syncs what it writes: after a sync that failed they may be in memory as if they
/// were on the disk.
///
/// # Errors
/// [`io::Error`]
pub(crate) fn sync_meta_pages(data: &Path, page_bytes: usize) -> io::Result<()> {
    let Some(synced) = open_to_sync(data, OFlags::DSYNC)? else { return Ok(()) };
    match MetaPages::read(Arc::new(synced), page_bytes)?.put_back() {
        // Some file systems write elsewhere what is written over, for which there may be no room. A sync alone is then
        // what can be had: after one that failed it may say less than it should.
        Err(full) if is_full(&full) => sync_what_is_there(data),
        written => written,
    }
}

fn open_to_sync(data: &Path, flags: OFlags) -> io::Result<Option<File>> {
    if_there(OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(data))
}

/// Writes behind the end of a file as much as tells whether its disk is full, or a quota used up.
fn probe(end: u64, mut write: impl FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
    write(&PROBE, end)?;
    let (piece, mut at) = (vec![0; PIECE_BYTES], end + PROBE.len() as u64);
    while at < end + WRITE_BYTES_MAX {
        write(&piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// How many bytes of a folder's disk are free for this process.
///
/// # Errors
/// [`io::Error`] when the system does not say.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// What was found free of a disk, so that it need not be asked each time.
///
/// An answer counts for [`FreeBytes::COUNTS_FOR`], and only while it leaves [`FreeBytes::PLENTY`] beyond what is
/// needed: to take that in this time, all programs together would have to write 20 GB a second. One that takes room
/// without writing, as by `fallocate`, may do so behind any answer, however new.
#[derive(Debug, Default)]
pub(crate) struct FreeBytes {
    last: Option<(Instant, u64)>,
}

impl FreeBytes {
    const COUNTS_FOR: Duration = Duration::from_millis(50);
    const PLENTY: u64 = 1 << 30;

    /// Whether the disk of this folder, the same one each time, has so many bytes free for this process. A disk that
    /// does not say has not.
    pub fn are_at_least(&mut self, needed: u64, folder: &Path) -> bool {
        self.are_at_least_by(needed, || free_bytes(folder))
    }

    fn are_at_least_by(&mut self, needed: u64, ask: impl FnOnce() -> io::Result<u64>) -> bool {
        let plenty = needed.saturating_add(FreeBytes::PLENTY);
        if self.last.is_some_and(|(asked, free)| free >= plenty && asked.elapsed() < FreeBytes::COUNTS_FOR) {
            return true;
        }
        let asked = Instant::now();
        self.last = ask().ok().map(|free| (asked, free));
        self.last.is_some_and(|(_, free)| free >= needed)
    }
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
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let bytes = LINE_BYTES * (u64::from(readers_max) + 3);
    file.and_then(|file| allocate(&file, bytes)).map_err(StorageError::io(&path))
}

/// Gives the first bytes of a file their room on the disk.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Not every file system can.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write of 200 KB was cut short where 4 KiB had room, and the disk was said to fail.
    #[test]
    fn a_disk_that_has_room_for_little_is_full() {
        let written_to = |room: u64| {
            let mut taken = 0;
            let probed = probe(7, |bytes, at| {
                assert_eq!(at, 7 + taken, "one behind the other");
                taken += bytes.len() as u64;
                if taken > room { Err(Errno::NOSPC.into()) } else { Ok(()) }
            });
            probed.map_err(|why| is_full(&why))
        };
        for room in [0, 4096, 200_000, WRITE_BYTES_MAX - 1] {
            assert_eq!(written_to(room), Err(true), "room for {room}");
        }
        assert_eq!(written_to(2 * WRITE_BYTES_MAX), Ok(()));
    }

    #[test]
    fn a_disk_is_asked_again_when_its_answer_is_old_or_is_not_plenty() {
        let mut free = FreeBytes::default();
        let asks = |free: &mut FreeBytes, needed: u64, answer: io::Result<u64>| {
            let mut asked = false;
            let are = free.are_at_least_by(needed, || {
                asked = true;
                answer
            });
            (asked, are)
        };
        let none = || Err(io::Error::other("not said"));
        // The test may be held up.
        let asked_at = |free: &mut FreeBytes, at: Instant| free.last.as_mut().unwrap().0 = at;
        let (old, new) =
            (Instant::now().checked_sub(FreeBytes::COUNTS_FOR), Instant::now() + Duration::from_secs(3600));
        let plenty = FreeBytes::PLENTY + 10;
        assert_eq!(asks(&mut free, 10, none()), (true, false));
        assert_eq!(asks(&mut free, 10, Ok(plenty)), (true, true));
        asked_at(&mut free, new);
        assert_eq!(asks(&mut free, 10, none()), (false, true));
        // More is needed than leaves plenty.
        assert_eq!(asks(&mut free, 11, Ok(11)), (true, true));
        assert_eq!(asks(&mut free, 11, Ok(10)), (true, false));
        assert_eq!(asks(&mut free, 10, Ok(plenty)), (true, true));
        asked_at(&mut free, old.unwrap());
        assert_eq!(asks(&mut free, 10, Ok(9)), (true, false));
    }
}
