//! A segment's file as it is found, and the records in it.

use std::fs::{File, OpenOptions};
use std::io;
use std::iter::successors;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use memchr::memmem;
use rustix::fs::OFlags;

use super::blocks::{BLOCK_BYTES, Blocks, first_block};
use super::record::{self, Head, Origin};
use super::segment::{BYTES_MAX, Segment};
use crate::error::if_there;
use crate::rows::{Rows, SharedRows};

/// No log is further ahead of tables that belong to it, in commits.
const AHEAD_MAX: u64 = 1 << 32;

/// How much is read at a time, from a multiple of it on; files of tests have several such parts.
const PART_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
/// How much is read at a time of a part that the disk does not give: so much is lost where it does not give a byte.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 8 } else { 1 << 12 };

/// A segment's file, as long as it was when it was found.
#[derive(Debug)]
pub struct Found {
    bytes: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Not read yet: nobody changes it.
    InFile(Source),
    /// Read.
    InMemory(Vec<u8>, Unread),
}

/// A file to read. It was written past the page cache and is read past it, into memory that is used again and again: to
/// have the system find as much fresh memory as a log is long takes longer than to read it.
#[derive(Debug)]
struct Source {
    file: File,
    /// `None` where the file system has no such reads.
    direct: Option<File>,
}

/// The last byte that the disk did not give, and why; zeros are taken for such bytes.
type Unread = Option<(usize, Arc<io::Error>)>;

/// Records that lie one behind the other from the beginning of a file on, of one generation.
#[derive(Default)]
struct Chain {
    end: usize,
    /// The generation, and the number of the last.
    last: Option<(u64, u64)>,
    /// What stands behind it, where that may be the head of a record.
    behind: Option<Head>,
}

/// A record above a number.
pub struct Above {
    /// Where it begins.
    pub at: usize,
    pub number: u64,
    pub rows: SharedRows,
}

/// What a segment's file has above a number.
pub struct Records {
    /// The whole ones.
    pub above: Vec<Above>,
    /// That the file was made shorter since, and may have had more.
    pub cut: bool,
    /// The last byte behind these that the disk did not give.
    pub unread: Unread,
}

