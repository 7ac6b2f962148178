//! Folders and files of a data folder: locked, made, removed and synced.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::env::DATA_FILE;
use crate::error::StorageError;
use crate::model::db_name::DbName;

/// The lock of a data folder, which ends with the process.
pub(super) struct FolderLock {
    file: File,
    /// The folder itself, in case somebody removes the file; `None` where the file system cannot lock it.
    folder: Option<File>,
}

impl FolderLock {
    pub fn take(path: &Path) -> Result<FolderLock, StorageError> {
        let file = path.join("lock");
        let lock =
            OpenOptions::new().create(true).truncate(false).write(true).open(&file).map_err(StorageError::io(&file))?;
        let folder = File::open(path).map_err(StorageError::io(path))?;
        let locked = lock.try_lock().and_then(|()| match folder.try_lock() {
            Ok(()) => Ok(Some(folder)),
            Err(TryLockError::Error(_)) => Ok(None),
            Err(in_use) => Err(in_use),
        });
        match locked {
            Ok(folder) => Ok(FolderLock { file: lock, folder }),
            Err(TryLockError::WouldBlock) => Err(StorageError::FolderInUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(StorageError::io(&file)(error)),
        }
    }

    pub fn free(&self) -> io::Result<()> {
        self.folder.as_ref().map_or(Ok(()), File::unlock).and(self.file.unlock())
    }
}

/// Makes a folder and those it is in, and syncs what names them: a new folder could be gone after a power cut, and all
/// that is in it.
pub(super) fn make_folders(folder: &Path) -> Result<(), StorageError> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    if let Some(file) = folder.ancestors().nth(missing.len()).filter(|found| !found.is_dir() && found.exists()) {
        let no_folder = io::Error::new(ErrorKind::NotADirectory, "it is a file and not a folder");
        return Err(StorageError::io(file)(no_folder));
    }
    fs::create_dir_all(folder).map_err(StorageError::io(folder))?;
    let here = Path::new(".");
    let parents = missing.iter().filter_map(|made| made.parent());
    parents.map(|parent| if parent.as_os_str().is_empty() { here } else { parent }).try_for_each(sync_folder)
}

/// How often a folder is removed: whoever checks it from outside meanwhile may put LMDB's table of readers into it once
/// more.
const REMOVE_ATTEMPTS: usize = 10;

/// Removes a database's folder for good: unsynced, it could be back after a power cut.
pub(super) fn remove_folder(databases: &Path, name: &DbName) -> Result<(), StorageError> {
    let folder = databases.join(name.folder());
    let mut attempts = 1..REMOVE_ATTEMPTS;
    loop {
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && attempts.next().is_some() => {}
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(StorageError::io(&folder)(error)),
            _ => return sync_folder(databases),
        }
    }
}

/// Syncs a database's file, if it is there.
pub(super) fn sync_data(folder: &Path) -> Result<(), StorageError> {
    let file = folder.join(DATA_FILE);
    match File::open(&file).and_then(|data| data.sync_all()) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StorageError::io(&file)(error)),
        _ => Ok(()),
    }
}

/// Makes the names of a folder's files outlive a power cut.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StorageError> {
    crate::sync_folder::sync_folder(folder).map_err(StorageError::io(folder))
}

/// Random bytes, as nobody else has them.
pub(super) fn random_bytes() -> Result<[u8; 16], StorageError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StorageError::io(Path::new("random bytes"))(error.into()))?;
    Ok(bytes)
}
