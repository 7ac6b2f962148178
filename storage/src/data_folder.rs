//! The data folder: its lock, its catalogue of databases, and their folders.
//!
//! ```text
//! seqtide-data/
//!   lock             held by the one process that has the folder
//!   catalogue.json   server uuid; names, incarnations; floors of names that are gone
//!   databases/NAME/  one LMDB environment a database, NAME escaped
//! ```

mod catalogue;
mod files;
mod seen;
mod updates;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use parking_lot::{Mutex, RwLock};

use self::catalogue::{Catalogue, Entry, FLOORS_MAX};
use self::files::{FolderLock, make_folders, random_bytes, remove_folder, sync_data, sync_folder};
use self::seen::SeenFiles;
use crate::codec::meta::Identity;
use crate::env::Durability;
use crate::error::{StorageError, unless_damaged};
use crate::model::db_name::DbName;
use crate::model::sequence::{SeqFormat, Sequence};
use crate::notice::{NewIncarnation, Notice};
use crate::store::{Birth, Store, StoreOptions, has_tables};
use crate::updates::{UpdateKind, UpdateLog};

/// The data folder, held by this process.
pub struct DataFolder {
    /// Without symbolic links, from the root on: it is the folder that was locked, whatever its name means later.
    path: PathBuf,
    options: StoreOptions,
    /// What the catalogue says. Each request asks it, so that nobody waits here for the disk.
    catalogue: RwLock<Arc<Catalogue>>,
    /// Held by who changes the catalogue, while the disk takes it.
    changing: Mutex<()>,
    updates: UpdateLog,
    seen: SeenFiles,
    lock: FolderLock,
}

/// What the catalogue of a data folder says of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// It is there.
    Made {
        /// Another one for each that is made under its name; empty where it is not known how far it has counted.
        uuid: String,
    },
    /// It is being made or deleted, or was when a process ended.
    Unfinished,
}

/// How long an orderly end looks for logs that LMDB has not taken.
const APPLYING_MAX: Duration = Duration::from_secs(10);

/// How far a database has counted that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// This is its update sequence: one made under its name counts on from there.
    To(Sequence),
    /// It is damaged, and may have given out higher sequences than this one: one made under its name has a higher
    /// incarnation.
    AtLeast(Sequence),
}

