//! A segment of the log: a file that is filled with zeros before it is used, and used again and again. To write over
//! what is there costs one small sync; of a file that grows the new length has to be synced as well.

use std::fs::{File, OpenOptions};
use std::io;
use std::iter::successors;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::blocks::Blocks;
use super::record::{self, Origin, PREFIX_BYTES};
use crate::rows::Rows;
use crate::sync_folder::sync_folder;

/// The first segments of a database are small, as there may be many databases; those of tests are soon full. Each
/// length is a power of two, so that a file that was cut off is known by its length.
pub const BYTES_MIN: u64 = if cfg!(test) { 1 << 12 } else { 1 << 20 };
/// No segment is larger: what is replayed after a crash is at most two of them.
pub const BYTES_MAX: u64 = 64 << 20;

/// No log is further ahead of tables that belong to it, in commits.
const AHEAD_MAX: u64 = 1 << 32;

/// How much is read at a time.
const PART_BYTES: usize = 1 << 20;
/// How much is read at a time of a part that the disk does not give: so much is lost where it does not give a byte.
const PIECE_BYTES: usize = 4096;

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

/// What a segment's file was found to hold.
#[derive(Debug)]
pub struct Found {
    content: Vec<u8>,
    /// The last byte of it that the disk did not give, and why: zeros are in the place of such bytes.
    unread: Option<(usize, io::Error)>,
}

/// Records that lie one behind the other from the beginning of a file on, of one generation.
#[derive(Default)]
struct Chain {
    end: usize,
    /// The generation, and the number of the last.
    last: Option<(u64, u64)>,
}

/// A record above a number.
#[derive(Debug)]
pub struct Above {
    /// Where it lies.
    pub place: Range<usize>,
    pub number: u64,
    pub rows: Rows,
}