impl Found {
    /// Opens a segment's file that nobody changes before it was read; `None` when there is none.
    pub fn open(path: &Path) -> io::Result<Option<Found>> {
        let Some((file, bytes)) = open(path)? else { return Ok(None) };
        let direct = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits().cast_signed()).open(path).ok();
        Ok(Some(Found { bytes, content: Content::InFile(Source { file, direct }) }))
    }

    /// Reads a segment's file, which may change later, as far as the disk gives it; `None` when there is none.
    pub fn read(path: &Path) -> io::Result<Option<Found>> {
        let Some((file, bytes)) = open(path)? else { return Ok(None) };
        let mut content = vec![0; bytes];
        let unread = read_parts(&file, &mut content, 0);
        Ok(Some(Found { bytes, content: Content::InMemory(content, unread) }))
    }

    /// How long the file is, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its whole records whose numbers are above this one, wherever they lie. Up to this number the tables have
    /// everything, so that a segment which has a record above it has not been begun anew since: all of them are of one
    /// generation. What is damaged, cut off, or left of an earlier use is passed over.
    pub fn records_above(&self, origin: Origin, number: u64) -> Records {
        let (mut above, mut end_of_above, mut generation) = (Vec::new(), 0, None);
        // How far records follow each other from the beginning on, whatever their numbers, and which is the last of
        // them.
        let mut chain = Chain::default();
        let (mut passing, mut at) = (self.passing(), 0);
        while at < self.bytes {
            let head = record::head(passing.at_least(Rows::HEAD_BYTES, at));
            if at == chain.end {
                chain.behind = head;
            }
            // A head that claims more than the file has is no reason to read the rest of it into memory.
            let fits = head.filter(|head| head.record_bytes <= self.bytes - at);
            let whole = fits.and_then(|head| record::decode(origin, passing.at_least(head.record_bytes, at)));
            let Some(record) = whole else {
                at = passing.next_place(at + 1, number, generation);
                continue;
            };
            let (began, end) = (at, at + record.bytes.len());
            at = end;
            if began == chain.end && chain.last.is_none_or(|(generation, _)| generation == record.generation) {
                chain = Chain { end, last: Some((record.generation, record.number)), behind: None };
            }
            if record.number > number && generation.is_none_or(|generation| generation == record.generation) {
                (generation, end_of_above) = (Some(record.generation), end);
                above.push(Above { at: began, number: record.number, rows: record.into_rows().into() });
            }
        }
        let unread = passing.unread.filter(|(unread, _)| *unread >= end_of_above);
        Records { above, cut: self.ends_in_a_record(&chain, number), unread }
    }

    /// Whether the file was cut off behind the chain. It was where it ends before the record does whose head is there,
    /// as none is written that does not fit, or so close behind the chain that this cannot be told. A head that a power
    /// cut has torn is not taken for one: behind the record before there were zeros up to the end of its block, so a
    /// length that was not written yet, with a generation that was, is no larger than the one that was to be written.
    fn ends_in_a_record(&self, chain: &Chain, number: u64) -> bool {
        // Of a file that is as long as it was made nothing is missing that the tables do not have.
        let is_shorter = !self.bytes.is_power_of_two();
        match (&chain.behind, chain.last) {
            (None, last) => last.is_some() && is_shorter,
            (Some(head), _) if head.record_bytes <= self.bytes - chain.end => false,
            (Some(head), None) => may_be_above(number).contains(&head.number),
            (Some(head), Some((generation, last))) => {
                let from = if is_shorter { last } else { number.max(last) };
                head.generation == generation && may_be_above(from).contains(&head.number)
            }
        }
    }

    /// Opens its file for writing over it. Nothing is written behind what was found, which may end in a record that is
    /// torn; its last record is at most this one.
    pub fn into_segment(self, path: &Path, last: u64) -> io::Result<Segment> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Segment::found(path, file, Blocks::whole(self.bytes as u64), last))
    }

    fn passing(&self) -> Passing<'_> {
        let unread = match &self.content {
            Content::InFile(_) => None,
            Content::InMemory(_, unread) => unread.clone(),
        };
        Passing { found: self, buffer: Vec::new(), window: 0..0, begin: 0, unread }
    }

    /// Reads a part of it. Gives the last byte of that which the disk did not give, and why.
    fn read_at(&self, part: &mut [u8], at: usize) -> Unread {
        match &self.content {
            Content::InFile(source) => source.read_at(part, at),
            Content::InMemory(content, _) => {
                part.copy_from_slice(&content[at..at + part.len()]);
                None
            }
        }
    }
}

/// What is read of a segment's file, in order: each part once, and no longer kept than needed.
struct Passing<'f> {
    found: &'f Found,
    buffer: Vec<u8>,
    /// Where in the buffer that lies which is at hand, and where in the file it begins.
    window: Range<usize>,
    begin: usize,
    unread: Unread,
}

