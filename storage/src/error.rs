//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

use crate::codec::Malformed;
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
    /// The disk is full. Nothing of the batch was written; reading goes on.
    #[error("no space left on the disk")]
    DiskFull,
    /// The memory map is full and cannot grow further. Nothing of the batch was written; reading goes on.
    #[error("the database is full: its map of {map_bytes} bytes cannot grow")]
    MapFull {
        /// The size of the map.
        map_bytes: usize,
    },
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
    /// Another process has the data folder.
    #[error("the data folder {path} is in use by another process")]
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
    pub(crate) fn damaged(table: Table, key: &[u8], what: Malformed) -> StorageError {
        StorageError::Damaged { table: table.name(), key: printable(key), what }
    }

    pub(crate) fn missing(table: Table, key: &[u8]) -> StorageError {
        StorageError::Missing { table: table.name(), key: printable(key) }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StorageError + '_ {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull => StorageError::DiskFull,
            _ => StorageError::Io { path: path.to_owned(), source },
        }
    }
}

impl From<heed::Error> for StorageError {
    fn from(error: heed::Error) -> StorageError {
        match error {
            heed::Error::Io(source) if source.kind() == io::ErrorKind::StorageFull => StorageError::DiskFull,
            other => StorageError::Lmdb(other),
        }
    }
}

fn printable(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}"),
        _ => key.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
