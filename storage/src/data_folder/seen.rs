//! What was seen of databases' files, since this process has the folder.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

use parking_lot::Mutex;

use crate::error::StorageError;
use crate::model::db_name::DbName;
use crate::pages::{Damage, FileState};
use crate::store::Store;

/// What databases' files were like when they were looked at last.
#[derive(Default)]
pub(super) struct SeenFiles(Mutex<HashMap<DbName, Seen>>);

/// What a file was like.
enum Seen {
    /// It was sound, and only this process has written to it since: it need not be walked through again.
    Sound,
    /// Some of it can be read.
    Damaged,
    /// Nothing of it can be read, and nothing will while it is in this state.
    Unreadable { file: PathBuf, state: FileState, damage: Box<Damage> },
}

impl Seen {
    fn is_damaged(&self) -> bool {
        !matches!(self, Seen::Sound)
    }
}

impl SeenFiles {
    /// How long a file may be that is walked through as it is opened now, if files of so many bytes are.
    ///
    /// # Errors
    /// [`StorageError::DamagedFile`] where it is known that nothing of it can be read.
    pub fn walked_bytes_max(&self, name: &DbName, bytes_max: u64) -> Result<u64, StorageError> {
        match self.0.lock().get(name) {
            Some(Seen::Sound) => Ok(0),
            // That there is no file is seen as soon as there is one.
            Some(Seen::Unreadable { file, state, damage }) if file.exists() && FileState::of(file) == *state => {
                Err(StorageError::DamagedFile { file: file.clone(), damage: damage.clone() })
            }
            _ => Ok(bytes_max),
        }
    }

    /// Takes note of what opening a file has shown.
    pub fn note_opened(&self, name: &DbName, opened: &Result<Store, StorageError>) {
        let seen = match opened {
            Ok(store) if !store.damages().is_empty() => Seen::Damaged,
            Ok(store) if store.is_verified() => Seen::Sound,
            // Nobody has looked: what was sound is, and what a read came upon is there still.
            Ok(_) => return self.forget_if(name, |seen| matches!(seen, Seen::Unreadable { .. })),
            Err(StorageError::DamagedFile { file, damage }) => {
                Seen::Unreadable { file: file.clone(), state: FileState::of(file), damage: damage.clone() }
            }
            // It is walked through the next time. What was found damaged is damaged until it has been found sound.
            Err(_) => return self.forget_if(name, |seen| matches!(seen, Seen::Sound)),
        };
        self.0.lock().insert(name.clone(), seen);
    }

    /// Takes note that a read came upon damage.
    pub fn note_damage(&self, name: &DbName) {
        self.0.lock().insert(name.clone(), Seen::Damaged);
    }

    /// Whether a file was found damaged.
    pub fn is_damaged(&self, name: &DbName) -> bool {
        self.0.lock().get(name).is_some_and(Seen::is_damaged)
    }

    /// Whether nothing of a file could be read.
    pub fn is_unreadable(&self, name: &DbName) -> bool {
        matches!(self.0.lock().get(name), Some(Seen::Unreadable { .. }))
    }

    /// How many were damaged.
    pub fn damaged(&self) -> usize {
        self.0.lock().values().filter(|seen| seen.is_damaged()).count()
    }

    /// Takes note that a file is gone.
    pub fn forget(&self, name: &DbName) {
        self.forget_if(name, |_| true);
    }

    fn forget_if(&self, name: &DbName, which: impl Fn(&Seen) -> bool) {
        if let Entry::Occupied(seen) = self.0.lock().entry(name.clone())
            && which(seen.get())
        {
            seen.remove();
        }
    }
}