/// What a segment's file has above a number.
#[derive(Debug)]
pub struct Records {
    /// The whole ones.
    pub above: Vec<Above>,
    /// That the file was made shorter since, and may have had more.
    pub cut: bool,
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

impl Found {
    /// Reads a segment's file, as far as the disk gives it; `None` when there is none. Nothing is changed.
    pub fn read(path: &Path) -> io::Result<Option<Found>> {
        let file = match File::open(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let length = file.metadata()?.len().min(BYTES_MAX);
        let mut found = Found { content: vec![0; usize::try_from(length).unwrap_or(0)], unread: None };
        for (number, part) in found.content.chunks_mut(PART_BYTES).enumerate() {
            let at = number * PART_BYTES;
            if file.read_exact_at(part, at as u64).is_err() {
                found.unread = read_pieces(&file, part, at).or(found.unread);
            }
        }
        Ok(Some(found))
    }

    /// How long the file is, in bytes.
    pub fn bytes(&self) -> usize {
        self.content.len()
    }

    /// The last byte behind this one that the disk did not give, and why.
    pub fn unread_behind(&self, at: usize) -> Option<(usize, &io::Error)> {
        self.unread.as_ref().map(|(unread, why)| (*unread, why)).filter(|(unread, _)| *unread >= at)
    }

    /// Its whole records whose numbers are above this one, wherever they lie, and where they do. Up to this number the
    /// tables have everything, so that a segment which has a record above it has not been begun anew since: all of them
    /// are of one generation. What is damaged, cut off, or left of an earlier use is passed over.
    pub fn records_above(&self, origin: Origin, number: u64) -> Records {
        let (mut above, mut generation) = (Vec::new(), None);
        // How far records follow each other from the beginning on, whatever their numbers, and which is the last of
        // them.
        let mut chain = Chain::default();
        let mut at = 0;
        while at < self.content.len() {
            match record::decode(origin, &self.content[at..]) {
                Some(record) => {
                    let end = at + record.bytes.len();
                    if at == chain.end && chain.last.is_none_or(|(generation, _)| generation == record.generation) {
                        chain = Chain { end, last: Some((record.generation, record.number)) };
                    }
                    if record.number > number && generation.is_none_or(|generation| generation == record.generation) {
                        generation = Some(record.generation);
                        above.push(Above { place: at..end, number: record.number, rows: record.into_rows() });
                    }
                    at = end;
                }
                None => at = self.next_place(at + 1, number, generation),
            }
        }
        Records { above, cut: self.ends_in_a_record(&chain, number) }
    }

    /// Whether the file was cut off behind the chain. It was where it ends before the record does whose head is there,
    /// as none is written that does not fit, or so close behind the chain that this cannot be told. A head that a power
    /// cut has torn is not taken for one: behind the record before there were zeros up to the end of its block, so a
    /// length that was not written yet, with a generation that was, is no larger than the one that was to be written.
    fn ends_in_a_record(&self, chain: &Chain, number: u64) -> bool {
        let rest = &self.content[chain.end..];
        // Of a file that is as long as it was made nothing is missing that the tables do not have.
        let is_shorter = !self.content.len().is_power_of_two();
        match (record::head(rest), chain.last) {
            (None, last) => last.is_some() && is_shorter,
            (Some(head), _) if head.record_bytes <= rest.len() => false,
            (Some(head), None) => may_be_above(number).contains(&head.number),
            (Some(head), Some((generation, last))) => {
                let from = if is_shorter { last } else { number.max(last) };
                head.generation == generation && may_be_above(from).contains(&head.number)
            }
        }
    }

    /// The next place where a record above this number may begin, by what it would have there: a look at each place is
    /// quick, reading a record is not. By its generation, where that is known, it is found still faster.
    fn next_place(&self, from: usize, number: u64, generation: Option<u64>) -> usize {
        let numbers = may_be_above(number);
        let may_be = |at: usize| {
            let field = self.content[at + record::NUMBER_AT..].first_chunk();
            field.is_some_and(|number| numbers.contains(&u64::from_be_bytes(*number)))
        };
        let next = |from: usize| {
            let fields = self.content.get(from + record::GENERATION_AT..)?;
            match generation {
                Some(generation) => Some(from + memmem::find(fields, &generation.to_be_bytes())?),
                None => Some(from).filter(|_| fields.len() > record::NUMBER_AT - record::GENERATION_AT),
            }
        };
        let mut places = successors(next(from), |at| next(at + 1));
        places.find(|at| may_be(*at)).unwrap_or(self.content.len())
    }

    /// Makes this part of it outlive a power cut, as whoever wrote it may have ended before it was synced. It is
    /// written once more first: a sync that failed may have left it in memory as if it were on the disk, and the next
    /// sync would say nothing.
    pub fn keep(&self, path: &Path, part: Range<usize>) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.write_all_at(&self.content[part.clone()], part.start as u64)?;
        file.sync_data()
    }