/// Why a database was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is one of that name.
    #[error("the database exists already")]
    Exists,
    /// The disk said no.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl DataFolder {
    /// Takes a data folder, making it if it is not there. Databases whose making or deletion was cut short are removed,
    /// or left over until their names are wanted;
    /// folders of databases that the catalogue does not know are taken in with a new incarnation. What the path means
    /// is found out once: it stays this folder when the process changes its working directory, or a symbolic link is
    /// switched.
    ///
    /// # Errors
    /// [`StorageError::FolderInUse`] when another process has it, or this one has opened it already;
    /// [`StorageError::Io`], also for an empty path.
    pub fn open(path: &Path, options: StoreOptions) -> Result<DataFolder, StorageError> {
        if path.as_os_str().is_empty() {
            let nameless = io::Error::new(ErrorKind::InvalidInput, "the path is empty: a folder must be named");
            return Err(StorageError::io(Path::new("the data folder"))(nameless));
        }
        make_folders(path)?;
        let path = &path.canonicalize().map_err(StorageError::io(path))?;
        let databases = path.join("databases");
        make_folders(&databases)?;
        let lock = FolderLock::take(path)?;
        let found = Catalogue::read(path)?;
        let is_new = found.is_none();
        let before = found.map_or_else(|| Catalogue::make(path), Ok)?;
        let mut catalogue = before.clone();
        for (name, error) in catalogue.drop_unfinished(&databases) {
            (options.tell)(&databases.join(name.folder()), &Notice::LeftOver { error: &error });
        }
        for nameless in catalogue.adopt_strangers(&databases)? {
            (options.tell)(&nameless, &Notice::PassedOver);
        }
        if is_new {
            catalogue.after_loss();
        }
        catalogue.after_restoring();
        catalogue.after_unclean_stop();
        catalogue.running_relaxed = options.durability == Durability::Relaxed;
        let saved =
            catalogue.save_over(&before, path).and_then(|is_new| if is_new { sync_folder(path) } else { Ok(()) });
        unless_full(saved, options.durability)?;
        let updates = UpdateLog::new(catalogue.noted_updates(), FLOORS_MAX);
        for (name, kind) in catalogue.unnoted_updates(&before) {
            updates.note(&name, kind);
        }
        let (path, catalogue) = (path.to_owned(), RwLock::new(Arc::new(catalogue)));
        let (changing, seen) = (Mutex::default(), SeenFiles::default());
        let folder = DataFolder { path, options, catalogue, changing, updates, seen, lock };
        if folder.updates.is_waiting() {
            // On a full disk it must start all the same; the first commit that finds room makes up for it.
            let _ = folder.make_room_for_updates();
        }
        Ok(folder)
    }

    /// The catalogue as it is now.
    fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.read())
    }

    /// Changes the catalogue on disk, then in memory.
    fn change<T>(&self, change: impl FnOnce(&mut Catalogue) -> T) -> Result<T, StorageError> {
        let _changing = self.changing.lock();
        let before = self.catalogue();
        let mut changed = (*before).clone();
        let answer = change(&mut changed);
        let replaced = changed.save_over(&before, &self.path)?;
        let synced = if replaced { sync_folder(&self.path) } else { Ok(()) };
        // What the file says is what is so, also when the sync fails; nobody sees it before it could outlive a power
        // cut.
        *self.catalogue.write() = Arc::new(changed);
        synced.map(|()| answer)
    }

    /// What the catalogue of a data folder says of each database, by its name, from outside and if there is a
    /// catalogue; nothing is changed.
    ///
    /// # Errors
    /// [`StorageError::Io`] where it cannot be read: no server opens the folder then.
    pub fn listed(path: &Path) -> Result<BTreeMap<String, Listed>, StorageError> {
        let databases = Catalogue::read(path)?.unwrap_or_default().databases;
        let listed = |entry: Entry| match entry.unfinished {
            true => Listed::Unfinished,
            false => Listed::Made { uuid: entry.uuid },
        };
        Ok(databases.into_iter().map(|(name, entry)| (name, listed(entry))).collect())
    }

    fn folder_of(&self, name: &DbName) -> PathBuf {
        self.path.join("databases").join(name.folder())
    }

    /// 32 hex digits that stay the same for the life of the folder.
    pub fn server_uuid(&self) -> String {
        self.catalogue().server_uuid.clone()
    }

    /// How databases are opened here.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// All databases' names, in order.
    pub fn names(&self) -> Vec<DbName> {
        self.catalogue().entries().map(|(name, _)| name).collect()
    }

    /// Whether there is a database of this name.
    pub fn contains(&self, name: &DbName) -> bool {
        self.catalogue.read().entry(name).is_some()
    }

    /// Makes a database. It counts on from where an earlier one of its name ended, so that no old token hides a
    /// new write.
    ///
    /// # Errors
    /// [`CreateError::Exists`], [`CreateError::Storage`].
    pub fn create(&self, name: &DbName, seq_format: SeqFormat) -> Result<Store, CreateError> {
        if self.catalogue().is_left_over(name) {
            // What is left of one that could not be made or removed altogether.
            self.remove(name)?;
        }
        // A folder that was put here since the start is taken in at the next one.
        if self.contains(name) || self.folder_of(name).exists() {
            return Err(CreateError::Exists);
        }
        let identity = Identity { uuid: random_bytes()?, created_secs: (self.options.clock)(), seq_format };
        let made = match self.change(|catalogue| catalogue.add(name, &identity.uuid)) {
            Ok(None) => return Err(CreateError::Exists),
            Ok(Some(start)) => self.make(name, &Birth { identity, start }),
            // It may be noted all the same.
            Err(error) => Err(error),
        };
        made.map_err(|error| {
            // What cannot be undone now is undone when the name is wanted again, or at the next start.
            let _ = self.remove(name);
            error.into()
        })
    }

    /// Makes a database that is noted to be unfinished.
    fn make(&self, name: &DbName, birth: &Birth) -> Result<Store, StorageError> {
        let store = self.open_folder(name, birth)?;
        let update = self.updates.reserve();
        self.change(|catalogue| catalogue.mark_made(name, update.seq()))?;
        update.publish(name, UpdateKind::Created);
        Ok(store)
    }

    fn open_folder(&self, name: &DbName, birth: &Birth) -> Result<Store, StorageError> {
        let folder = self.folder_of(name);
        fs::create_dir_all(&folder).map_err(StorageError::io(&folder))?;
        let store = self.open_file(name, &folder, birth)?;
        // LMDB syncs its files, not the folders that name them.
        sync_folder(&folder)?;
        sync_folder(&self.path.join("databases"))?;
        Ok(store)
    }

    /// Opens the file, walking through it once.
    fn open_file(&self, name: &DbName, folder: &Path, birth: &Birth) -> Result<Store, StorageError> {
        let bytes_max = self.seen.walked_bytes_max(name, self.options.verify_at_open_bytes_max)?;
        let opened = Store::open(folder, &StoreOptions { verify_at_open_bytes_max: bytes_max, ..self.options }, birth);
        self.seen.note_opened(name, &opened);
        opened
    }

    /// Takes note that a read came upon damage: the next opening walks through the file again, if it is no longer than
    /// [`StoreOptions::verify_at_open_bytes_max`].
    pub fn note_damage(&self, name: &DbName) {
        self.seen.note_damage(name);
    }

    /// Whether nothing of a database could be read when it was looked at last.
    pub fn is_unreadable(&self, name: &DbName) -> bool {
        self.seen.is_unreadable(name)
    }

    /// How many databases were found damaged, when they were opened or by a read since then.
    pub fn damaged(&self) -> usize {
        self.seen.damaged()
    }

    /// Removes a database that the catalogue says is unfinished; where that fails it is left over.
    fn remove(&self, name: &DbName) -> Result<(), StorageError> {
        let removed = remove_folder(&self.path.join("databases"), name)
            .and_then(|()| self.change(|catalogue| catalogue.databases.remove(name.as_str())).map(drop));
        self.seen.forget(name);
        removed.inspect_err(|_| self.leave_over(name))
    }

    /// Takes note that what is unfinished could not be removed now.
    fn leave_over(&self, name: &DbName) {
        let _changing = self.changing.lock();
        Arc::make_mut(&mut self.catalogue.write()).leave_over(name);
    }

    /// Opens a database; `None` when there is none of that name. One that was moved here, or stopped uncleanly in
    /// relaxed durability, gets a new incarnation.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn open_store(&self, name: &DbName) -> Result<Option<Store>, StorageError> {
        let catalogue = self.catalogue();
        let Some(entry) = catalogue.entry(name) else {
            return Ok(None);
        };
        // Needed only if the folder was lost: a new uuid raises the incarnation above the tokens of the lost database.
        let identity =
            Identity { uuid: random_bytes()?, created_secs: (self.options.clock)(), seq_format: SeqFormat::default() };
        let start = Sequence::new(entry.incarnation, catalogue.floor_of(name).version);
        let was_lost = !has_tables(&self.folder_of(name));
        let opened = self.open_folder(name, &Birth { identity, start });
        let is_damaged = opened.as_ref().map_or_else(StorageError::is_damage, |store| !store.damages().is_empty());
        if is_damaged {
            // It is not written to, so it gives out no new tokens; what is put in its place must not give out old ones.
            let readable = opened.as_ref().ok().and_then(|store| store.snapshot().ok()?.counters().ok());
            let incarnation = readable.map_or(0, |counters| counters.update_seq.incarnation);
            if !entry.uuid.is_empty() || entry.incarnation < incarnation {
                // Where this cannot be noted, as on a full disk, the next opening does.
                let _ = self.change(|catalogue| catalogue.mark_unknown(name, incarnation));
            }
            return opened.map(Some);
        }
        let store = opened?;
        let uuid = HEXLOWER.encode(&store.identity().uuid);
        let incarnation = store.snapshot()?.counters()?.update_seq.incarnation;
        let known = uuid == entry.uuid;
        let due = if known { entry.incarnation } else { entry.incarnation.max(incarnation).saturating_add(1) };
        if !known {
            let noted = self.change(|catalogue| catalogue.mark_known(name, uuid, due));
            unless_full(noted, self.options.durability)?;
        }
        if incarnation < due {
            // Where that fails, as on a full disk, it comes before the first write: the database can be read.
            let _ = store.raise_incarnation(due);
            let why = match known {
                true => NewIncarnation::Unclean,
                false if was_lost => NewIncarnation::Lost,
                false => NewIncarnation::Unknown,
            };
            (self.options.tell)(&self.folder_of(name), &Notice::Raised { to: due, why });
        }
        Ok(Some(store))
    }

    /// Decides that a database goes, to which nothing is written any more; `counted` tells how far it has
    /// counted. From then on there is none of its name. What it leaves is removed by [`DataFolder::finish_deletion`],
    /// when the name is wanted again, or at the next start.
    ///
    /// # Errors
    /// [`StorageError`]: whether it is there still, [`DataFolder::contains`] tells.
    pub fn decide_deletion(&self, name: &DbName, counted: Counted) -> Result<(), StorageError> {
        let update = self.updates.reserve();
        let noted = self.change(|catalogue| catalogue.mark_deleted(name, counted, update.seq()));
        // It may be noted all the same.
        let is_noted = noted.is_ok() || !self.contains(name);
        if is_noted {
            update.publish(name, UpdateKind::Deleted);
        }
        noted.inspect_err(|_| {
            if is_noted {
                self.leave_over(name);
            }
        })
    }

    /// Removes what is left of a database that was decided to go and that nobody has open.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn finish_deletion(&self, name: &DbName) -> Result<(), StorageError> {
        self.remove(name)
    }

    /// Deletes a database that nobody has open; `counted` tells how far it has counted.
    ///
    /// # Errors
    /// As [`DataFolder::decide_deletion`] and [`DataFolder::finish_deletion`].
    pub fn delete(&self, name: &DbName, counted: Counted) -> Result<(), StorageError> {
        self.decide_deletion(name, counted)?;
        self.finish_deletion(name)
    }

    /// Notes that the process ends with everything committed, after having LMDB take what a crash has left in the logs
    /// of databases that were not opened since, and syncing what relaxed durability has left unsynced.
    /// Databases must be closed before; the folder is free for another process, also when this fails, and this one must
    /// leave it alone.
    ///
    /// # Errors
    /// [`StorageError::Io`]: then the next start takes it that commits were lost, of the databases that could not be
    /// synced, or of all of them where that could not be noted. Those of a log that LMDB did not take: it stays, and
    /// nothing is lost.
    pub fn close_cleanly(&self) -> Result<(), StorageError> {
        let applied = self.apply_logs();
        self.close_as_it_is().and(applied)
    }

    /// The same without a look at the logs.
    ///
    /// # Errors
    /// As [`DataFolder::close_cleanly`].
    pub fn close_as_it_is(&self) -> Result<(), StorageError> {
        let noted = self.note_clean_end();
        noted.and(self.release())
    }

    /// Has LMDB take what a crash has left in the logs of databases that nobody has opened since: `data.mdb` is then
    /// the whole database. Damaged ones stay as they are.
    ///
    /// # Errors
    /// The first one's that this failed for, or for which there was no time.
    fn apply_logs(&self) -> Result<(), StorageError> {
        let (begun, mut first) = (Instant::now(), Ok(()));
        for name in self.names() {
            let folder = self.folder_of(&name);
            if !Store::has_log(&folder) || self.seen.is_damaged(&name) {
                continue;
            }
            let applied = match begun.elapsed() < APPLYING_MAX {
                true => self.open_store(&name).and_then(|store| store.map_or(Ok(()), Store::close)),
                false => {
                    Err(StorageError::io(&folder)(io::Error::new(ErrorKind::TimedOut, "its log waits for LMDB still")))
                }
            };
            first = first.and(unless_damaged(applied).map(drop));
        }
        first
    }

    fn note_clean_end(&self) -> Result<(), StorageError> {
        let mut unsynced = Vec::new();
        if self.options.durability == Durability::Relaxed {
            for name in self.names() {
                unsynced.extend(sync_data(&self.folder_of(&name)).err().map(|why| (name, why)));
            }
        }
        let updates = self.updates.close();
        let noted = self.change(|catalogue| {
            catalogue.running_relaxed = false;
            // To these alone the next start is as after a crash.
            unsynced.iter().for_each(|(name, _)| catalogue.mark_unknown(name, 0));
            catalogue.note_updates(&updates);
        });
        // The next start announces every database anew then.
        unless_full(noted, self.options.durability)?;
        unsynced.into_iter().next().map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Frees the folder for another process, and notes nothing: to the next start it is as after a crash. This one must
    /// leave it alone.
    ///
    /// # Errors
    /// [`StorageError::Io`].
    pub fn release(&self) -> Result<(), StorageError> {
        self.lock.free().map_err(StorageError::io(&self.path))
    }
}

