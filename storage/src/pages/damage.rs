//! What is wrong with a page, and what that costs.

use std::fmt;
use std::io;
use std::ops::Bound;

use crate::error::{StorageError, printable};
use crate::tables::Table;

/// A place of a file that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The place.
    pub at: At,
    /// What is wrong with it.
    pub what: String,
    /// What cannot be read because of it.
    pub lost: Lost,
}

/// Where a damage is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// A page of LMDB's file.
    Page(u64),
    /// A byte of a file of the log.
    Log(&'static str, u64),
}

/// What a damage takes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Nothing: every row is still read. Writing there would not be safe.
    Nothing,
    /// The rows between two keys of a table that are still read.
    Keys {
        /// The table.
        table: Table,
        /// The last key before.
        after: Bound<Vec<u8>>,
        /// The first key behind.
        before: Bound<Vec<u8>>,
    },
    /// These tables.
    Tables(Vec<Table>),
    /// The newest writes, beginning with this record of the log.
    Newest(u64),
    /// The writes that are in the log alone, if there are any.
    Log,
    /// All of it.
    Database,
}

impl Damage {
    pub(super) fn harmless(page: u64, what: impl Into<String>) -> Damage {
        Damage { at: At::Page(page), what: what.into(), lost: Lost::Nothing }
    }

    /// That the file with the tables is not there, or empty, though the log in front of it is.
    pub(crate) fn of_lost_tables() -> Damage {
        Damage::of_database(0, "the file is empty or not there, but a log that belongs to it is")
    }

    pub(super) fn of_database(page: u64, what: impl Into<String>) -> Damage {
        Damage { at: At::Page(page), what: what.into(), lost: Lost::Database }
    }

    /// That a file of the log has a record at this byte, but none of those from another on.
    pub(crate) fn of_log(file: &'static str, byte: u64, has: u64, misses: u64) -> Damage {
        let what = format!("record {has} is there, but record {misses}, written before it, is missing or damaged");
        Damage { at: At::Log(file, byte), what, lost: Lost::Newest(misses) }
    }

    /// That the disk does not give this byte of a file of the log, where records from this one on may be.
    pub(crate) fn of_unread_log(file: &'static str, byte: u64, why: &io::Error, misses: u64) -> Damage {
        Damage { at: At::Log(file, byte), what: format!("cannot be read: {why}"), lost: Lost::Newest(misses) }
    }

    /// That a file of the log ends at this byte, and with it a record from which on all are missing.
    pub(crate) fn of_cut_log(file: &'static str, end: u64, misses: u64) -> Damage {
        let what = "the file ends here, in a record or close behind one, and was longer".to_owned();
        Damage { at: At::Log(file, end), what, lost: Lost::Newest(misses) }
    }

    /// Of a log that begins with this file and is of no use, as it cannot be told which of its records the tables have.
    pub(crate) fn of_whole_log(file: &'static str, why: &StorageError) -> Damage {
        let what = format!("it is not known which records the tables have: {why}");
        Damage { at: At::Log(file, 0), what, lost: Lost::Log }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.at, self.what, self.lost)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Page(page) => write!(f, "page {page}"),
            At::Log(file, byte) => write!(f, "{file}, byte {byte}"),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Nothing => f.write_str("everything can still be read"),
            Lost::Newest(record) => write!(f, "writes from record {record} of the log on are lost"),
            Lost::Log => f.write_str("writes that are in the log alone are lost"),
            Lost::Database => f.write_str("nothing of the database can be read"),
            Lost::Tables(tables) => {
                let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
                write!(f, "nothing can be read of: {}", names.join(", "))
            }
            Lost::Keys { table, after, before } => write_keys(f, *table, after, before),
        }
    }
}

fn write_keys(
    f: &mut fmt::Formatter<'_>,
    table: Table,
    after: &Bound<Vec<u8>>,
    before: &Bound<Vec<u8>>,
) -> fmt::Result {
    let key = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(printable(key)),
        Bound::Unbounded => None,
    };
    let name = table.name();
    match (key(after), key(before)) {
        (None, None) => write!(f, "table {name} cannot be read"),
        (Some(after), None) => write!(f, "table {name} cannot be read after key {after}"),
        (None, Some(before)) => write!(f, "table {name} cannot be read before key {before}"),
        (Some(after), Some(before)) => write!(f, "table {name} cannot be read between keys {after} and {before}"),
    }
}