    /// Opens its file for writing over it. Nothing is written behind what was found, which may end in a record that is
    /// torn; its last record is at most this one.
    pub fn into_segment(self, path: &Path, last: u64) -> io::Result<Segment> {
        let file = OpenOptions::new().write(true).open(path)?;
        let bytes = Blocks::whole(self.content.len() as u64);
        Ok(Segment { path: path.to_owned(), blocks: Blocks::new(file), bytes, generation: 0, last })
    }
}

/// Reads this part of a file piece by piece. Gives the last byte that the disk does not give, and why.
fn read_pieces(file: &File, part: &mut [u8], at: usize) -> Option<(usize, io::Error)> {
    let mut unread = None;
    for (number, piece) in part.chunks_mut(PIECE_BYTES).enumerate() {
        let at = at + number * PIECE_BYTES;
        match file.read_exact_at(piece, at as u64) {
            // Beside a server it may have become shorter.
            Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(why) => {
                piece.fill(0);
                unread = Some((at + piece.len() - 1, why));
            }
            Ok(()) => {}
        }
    }
    unread
}

/// What numbers records above this one may have.
fn may_be_above(number: u64) -> RangeInclusive<u64> {
    number + 1..=number.saturating_add(AHEAD_MAX)
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
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::codec::meta::Identity;
    use crate::model::sequence::SeqFormat;
    use crate::tables::Table;

    fn origin(uuid: u8) -> Origin {
        Origin::of(&Identity { uuid: [uuid; 16], created_secs: 0, seq_format: SeqFormat::Integer })
    }

    fn append(segment: &mut Segment, number: u64) {
        let mut rows = Rows::default();
        rows.put(Table::Docs, format!("d{number}"), vec![1; 100]);
        segment.append(number, record::encode(origin(1), segment.generation(), number, &mut rows)).unwrap();
    }

    fn numbers_above(path: &Path, uuid: u8, above: u64) -> Vec<u64> {
        let found = Found::read(path).unwrap().unwrap().records_above(origin(uuid), above);
        found.above.iter().map(|record| record.number).collect()
    }

    fn numbers(path: &Path) -> Vec<u64> {
        numbers_above(path, 1, 0)
    }

    #[test]
    fn what_was_appended_is_found_and_stale_records_behind_it_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(Found::read(&path).unwrap().is_none());
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
    fn nobody_else_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        Segment::make(&path, 4096).unwrap();
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
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
    fn what_lies_around_a_damaged_record_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 4096).unwrap();
        (1..=4).for_each(|number| append(&mut segment, number));
        let length = usize::try_from(segment.blocks.end()).unwrap() / 4;
        let whole = std::fs::read(&path).unwrap();
        for damaged in 1..=4 {
            // Its length, its checksum, its generation, its number, and a row.
            for byte in [2, 5, 9, 23, 30] {
                let mut bytes = whole.clone();
                bytes[(damaged - 1) * length + byte] ^= 1;
                std::fs::write(&path, bytes).unwrap();
                for above in 0..4 {
                    let expected: Vec<u64> = (above + 1..=4).filter(|number| *number != damaged as u64).collect();
                    assert_eq!(numbers_above(&path, 1, above), expected, "record {damaged}, byte {byte}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_was_made_shorter_in_or_close_behind_its_records_is_known_by_it() {
        for above in [0, 3, 5] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            let mut segment = Segment::make(&path, 4096).unwrap();
            // What is left of an earlier use.
            (1..=9).for_each(|number| append(&mut segment, number));
            segment.restart().unwrap();
            (10..=14).for_each(|number| append(&mut segment, number));
            let end = usize::try_from(segment.blocks.end()).unwrap();
            let whole = std::fs::read(&path).unwrap();
            for length in 0..=whole.len() {
                std::fs::write(&path, &whole[..length]).unwrap();
                let cut = Found::read(&path).unwrap().unwrap().records_above(origin(1), 9 + above).cut;
                let first = end / 5;
                let next_is_above = (length / first) as u64 >= above;
                let expected = match length % first {
                    // Less than the head of the first record, or more than zeros behind the last.
                    _ if length < Rows::HEAD_BYTES || length >= end + Rows::HEAD_BYTES => false,
                    // The first record, which the tables may have.
                    _ if length < first => next_is_above,
                    rest => !length.is_power_of_two() || (rest >= Rows::HEAD_BYTES && next_is_above),
                };
                assert_eq!(cut, expected, "{length} bytes of {end}, above {above}");
            }
        }
    }

    #[test]
    fn another_database_s_records_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 4096).unwrap();
        (1..=3).for_each(|number| append(&mut segment, number));
        assert_eq!((numbers_above(&path, 1, 1), numbers_above(&path, 2, 1)), (vec![2, 3], vec![]));
    }

    #[test]
    fn a_file_that_was_cut_is_read_as_far_as_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut segment = Segment::make(&path, 4096).unwrap();
        (1..=3).for_each(|number| append(&mut segment, number));
        for length in 0..segment.blocks.end() {
            let cut = File::options().write(true).open(&path).unwrap();
            cut.set_len(segment.blocks.end() - length).unwrap();
            let whole = (segment.blocks.end() - length) / (segment.blocks.end() / 3);
            assert_eq!(numbers(&path).len() as u64, whole, "{length} bytes less");
        }
    }
}
