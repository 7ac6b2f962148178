//! A segment of the log: a file that is filled with zeros before it is used, and used again and again. To write over
//! what is there costs one small sync; of a file that grows the new length has to be synced as well.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::blocks::Blocks;
use super::record::PREFIX_BYTES;
use crate::sync_folder::sync_folder;

/// The first segments of a database are small, as there may be many databases; those of tests are soon full. Each
/// length is a power of two, so that a file that was cut off is known by its length.
pub const BYTES_MIN: u64 = if cfg!(test) { 1 << 12 } else { 1 << 20 };
/// No segment is larger: what is replayed after a crash is at most two of them.
pub const BYTES_MAX: u64 = 64 << 20;

/// How much is filled with zeros at a time.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A file that takes records.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    blocks: Blocks,
    bytes: u64,
    /// Of this use: stale records behind its own have another one.
    generation: u64,
    /// The number of its last record; 0 before the first.
    last: u64,
}

impl Segment {
    /// Makes a segment of so many bytes, in the place of one that may be there. When it returns, the file and its name
    /// outlive a power cut. Where it fails the disk has back what was taken from it.
    pub fn make(path: &Path, bytes: u64) -> io::Result<Segment> {
        // Nobody else may read it, as LMDB has it for its own file.
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
        let before = file.metadata()?.len();
        if let Err(why) = fill(&file, bytes).and_then(|()| path.parent().map_or(Ok(()), sync_folder)) {
            let _ = file.set_len(before);
            if before == 0 {
                let _ = std::fs::remove_file(path);
            }
            return Err(why);
        }
        let mut segment = Segment { path: path.to_owned(), blocks: Blocks::new(file), bytes, generation: 0, last: 0 };
        segment.restart()?;
        Ok(segment)
    }

    /// One that was found, whose last record is at most this one; so much of its file is used.
    pub fn found(path: &Path, file: File, bytes: u64, last: u64) -> Segment {
        Segment { path: path.to_owned(), blocks: Blocks::new(file), bytes, generation: 0, last }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of its last record; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether a record of so many bytes has room.
    pub fn fits(&self, bytes: usize) -> bool {
        self.blocks.end() + bytes as u64 <= self.bytes
    }

    /// Begins anew, over what is there. A use has a random number, so that no count of uses must outlive a crash.
    pub fn restart(&mut self) -> io::Result<()> {
        self.blocks.restart();
        (self.generation, self.last) = (getrandom::u64()?, 0);
        Ok(())
    }

    /// Writes a record and syncs it. Where that fails the record may be on the disk or come there, until LMDB has come
    /// past its number; who reads the file meanwhile does not find it.
    pub fn append(&mut self, number: u64, record: &[u8]) -> io::Result<()> {
        if let Err(why) = self.blocks.append(record) {
            let _ = self.blocks.write(&[0; PREFIX_BYTES]);
            return Err(why);
        }
        self.last = number;
        Ok(())
    }

    /// From now on records cannot be written: the file is open for reading alone.
    #[cfg(test)]
    pub fn break_file(&mut self) {
        self.blocks.break_file(&self.path);
    }

    /// Removes the file.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// Has the disk give all blocks of a file of so many bytes.
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let piece = ZEROS.len().min(usize::try_from(bytes - at).unwrap_or(usize::MAX));
        file.write_all_at(&ZEROS[..piece], at)?;
        at += piece as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests;
