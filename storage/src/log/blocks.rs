//! A file that is written one piece behind the other, each synced before the next. It is written in whole blocks and
//! past the system's page cache (`O_DIRECT`): the disk gets the bytes at once, which costs less than having the cache
//! find and write the pages that have changed.
//!
//! The last block is partly filled as a rule, and is written again with the next piece. What it has of earlier pieces
//! was synced, and is the same in what is written over it: whichever sectors of the two a power cut leaves, they hold
//! these bytes. So a piece that is torn costs none before it, as long as the disk writes a sector as a whole or not at
//! all.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

/// What is written in one, and where it begins in the file and in memory: as much as any usual disk asks for.
pub const BLOCK_BYTES: usize = 4096;
/// As much as this is written at once.
const BUFFER_BYTES: usize = 32 * BLOCK_BYTES;

/// A file that is written from its beginning on, over what is there.
#[derive(Debug)]
pub struct Blocks {
    file: File,
    /// Whether what is written now goes past the page cache.
    is_direct: bool,
    /// Whether the file system has refused that.
    is_refused: bool,
    /// Where the next piece goes.
    end: u64,
    /// What the block in which it goes holds before it.
    tail: Vec<u8>,
    buffer: Aligned,
}

impl Blocks {
    /// A file that is open for writing, was synced, and is written by nobody else.
    pub fn new(file: File) -> Blocks {
        Blocks { file, is_direct: false, is_refused: false, end: 0, tail: Vec::new(), buffer: Aligned::default() }
    }

    /// How much of a file of this length is whole blocks.
    pub fn whole(bytes: u64) -> u64 {
        bytes - bytes % BLOCK_BYTES as u64
    }

    /// Where the next piece goes.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The next piece goes to the beginning.
    pub fn restart(&mut self) {
        self.end = 0;
        self.tail.clear();
    }

    /// Writes a piece behind the one before, and syncs it. What lies behind it in its last block becomes zeros.
    ///
    /// # Errors
    /// [`io::Error`] when the piece is not safe; it, or parts of it, may be in the file then.
    pub fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        self.write(piece)?;
        // This has the disk empty its own cache too, which a direct write alone does not. With `O_DSYNC` each direct
        // write would do so, in about the same time, but also each of those that go through the page cache.
        self.file.sync_data()?;
        self.end += piece.len() as u64;
        let in_last = usize::try_from(self.end).unwrap_or(0) % BLOCK_BYTES;
        match piece.len().checked_sub(in_last) {
            Some(before) => {
                self.tail.clear();
                self.tail.extend_from_slice(&piece[before..]);
            }
            None => self.tail.extend_from_slice(piece),
        }
        Ok(())
    }

    /// Writes in the place of the next piece, which goes there all the same. It is not synced.
    ///
    /// # Errors
    /// [`io::Error`] when it cannot be written, or not all of it.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        // What takes several writes waits for the disk once when it goes through the cache.
        let direct = !self.is_refused && self.tail.len() + piece.len() <= BUFFER_BYTES;
        match self.write_blocks(piece, direct) {
            // Not every file system has such writes, or for blocks of this length.
            Err(refused) if direct && refused.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                self.is_refused = true;
                self.write_blocks(piece, false)
            }
            written => written,
        }
    }

    /// Both ways write the same whole blocks: so nothing that the page cache may have of them matters.
    fn write_blocks(&mut self, mut piece: &[u8], direct: bool) -> io::Result<()> {
        if direct != self.is_direct {
            fcntl_setfl(&self.file, if direct { OFlags::DIRECT } else { OFlags::empty() })?;
            self.is_direct = direct;
        }
        let buffer = self.buffer.bytes();
        buffer[..self.tail.len()].copy_from_slice(&self.tail);
        let (mut at, mut filled) = (self.end - self.tail.len() as u64, self.tail.len());
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(buffer.len() - filled));
            let end = filled + now.len();
            let whole = end.next_multiple_of(BLOCK_BYTES);
            buffer[filled..end].copy_from_slice(now);
            buffer[end..whole].fill(0);
            self.file.write_all_at(&buffer[..whole], at)?;
            (piece, at, filled) = (later, at + whole as u64, 0);
        }
        Ok(())
    }

    /// From now on nothing can be written: the file is open for reading alone.
    #[cfg(test)]
    pub fn break_file(&mut self, path: &std::path::Path) {
        (self.file, self.is_direct) = (File::open(path).unwrap(), false);
    }
}

/// A buffer that begins where a block may: in the midst of one that is larger. Made when it is asked for first.
#[derive(Debug, Default)]
struct Aligned {
    bytes: Vec<u8>,
}

impl Aligned {
    fn bytes(&mut self) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; BUFFER_BYTES + BLOCK_BYTES];
        }
        let start = first_block(&self.bytes);
        &mut self.bytes[start..start + BUFFER_BYTES]
    }
}

/// Where in memory that is longer than a block the first place is at which one may begin.
pub fn first_block(memory: &[u8]) -> usize {
    memory.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::log::tests::cases;

    /// A file of this length, of bytes that no piece has.
    fn file_of(bytes: usize) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        std::fs::write(&path, vec![0xff; bytes]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        (folder, path)
    }

    fn any_pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let length = prop_oneof![
            4 => 1..200usize,
            2 => (1..4usize, 0..3usize).prop_map(|(blocks, more)| blocks * BLOCK_BYTES + more - 1),
            1 => (0..3usize).prop_map(|more| BUFFER_BYTES + more - 1),
            1 => Just(3 * BUFFER_BYTES + 1),
        ];
        let piece = (1u8..0xff, length).prop_map(|(byte, length)| vec![byte; length]);
        prop::collection::vec(piece, 1..20)
    }

    proptest! {
        #![proptest_config(cases())]
        #[test]
        fn pieces_lie_one_behind_the_other_and_nothing_behind_them_changes(
            pieces in any_pieces(),
            is_refused: bool,
            taken_back in 0..20usize,
        ) {
            let whole = pieces.iter().map(Vec::len).sum::<usize>().next_multiple_of(BLOCK_BYTES);
            let (_folder, path) = file_of(whole + BLOCK_BYTES);
            let mut blocks = Blocks::new(File::options().write(true).open(&path).unwrap());
            blocks.is_refused = is_refused;
            let mut expected = Vec::new();
            for (number, piece) in pieces.iter().enumerate() {
                if number == taken_back {
                    blocks.write(piece).unwrap();
                    blocks.write(&vec![0; piece.len()]).unwrap();
                    let read = std::fs::read(&path).unwrap();
                    prop_assert!(read[expected.len()..][..piece.len()].iter().all(|byte| *byte == 0));
                }
                blocks.append(piece).unwrap();
                expected.extend_from_slice(piece);
                let read = std::fs::read(&path).unwrap();
                prop_assert!(read[..expected.len()] == expected[..]);
                let end = expected.len().next_multiple_of(BLOCK_BYTES);
                prop_assert!(read[expected.len()..end].iter().all(|byte| *byte == 0));
                prop_assert_eq!(blocks.end(), expected.len() as u64);
            }
            prop_assert!(std::fs::read(&path).unwrap()[whole..].iter().all(|byte| *byte == 0xff));
            blocks.restart();
            blocks.append(b"again").unwrap();
            prop_assert!(std::fs::read(&path).unwrap().starts_with(b"again\0"));
        }
    }
}