impl Passing<'_> {
    /// So many bytes from a place on, or all up to the end, and what else is at hand. What lies before the place cannot
    /// be asked for again.
    fn at_least(&mut self, least: usize, at: usize) -> &[u8] {
        let (end, all) = (self.begin + self.window.len(), self.found.bytes);
        let wanted = at.saturating_add(least).min(all);
        if wanted > end {
            let more = wanted.max(end + PART_BYTES).next_multiple_of(PART_BYTES).min(all) - end;
            let found = self.found;
            let unread = found.read_at(self.room_behind(at, more), end);
            self.unread = unread.or(self.unread.take());
        }
        &self.buffer[self.window.clone()][at - self.begin..]
    }

    /// Room for so many bytes more behind those at hand from a place on; others are forgotten. It begins where the disk
    /// can put bytes past the page cache.
    fn room_behind(&mut self, at: usize, more: usize) -> &mut [u8] {
        let kept = self.window.start + at - self.begin..self.window.end;
        let (kept_bytes, most) = (kept.len(), kept.len() + BLOCK_BYTES + more);
        if self.buffer.len() < most {
            self.buffer.resize(most.next_power_of_two(), 0);
        }
        let block = first_block(&self.buffer);
        let room = block + kept_bytes.saturating_sub(block).next_multiple_of(BLOCK_BYTES);
        self.buffer.copy_within(kept, room - kept_bytes);
        (self.window, self.begin) = (room - kept_bytes..room + more, at);
        &mut self.buffer[room..room + more]
    }

    /// The next place where a record above this number may begin, by what it would have there: a look at each place is
    /// quick, reading a record is not. By its generation, where that is known, it is found still faster.
    fn next_place(&mut self, mut from: usize, number: u64, generation: Option<u64>) -> usize {
        let (numbers, all) = (may_be_above(number), self.found.bytes);
        while from < all {
            let bytes = self.at_least(PART_BYTES, from);
            if let Some(at) = place_of_head(bytes, &numbers, generation) {
                return from + at;
            }
            // Where the bytes at hand end within a head it is looked at with those that follow.
            from = if from + bytes.len() == all { all } else { from + bytes.len() - (Rows::HEAD_BYTES - 1) };
        }
        all
    }
}

/// The first place among these bytes where they have what the head of a record with such a number has, and of this
/// generation, where one is known.
fn place_of_head(bytes: &[u8], numbers: &RangeInclusive<u64>, generation: Option<u64>) -> Option<usize> {
    const NUMBER_BYTES: usize = size_of::<u64>();
    let is_number = |field: &[u8]| {
        let number = field.first_chunk::<NUMBER_BYTES>();
        number.is_some_and(|number| numbers.contains(&u64::from_be_bytes(*number)))
    };
    let Some(generation) = generation else {
        return bytes.get(record::NUMBER_AT..)?.windows(NUMBER_BYTES).position(is_number);
    };
    let (fields, generation) = (bytes.get(record::GENERATION_AT..)?, generation.to_be_bytes());
    let next = |from: usize| Some(from + memmem::find(fields.get(from..)?, &generation)?);
    successors(next(0), |at| next(at + 1)).find(|at| is_number(&bytes[at + record::NUMBER_AT..]))
}

impl Source {
    /// Reads a part of it, as far as the disk gives that.
    fn read_at(&self, part: &mut [u8], at: usize) -> Unread {
        let is_read = self.direct.as_ref().is_some_and(|direct| direct.read_exact_at(part, at as u64).is_ok());
        if is_read { None } else { read_parts(&self.file, part, at) }
    }
}

/// Opens a segment's file, if there is one; gives how much of it there is to read as well.
fn open(path: &Path) -> io::Result<Option<(File, usize)>> {
    let Some(file) = if_there(File::open(path))? else { return Ok(None) };
    let bytes = usize::try_from(file.metadata()?.len().min(BYTES_MAX)).unwrap_or(0);
    Ok(Some((file, bytes)))
}

/// Reads a part of a file, as far as the disk gives it.
fn read_parts(file: &File, part: &mut [u8], at: usize) -> Unread {
    let mut unread = None;
    for (number, part) in part.chunks_mut(PART_BYTES).enumerate() {
        let at = at + number * PART_BYTES;
        if file.read_exact_at(part, at as u64).is_err() {
            unread = read_pieces(file, part, at).or(unread);
        }
    }
    unread
}

/// Reads a part of a file piece by piece.
fn read_pieces(file: &File, part: &mut [u8], at: usize) -> Unread {
    let mut unread = None;
    for (number, piece) in part.chunks_mut(PIECE_BYTES).enumerate() {
        let at = at + number * PIECE_BYTES;
        match file.read_exact_at(piece, at as u64) {
            // Beside a server it may have become shorter.
            Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => piece.fill(0),
            Err(why) => {
                piece.fill(0);
                unread = Some((at + piece.len() - 1, Arc::new(why)));
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
