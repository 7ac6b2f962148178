//! The log that `recorder/recorder.c` writes: what the server asked of its disk and sent over its sockets, in one
//! order.
//!
//! A *moment* is a place in that order: the number of records before it. A change begins at one moment and ends at a
//! later one; in between it may be on disk, in part, or not.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;

/// A place in the order of records.
pub type Moment = usize;

/// A file or folder, as device and inode number; a number is used again once its file is gone.
pub type Inode = (u64, u64);

/// What happened.
pub enum Event {
    /// Bytes were written. On a descriptor opened with `O_DSYNC` they are on disk when the call returns.
    Write { file: Inode, offset: usize, data: Vec<u8>, synced: bool },
    /// A file got a new length.
    Truncate { file: Inode, length: usize },
    /// A file's bytes and length, or a folder's names, were synced.
    Sync { of: Inode },
    /// A file was made.
    Create { path: String, made: Inode },
    /// A folder was made.
    Folder { path: String, made: Inode },
    /// A file got another name.
    Rename { from: String, to: String },
    /// A name was removed.
    Remove { path: String },
    /// Bytes are about to be sent over a socket.
    Sent { data: Vec<u8> },
    /// The test put this in the log.
    Mark { text: String },
}

/// What happened, and when.
pub struct Record {
    pub begin: Moment,
    /// Past all moments for a call that did not return.
    pub end: Moment,
    pub event: Event,
}

/// The whole log; calls that failed are not in it.
pub struct Log {
    pub records: Vec<Record>,
    /// How many moments there are.
    pub moments: Moment,
}

const END: u32 = 0;
const MARK: u32 = 9;
const HEADER_BYTES: usize = 56;

/// `struct record` of `recorder.c`, with what follows it.
struct Raw<'a> {
    kind: u32,
    synced: bool,
    number: u64,
    inode: Inode,
    offset: i64,
    result: i64,
    data: &'a [u8],
}

impl Raw<'_> {
    /// Takes the first record off the front of `bytes`.
    fn take<'a>(bytes: &mut &'a [u8]) -> Raw<'a> {
        let (header, rest) = bytes.split_at(HEADER_BYTES);
        let word = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (data, rest) = rest.split_at(size(word(48)));
        *bytes = rest;
        Raw {
            kind: half(0),
            synced: half(4) != 0,
            number: word(8),
            inode: (word(16), word(24)),
            offset: word(32).cast_signed(),
            result: word(40).cast_signed(),
            data,
        }
    }
}

/// How a call ended.
struct End {
    at: Moment,
    result: i64,
    made: Inode,
}

impl Log {
    /// Reads a log.
    ///
    /// # Panics
    /// When it is no log, or cut short.
    pub fn parse(mut bytes: &[u8]) -> Log {
        let mut raw = Vec::new();
        while !bytes.is_empty() {
            raw.push(Raw::take(&mut bytes));
        }
        let moments = raw.len();
        let ended = raw.iter().enumerate().filter(|(_, record)| record.kind == END);
        let ends: HashMap<u64, End> =
            ended.map(|(at, end)| (end.number, End { at, result: end.result, made: end.inode })).collect();
        let begun = raw.iter().enumerate().filter(|(_, record)| record.kind != END);
        let records = begun.filter_map(|(begin, raw)| record(begin, raw, ends.get(&raw.number), moments)).collect();
        Log { records, moments }
    }

    /// This log, and behind it that of a process that came upon the same files. Syncs that this one's process did not
    /// live to see the end of count for nothing.
    pub fn followed_by(mut self, next: Log) -> Log {
        let before = self.moments;
        self.records.retain(|record| record.end < before || !matches!(record.event, Event::Sync { .. }));
        for record in self.records.iter_mut().filter(|record| record.end >= before) {
            if let Event::Write { synced, .. } = &mut record.event {
                *synced = false;
            }
        }
        let later = |record: Record| Record { begin: record.begin + before, end: record.end + before, ..record };
        self.records.extend(next.records.into_iter().map(later));
        Log { records: self.records, moments: before + next.moments }
    }
}

/// None for a call that failed: it changed nothing.
fn record(begin: Moment, raw: &Raw<'_>, end: Option<&End>, moments: Moment) -> Option<Record> {
    if end.is_some_and(|end| end.result < 0) {
        return None;
    }
    let made = end.map_or((0, 0), |end| end.made);
    let written = end.map_or(raw.data.len(), |end| size(end.result.unsigned_abs()).min(raw.data.len()));
    let offset = size(raw.offset.unsigned_abs());
    let event = match raw.kind {
        1 => Event::Write { file: raw.inode, offset, data: raw.data[..written].to_vec(), synced: raw.synced },
        2 => Event::Truncate { file: raw.inode, length: offset },
        3 => Event::Sync { of: raw.inode },
        4 => Event::Create { path: path(raw.data, 0), made },
        5 => Event::Folder { path: path(raw.data, 0), made },
        6 => Event::Rename { from: path(raw.data, 0), to: path(raw.data, 1) },
        7 => Event::Remove { path: path(raw.data, 0) },
        8 => Event::Sent { data: raw.data.to_vec() },
        MARK => Event::Mark { text: path(raw.data, 0) },
        other => panic!("the log has a record of kind {other}"),
    };
    let at_once = matches!(event, Event::Sent { .. } | Event::Mark { .. });
    Some(Record { begin, end: if at_once { begin } else { end.map_or(moments, |end| end.at) }, event })
}

fn path(data: &[u8], which: usize) -> String {
    let text = data.split(|&byte| byte == 0).nth(which).expect("a path");
    String::from_utf8(text.to_vec()).expect("a path in UTF-8")
}

fn size(number: u64) -> usize {
    usize::try_from(number).expect("a 64-bit machine")
}

/// Appends a mark to the log that a server under the recorder is writing.
///
/// # Panics
/// When the log cannot be written.
pub fn mark(mut log: &File, text: &str) {
    let mut record = vec![0; HEADER_BYTES];
    record[..4].copy_from_slice(&MARK.to_ne_bytes());
    record[48..].copy_from_slice(&(text.len() as u64).to_ne_bytes());
    record.extend_from_slice(text.as_bytes());
    assert_eq!(log.write(&record).expect("the log is open"), record.len(), "a mark is one append");
}
