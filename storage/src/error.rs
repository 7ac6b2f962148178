//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use rustix::io::Errno;

use crate::codec::Malformed;
use crate::pages::Damage;
use crate::tables::Table;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// A row does not read as it should.
    #[error("damaged row in table {table}, key {key}: {what}")]
    Damaged {
        /// The table's name.
        table: &'static str,
        /// The row's key: text where it is text, else hexadecimal.
        key: String,
        /// What is wrong with it.
        #[source]
        what: Malformed,
    },
    /// A row that another row speaks of is not there.
    #[error("missing row in table {table}, key {key}")]
    Missing {
        /// The table's name.
        table: &'static str,
        /// The row's key.
        key: String,
    },
    /// Part of a database's file is damaged, and with it what was asked for.
    #[error("{file} is damaged: {damage}")]
    DamagedFile {
        /// The file.
        file: PathBuf,
        /// Where it is damaged, and what that costs.
        damage: Box<Damage>,
    },
    /// A database's file is damaged, so that it is not written to. Nothing of the batch was written; reading goes on.
    #[error("{file} is damaged and can only be read ({damages} damages, the first: {first})")]
    ReadOnly {
        /// The file.
        file: PathBuf,
        /// The first damage.
        first: String,
        /// How many there are.
        damages: usize,
    },
    /// The disk, or what this user may have of it, is full. Nothing of the batch was written; reading goes on.
    #[error("no space left on the disk, nothing was written: {source}")]
    DiskFull {
        /// What the system said.
        source: io::Error,
    },
    /// The memory map is as large as it may be, and full. Nothing of the batch was written; reading and deleting go on.
    #[error("the database is full, nothing was written: it may take {map_bytes_max} bytes (`storage.map_bytes_max`)")]
    MapFull {
        /// The largest map allowed.
        map_bytes_max: usize,
    },
    /// The disk failed to write or to sync. Nothing of the batch was written; reading goes on, and writing when the
    /// disk works again.
    #[error("the disk failed, nothing was written: {source}")]
    DiskFailed {
        /// What the system said.
        source: io::Error,
    },
    /// The disk failed while a commit was made final, and again while that was undone. Until it works again nothing is
    /// written and reading shows the state before the batch, but after a power cut all of the batch may be there.
    #[error("the disk failed, it is not known whether this was written: {source}")]
    InDoubt {
        /// What the system said.
        source: io::Error,
    },
    /// The disk failed, and the database could not be opened again yet.
    #[error("the database is closed until its disk works again")]
    Closed,
    /// Written by a newer Seqtide.
    #[error("{path} has file format {found}; this version reads up to {known}")]
    NewerFormat {
        /// The store's folder.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that is known.
        known: u64,
    },
    /// Another process has the data folder, or this one has it already.
    #[error("the data folder {path} is in use already, by another process or by this one")]
    FolderInUse {
        /// The data folder.
        path: PathBuf,
    },
    /// A panic while a batch was written. Nothing of it was.
    #[error("writing failed: {what}")]
    Panicked {
        /// The panic's message.
        what: String,
    },
    /// A panic between the sync of a commit and its being seen, of which half may be in memory: until the database is
    /// opened again, which shows whether all of it was written, nothing is read or written.
    #[error("a panic broke off a commit, and nothing is read or written until the database is opened again: {what}")]
    BrokenOff {
        /// The panic's message.
        what: String,
    },
    /// LMDB failed.
    #[error("LMDB: {0}")]
    Lmdb(#[source] heed::Error),
    /// The file system failed.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StorageError {
    /// Whether what was asked for is damaged: asking for something else may well go right.
    pub fn is_damage(&self) -> bool {
        use StorageError::{Damaged, DamagedFile, Missing};
        matches!(self, Damaged { .. } | Missing { .. } | DamagedFile { .. })
    }

    /// Whether a row of a table is damaged, or one that another row speaks of is not there.
    pub fn is_damage_of(&self, of: Table) -> bool {
        use StorageError::{Damaged, Missing};
        matches!(self, Damaged { table, .. } | Missing { table, .. } if *table == of.name())
    }

    /// Whether this process, or the system, has as many files open as it may. Closing a database makes room for
    /// another.
    pub fn is_too_many_files(&self) -> bool {
        use StorageError::{DiskFailed, InDoubt, Io, Lmdb};
        let (Io { source, .. } | DiskFailed { source } | InDoubt { source } | Lmdb(heed::Error::Io(source))) = self
        else {
            return false;
        };
        let errno = Errno::from_io_error(source);
        matches!(errno, Some(Errno::MFILE | Errno::NFILE))
    }

    /// Whether all slots of readers are taken.
    pub(crate) fn is_too_many_readers(&self) -> bool {
        matches!(self, StorageError::Lmdb(heed::Error::Mdb(heed::MdbError::ReadersFull)))
    }

    pub(crate) fn damaged(table: Table, key: &[u8], what: Malformed) -> StorageError {
        StorageError::Damaged { table: table.name(), key: printable(key), what }
    }

    pub(crate) fn missing(table: Table, key: &[u8]) -> StorageError {
        StorageError::Missing { table: table.name(), key: printable(key) }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StorageError + '_ {
        move |source| match is_full(&source) {
            true => StorageError::DiskFull { source },
            false => StorageError::Io { path: path.to_owned(), source },
        }
    }

    /// Of a commit that had to come first: the write that waited for it was not begun.
    pub(crate) fn of_an_earlier_one(self) -> StorageError {
        match self {
            StorageError::InDoubt { source } => StorageError::disk(source),
            other => other,
        }
    }

    /// For a write that is not begun because of this, which is kept for others.
    pub(crate) fn again(&self) -> StorageError {
        let copy = |source: &io::Error| match source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(source.kind(), source.to_string()),
        };
        match self {
            StorageError::DiskFull { source } => StorageError::DiskFull { source: copy(source) },
            StorageError::MapFull { map_bytes_max } => StorageError::MapFull { map_bytes_max: *map_bytes_max },
            StorageError::DiskFailed { source } => StorageError::DiskFailed { source: copy(source) },
            StorageError::Panicked { what } => StorageError::Panicked { what: what.clone() },
            StorageError::Closed => StorageError::Closed,
            other => StorageError::DiskFailed { source: io::Error::other(other.to_string()) },
        }
    }

    /// Of a write that failed.
    pub(crate) fn disk(source: io::Error) -> StorageError {
        if is_full(&source) { StorageError::DiskFull { source } } else { StorageError::DiskFailed { source } }
    }
}

impl From<heed::Error> for StorageError {
    fn from(error: heed::Error) -> StorageError {
        match error {
            heed::Error::Io(source) if is_full(&source) => StorageError::DiskFull { source },
            other => StorageError::Lmdb(other),
        }
    }
}

/// What was read; `None` where that is damaged, for who passes over it as over what was taken out.
pub(crate) fn unless_damaged<T>(read: Result<T, StorageError>) -> Result<Option<T>, StorageError> {
    match read {
        Err(error) if error.is_damage() => Ok(None),
        read => read.map(Some),
    }
}

/// What was opened or read; `None` where it is not there.
pub(crate) fn if_there<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Whether an error says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// A key in words: text where it is text, else hexadecimal.
pub(crate) fn printable(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}"),
        _ => HEXLOWER.encode(key),
    }
}
