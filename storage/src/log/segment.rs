//! A segment of the log: a file that is filled with zeros before it is used, and used again and again. Writing over what
//! is there costs one small sync; a file that grows costs its new length as well.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::record::{self, HEAD_BYTES, Record};

/// The first segments of a database are small: there may be many databases. Those of tests are soon full.
pub const BYTES_MIN: u64 = if cfg!(test) { 1 << 12 } else { 1 << 20 };
/// No segment is larger: what is replayed after a crash is at most two of them.
pub const BYTES_MAX: u64 = 32 << 20;

/// No log is further ahead of tables that belong to it, in commits.
const AHEAD_MAX: u64 = 1 << 32;

/// How much is filled with zeros at a time.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

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
    last: u64,
}

/// What a segment's file was found to hold.
#[derive(Debug)]
pub struct Found {
    pub segment: Segment,
    /// Its whole records from the beginning, of one generation.
    pub records: Vec<Record>,
    content: Vec<u8>,
}

impl Segment {
    /// Makes a segment of so many bytes, in the place of one that may be there. When it returns, the file and its name
    /// outlive a power cut. Where it fails the disk has back what was taken from it.
    pub fn make(path: &Path, bytes: u64) -> io::Result<Segment> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let before = file.metadata()?.len();
        let mut segment = Segment { path: path.to_owned(), file, bytes, end: 0, generation: 0, last: 0 };
        if let Err(why) = segment.fill() {
            let _ = segment.file.set_len(before);
            return Err(why);
        }
        segment.restart()?;
        Ok(segment)
    }

    /// Has the disk give all of the file's blocks.
    fn fill(&self) -> io::Result<()> {
        let mut at = 0;
        while at < self.bytes {
            let piece = ZEROS.len().min(usize::try_from(self.bytes - at).unwrap_or(usize::MAX));
            self.file.write_all_at(&ZEROS[..piece], at)?;
            at += piece as u64;
        }
        self.file.sync_all()?;
        match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Opens a segment and reads it; `None` when there is none.
    pub fn find(path: &Path) -> io::Result<Option<Found>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut content = Vec::new();
        (&file).take(BYTES_MAX).read_to_end(&mut content)?;
        let records = records_in(&content);
        let (generation, last) = records.last().map_or((0, 0), |last| (last.generation, last.number));
        let (path, bytes) = (path.to_owned(), content.len() as u64);
        // Nothing is written behind what was found, which may end in a record that is torn.
        let segment = Segment { path, file, bytes, end: bytes, generation, last };
        Ok(Some(Found { segment, records, content }))
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
        self.end + bytes as u64 <= self.bytes
    }

    /// Begins anew, over what is there. A use has a random number, so that no count of uses must outlive a crash.
    pub fn restart(&mut self) -> io::Result<()> {
        (self.end, self.generation, self.last) = (0, getrandom::u64()?, 0);
        Ok(())
    }

    /// Writes a record and syncs it. Where that fails the record may be on the disk or come there, until LMDB has come
    /// past its number; who reads the file meanwhile does not find it.
    pub fn append(&mut self, number: u64, record: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(record, self.end).and_then(|()| self.file.sync_data());
        if let Err(why) = written {
            let _ = self.file.write_all_at(&[0; HEAD_BYTES], self.end);
            return Err(why);
        }
        self.end += record.len() as u64;
        self.last = number;
        Ok(())
    }

    /// From now on records cannot be written: the file is open for reading alone.
    #[cfg(test)]
    pub fn break_file(&mut self) {
        self.file = File::open(&self.path).unwrap();
    }

    /// Syncs what is written.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Removes the file.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

impl Found {
    /// A whole record, wherever it lies, whose number is above this one, and where it lies. It is of this use, as far as
    /// that is known.
    pub fn record_above(&self, number: u64) -> Option<(usize, Record)> {
        let generation = self.records.first().map(|first| first.generation);
        let field = |at: usize| self.content[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let numbers = number + 1..=number.saturating_add(AHEAD_MAX);
        // Most places are passed over by what they would have here, for a checksum takes its time.
        let may_be = |at: &usize| {
            generation.is_none_or(|generation| field(at + record::GENERATION_AT) == generation)
                && numbers.contains(&field(at + record::NUMBER_AT))
        };
        let mut places = (0..self.content.len().saturating_sub(record::NUMBER_AT)).filter(may_be);
        places.find_map(|at| record::decode(&self.content[at..]).map(|(record, _)| (at, record)))
    }
}

/// The whole records at the beginning, of the first one's generation. What lies behind is older, or was cut off. Numbers
/// that are left out are those of commits that went to LMDB by themselves.
fn records_in(content: &[u8]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut rest = content;
    while let Some((record, length)) = record::decode(rest) {
        let follows = |last: &Record| last.generation == record.generation && last.number < record.number;
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

    fn find(path: &Path) -> Found {
        Segment::find(path).unwrap().unwrap()
    }

    fn numbers(path: &Path) -> Vec<u64> {
        find(path).records.iter().map(|record| record.number).collect()
    }

    #[test]
    fn what_was_appended_is_found_and_stale_records_behind_it_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(Segment::find(&path).unwrap().is_none());
        let mut segment = Segment::make(&path, 4096).unwrap();
        assert_eq!(numbers(&path), [0; 0]);
        (1..=5).for_each(|number| append(&mut segment, number));
        assert_eq!(numbers(&path), [1, 2, 3, 4, 5]);
        segment.restart().unwrap();
        append(&mut segment, 6);
        append(&mut segment, 7);
        assert_eq!(numbers(&path), [6, 7]);
    }

    #[test]
    fn a_stale_record_does_not_follow_one_whose_number_comes_before_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 4096).unwrap();
        (1..=3).for_each(|number| append(&mut segment, number));
        segment.restart().unwrap();
        append(&mut segment, 1);
        assert_eq!(numbers(&path), [1], "2 and 3 are of the use before");
    }

    #[test]
    fn what_lies_behind_a_damaged_record_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 4096).unwrap();
        (1..=3).for_each(|number| append(&mut segment, number));
        let length = usize::try_from(segment.end).unwrap() / 3;
        for (damaged, found) in [(2, Some(3)), (3, None)] {
            let before = std::fs::read(&path).unwrap();
            let mut bytes = before.clone();
            bytes[(damaged - 1) * length + 30] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            let read = find(&path);
            let last = read.records.last().map_or(0, |record| record.number);
            assert_eq!(last, damaged as u64 - 1);
            assert_eq!(read.record_above(last).map(|(at, record)| (at / length, record.number)), found.map(|n| (2, n)));
            std::fs::write(&path, before).unwrap();
        }
    }

    #[test]
    fn a_file_that_was_cut_is_read_as_far_as_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 4096).unwrap();
        (1..=3).for_each(|number| append(&mut segment, number));
        for length in 0..segment.end {
            let cut = File::options().write(true).open(&path).unwrap();
            cut.set_len(segment.end - length).unwrap();
            let whole = (segment.end - length) / (segment.end / 3);
            assert_eq!(numbers(&path).len() as u64, whole, "{length} bytes less");
        }
    }
}
