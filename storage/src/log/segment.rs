//! A segment of the log: a file that is filled with zeros before it is used, and used again and again. Writing over what
//! is there costs one small sync; a file that grows costs its new length as well.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::record::{self, Record};

/// The first segments of a database are small: there may be many databases.
pub const BYTES_MIN: u64 = 1 << 20;
/// No segment is larger: what is replayed after a crash is at most two of them.
pub const BYTES_MAX: u64 = 32 << 20;

/// How much is filled with zeros at a time.
const ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A file that takes records.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Where the next record goes.
    end: u64,
    /// Of this use: stale records behind its own have another one.
    generation: u64,
    /// The number of its last record; 0 before the first.
    pub last: u64,
}

/// What a segment's file was found to hold.
#[derive(Debug)]
pub struct Found {
    pub segment: Segment,
    /// Its whole records from the beginning, of one generation.
    pub records: Vec<Record>,
}

impl Segment {
    /// Makes a segment of so many bytes, in the place of one that may be there. When it returns, the file and its name
    /// outlive a power cut.
    pub fn make(path: &Path, bytes: u64, generation: u64) -> io::Result<Segment> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut at = 0;
        while at < bytes {
            let piece = ZEROS.len().min(usize::try_from(bytes - at).unwrap_or(usize::MAX));
            file.write_all_at(&ZEROS[..piece], at)?;
            at += piece as u64;
        }
        file.sync_all()?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(Segment { path: path.to_owned(), file, bytes, end: 0, generation, last: 0 })
    }

    /// Opens a segment and reads it; `None` when there is none.
    pub fn find(path: &Path) -> io::Result<Option<Found>> {
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let records = records_in(&content);
        let (generation, last) = records.last().map_or((0, 0), |last| (last.generation, last.number));
        let (path, bytes) = (path.to_owned(), content.len() as u64);
        // Nothing is written behind what was found: whether more of it is whole is not known.
        let segment = Segment { path, file, bytes, end: bytes, generation, last };
        Ok(Some(Found { segment, records }))
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a record of so many bytes has room.
    pub fn fits(&self, bytes: usize) -> bool {
        self.end + bytes as u64 <= self.bytes
    }

    /// Begins anew, over what is there.
    pub fn restart(&mut self, generation: u64) {
        (self.end, self.generation, self.last) = (0, generation, 0);
    }

    /// Writes a record and syncs it.
    pub fn append(&mut self, number: u64, record: &[u8]) -> io::Result<()> {
        self.file.write_all_at(record, self.end)?;
        self.file.sync_data()?;
        self.end += record.len() as u64;
        self.last = number;
        Ok(())
    }

    /// Removes the file.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

/// The whole records at the beginning, of the first one's generation. What lies behind is older, or was cut off.
fn records_in(content: &[u8]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut rest = content;
    while let Some((record, length)) = record::decode(rest) {
        let follows = |last: &Record| last.generation == record.generation && last.number + 1 == record.number;
        if !records.last().is_none_or(follows) {
            break;
        }
        records.push(record);
        rest = &rest[length..];
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Rows, Table};

    fn append(segment: &mut Segment, number: u64) {
        let mut rows = Rows::default();
        rows.put(Table::Docs, format!("d{number}"), vec![1; 100]);
        segment.append(number, &record::encode(segment.generation(), number, &rows)).unwrap();
    }

    fn numbers(path: &Path) -> Vec<u64> {
        Segment::find(path).unwrap().unwrap().records.iter().map(|record| record.number).collect()
    }

    #[test]
    fn what_was_appended_is_found_and_stale_records_behind_it_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(Segment::find(&path).unwrap().is_none());
        let mut segment = Segment::make(&path, 4096, 1).unwrap();
        assert_eq!(numbers(&path), [0; 0]);
        (1..=5).for_each(|number| append(&mut segment, number));
        assert_eq!(numbers(&path), [1, 2, 3, 4, 5]);
        segment.restart(3);
        append(&mut segment, 6);
        append(&mut segment, 7);
        assert_eq!(numbers(&path), [6, 7]);
    }
}
