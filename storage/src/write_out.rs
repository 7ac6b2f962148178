//! Has the system write a file's changed pages to disk bit by bit, before they are synced.
//!
//! A sync of a hundred megabytes has the disk to itself, and each small one that comes meanwhile takes ten times as
//! long. What was written out before is not left to it.
//!
//! Source: `sync_file_range(2)`.
#![allow(unsafe_code)]

use std::path::Path;

/// A file has at most so many parts.
#[cfg(any(target_os = "linux", test))]
const PARTS_MAX: u64 = 512;
/// The smallest part. Of a file that is changed all over it is a fraction of a millisecond's work.
#[cfg(any(target_os = "linux", test))]
const PART_BYTES_MIN: u64 = 256 << 10;

/// Writes out what was changed of a file, one part after the other, until it is awaited. It promises nothing:
/// the sync that follows writes whatever is left, and tells what failed.
#[cfg(target_os = "linux")]
pub(crate) fn write_out(file: &Path, is_awaited: impl Fn() -> bool) {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use libc::{SYNC_FILE_RANGE_WAIT_AFTER, SYNC_FILE_RANGE_WAIT_BEFORE, SYNC_FILE_RANGE_WRITE, sync_file_range};

    // Opened for this alone: since Linux 4.13 an error is told once to each who has the file open, and the sync is to
    // hear of it.
    let Ok(file) = File::open(file) else { return };
    let Ok(length) = file.metadata().map(|file| file.len()) else { return };
    let flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    for (at, bytes) in parts(length) {
        // SAFETY: it takes numbers, and the descriptor is open.
        if is_awaited() || unsafe { sync_file_range(file.as_raw_fd(), at as _, bytes as _, flags) } != 0 {
            return;
        }
    }
}

/// Elsewhere all of it is left to the sync.
#[cfg(not(target_os = "linux"))]
pub(crate) fn write_out(_file: &Path, _is_awaited: impl Fn() -> bool) {}

/// The parts of a file: where each begins, and how long it is.
#[cfg(any(target_os = "linux", test))]
fn parts(length: u64) -> impl Iterator<Item = (u64, u64)> {
    let bytes = length.div_ceil(PARTS_MAX).next_multiple_of(4096).max(PART_BYTES_MIN);
    (0..length.div_ceil(bytes)).map(move |place| (place * bytes, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn it_goes_on_to_the_end_unless_somebody_waits() {
        use std::cell::Cell;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let bytes = vec![7; 4 * PART_BYTES_MIN as usize];
        std::fs::write(&file, &bytes).unwrap();
        let asked = |awaited_from: usize| {
            let count = Cell::new(0);
            write_out(&file, || {
                count.set(count.get() + 1);
                count.get() >= awaited_from
            });
            count.get()
        };
        assert_eq!(asked(usize::MAX), 4);
        assert_eq!(asked(2), 2);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
        write_out(&folder.path().join("none"), || unreachable!("there is no such file"));
    }

    #[test]
    fn parts_are_as_many_as_they_may_be_and_leave_nothing_out() {
        for length in [0, 1, 4096, PART_BYTES_MIN, PART_BYTES_MIN + 1, 1 << 30, (1 << 30) + 1, 5 << 30, (1 << 44) + 7] {
            let mut end = 0;
            for (at, bytes) in parts(length) {
                assert!(at == end && bytes >= PART_BYTES_MIN && bytes.is_multiple_of(4096), "{length}: {at}, {bytes}");
                end = at + bytes;
            }
            assert!(end >= length && parts(length).count() as u64 <= PARTS_MAX, "{length}");
        }
    }
}