/// What could not be noted in the catalogue on a full disk: whatever it is, it is found out once more by the next
/// opening or start, unless commits may be lost until then.
fn unless_full(noted: Result<(), StorageError>, durability: Durability) -> Result<(), StorageError> {
    match noted {
        Err(StorageError::DiskFull { .. }) if durability == Durability::Full => Ok(()),
        noted => noted,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, mpsc};
    use std::time::Duration;

    use super::*;
    use crate::env::DATA_FILE;
    use crate::sync_folder::fault;

    #[test]
    fn a_deletion_that_is_noted_and_cannot_be_synced_is_finished_when_the_name_is_wanted_again() {
        let path = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(path.path(), StoreOptions::default()).unwrap();
        let name = DbName::parse("db").unwrap();
        let store = folder.create(&name, SeqFormat::Integer).unwrap();
        let uuid = store.identity().uuid;
        store.close().unwrap();
        fault::set(fault::no_answer);
        folder.delete(&name, Counted::To(Sequence::new(0, 7))).unwrap_err();
        fault::set(fault::none);
        assert!(!folder.contains(&name), "the file says so");
        let store = folder.create(&name, SeqFormat::Integer).unwrap();
        assert_ne!(store.identity().uuid, uuid);
        assert_eq!(store.snapshot().unwrap().counters().unwrap().update_seq, Sequence::new(0, 7));
    }

    /// It was counted as sound where its file could not be opened the next time for another reason.
    #[test]
    fn a_damaged_database_counts_as_one_until_it_is_found_sound() {
        let path = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(path.path(), StoreOptions::default()).unwrap();
        let name = DbName::parse("db").unwrap();
        folder.create(&name, SeqFormat::Integer).unwrap().close().unwrap();
        let (file, sound) = (folder.folder_of(&name).join(DATA_FILE), path.path().join("sound"));
        fs::copy(&file, &sound).unwrap();
        fs::write(&file, [7; 8192]).unwrap();
        let opened = folder.open_store(&name).map(drop);
        assert!(matches!(opened, Err(StorageError::DamagedFile { .. })), "{opened:?}");
        assert_eq!(folder.damaged(), 1);
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        let opened = folder.open_store(&name).map(drop);
        assert!(!matches!(opened, Ok(()) | Err(StorageError::DamagedFile { .. })), "{opened:?}");
        assert_eq!(folder.damaged(), 1);
        fs::remove_dir(&file).unwrap();
        fs::copy(&sound, &file).unwrap();
        folder.open_store(&name).unwrap().unwrap().close().unwrap();
        assert_eq!(folder.damaged(), 0);
    }

    #[test]
    fn what_a_read_came_upon_is_not_forgotten_by_an_opening_that_does_not_look() {
        let path = tempfile::tempdir().unwrap();
        for (verify_at_open_bytes_max, damaged) in [(0, 1), (u64::MAX, 0)] {
            let options = StoreOptions { verify_at_open_bytes_max, ..StoreOptions::default() };
            let folder = DataFolder::open(path.path(), options).unwrap();
            let name = DbName::parse("db").unwrap();
            if !folder.contains(&name) {
                folder.create(&name, SeqFormat::Integer).unwrap().close().unwrap();
            }
            folder.note_damage(&name);
            assert_eq!(folder.damaged(), 1);
            folder.open_store(&name).unwrap().unwrap().close().unwrap();
            assert_eq!(folder.damaged(), damaged, "with a bound of {verify_at_open_bytes_max} bytes");
        }
    }

    /// Each request asks whether its database is there.
    #[test]
    fn who_asks_the_catalogue_does_not_wait_for_the_disk_that_takes_a_change() {
        static SYNCING: Barrier = Barrier::new(2);
        static ASKED: Barrier = Barrier::new(2);
        let path = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(path.path(), StoreOptions::default()).unwrap();
        let (there, new) = (DbName::parse("there").unwrap(), DbName::parse("new").unwrap());
        folder.create(&there, SeqFormat::Integer).unwrap().close().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                fault::set(|| {
                    fault::set(fault::none);
                    SYNCING.wait();
                    ASKED.wait();
                    Ok(())
                });
                folder.create(&new, SeqFormat::Integer).unwrap();
            });
            SYNCING.wait();
            let (asked, answered) = mpsc::channel();
            let folder = &folder;
            scope.spawn(move || asked.send((folder.contains(&there), folder.names())).unwrap());
            let answer = answered.recv_timeout(Duration::from_secs(60));
            ASKED.wait();
            let (is_there, names) = answer.expect("an answer while the disk syncs");
            assert!(is_there && names.len() == 1);
        });
        assert!(folder.contains(&new));
    }
}
