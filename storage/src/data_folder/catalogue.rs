//! What a data folder knows of its databases outside of them: one file, replaced as a whole.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::Counted;
use super::files::{random_bytes, remove_folder};
use crate::error::{StorageError, if_there};
use crate::model::db_name::DbName;
use crate::model::sequence::Sequence;

/// How many names of deleted databases are remembered one by one. Beyond, the oldest are forgotten and every new
/// database starts above all of them.
pub(super) const FLOORS_MAX: usize = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Catalogue {
    pub server_uuid: String,
    /// Set while a process runs that may lose its last commits in a power cut.
    #[serde(default)]
    pub running_relaxed: bool,
    /// Set by who puts an older copy of the data folder in its place, until the next start: databases may have counted
    /// further than it says, and others may have been made since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
    pub databases: BTreeMap<String, Entry>,
    /// Names of databases that are gone, with what their successors count on from, oldest first.
    pub floors: Vec<NamedFloor>,
    /// Every new database counts on from here at least.
    floor_of_all: Floor,
    /// Of catalogues that were written before there were updates: nothing is known.
    #[serde(default)]
    pub updates: Updates,
}

/// What is known of the log of updates besides the sequences that stand with the databases and floors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Updates {
    /// No sequence above it was given out.
    pub ceiling: u64,
    /// Whether `updated` of every database is what it should be: since it was noted, nothing has been written.
    pub exact: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Empty where it is not known how far it has counted: of one that was found here until it is opened, of one that
    /// was found damaged, and of all in a folder that was restored.
    pub uuid: String,
    pub incarnation: u8,
    /// Set until a new database is there, and again from the moment a deletion is decided: what is unfinished when the
    /// process ends is removed at the next start.
    #[serde(default)]
    pub unfinished: bool,
    /// The update by which it was made, if it was made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// The update by which it was last written to, at the last orderly end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u64>,
    /// Of one that is unfinished, set when this process tried to remove it and could not.
    #[serde(skip)]
    pub left_over: bool,
}

impl Entry {
    /// The entry of a database that starts from nothing.
    fn new(uuid: String, incarnation: u8) -> Entry {
        Entry { uuid, incarnation, ..Entry::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedFloor {
    pub name: String,
    #[serde(flatten)]
    floor: Floor,
    /// The update by which it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<u64>,
}

/// No new sequence may lie below it, in either part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Floor {
    version: u64,
    incarnation: u8,
}

impl Floor {
    fn at(seq: Sequence) -> Floor {
        Floor { version: seq.version, incarnation: seq.incarnation }
    }

    fn next_incarnation(self) -> Floor {
        Floor { incarnation: self.incarnation.saturating_add(1), ..self }
    }

    fn raised_to(self, other: Floor) -> Floor {
        Floor { version: self.version.max(other.version), incarnation: self.incarnation.max(other.incarnation) }
    }
}

impl Catalogue {
    /// Reads the file, if it is there; nothing is changed.
    pub fn read(path: &Path) -> Result<Option<Catalogue>, StorageError> {
        let file = path.join("catalogue.json");
        let Some(text) = if_there(fs::read(&file)).map_err(StorageError::io(&file))? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).map_err(|error| StorageError::io(&file)(error.into()))
    }

    /// Makes the file, which is not there.
    pub fn make(path: &Path) -> Result<Catalogue, StorageError> {
        let new = Catalogue { server_uuid: HEXLOWER.encode(&random_bytes()?), ..Catalogue::default() };
        new.save(path)?;
        Ok(new)
    }

    /// Saves what differs from `before`, which is on disk: where nothing does, a full disk does not matter. Gives
    /// whether the folder is to be synced: until then a power cut may bring the old file back.
    pub fn save_over(&self, before: &Catalogue, path: &Path) -> Result<bool, StorageError> {
        if self == before { Ok(false) } else { self.save(path).map(|()| true) }
    }

    /// Replaces the file as a whole: a crash leaves the old one or the new one.
    fn save(&self, path: &Path) -> Result<(), StorageError> {
        let (new, file) = (path.join("catalogue.json.new"), path.join("catalogue.json"));
        let text = serde_json::to_vec_pretty(self).map_err(|error| StorageError::io(&file)(error.into()))?;
        let write = || {
            let mut out = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
            out.write_all(&text)?;
            out.sync_all()?;
            fs::rename(&new, &file)
        };
        write().map_err(StorageError::io(&file))
    }

    /// The entry of a database that is there.
    pub fn entry(&self, name: &DbName) -> Option<&Entry> {
        self.databases.get(name.as_str()).filter(|entry| !entry.unfinished)
    }

    /// The databases that are there, in order of their names.
    pub fn entries(&self) -> impl Iterator<Item = (DbName, &Entry)> {
        let there = self.databases.iter().filter(|(_, entry)| !entry.unfinished);
        there.filter_map(|(name, entry)| Some((DbName::parse(name).ok()?, entry)))
    }

    /// Whether a database of this name could not be removed altogether.
    pub fn is_left_over(&self, name: &DbName) -> bool {
        self.databases.get(name.as_str()).is_some_and(|entry| entry.left_over)
    }

    /// Takes note that what is unfinished could not be removed now. Of one that was being made the file may say that it
    /// was: then its name reached the disk, and its sync failed.
    pub fn leave_over(&mut self, name: &DbName) {
        if let Some(entry) = self.databases.get_mut(name.as_str()) {
            (entry.unfinished, entry.left_over, entry.created) = (true, true, None);
        }
    }

    /// Enters a database that is about to be made; gives the sequence it starts from, `None` when the name is taken.
    pub fn add(&mut self, name: &DbName, uuid: &[u8; 16]) -> Option<Sequence> {
        if self.databases.contains_key(name.as_str()) {
            return None;
        }
        let start = self.floor_of(name);
        let entry = Entry { unfinished: true, ..Entry::new(HEXLOWER.encode(uuid), start.incarnation) };
        self.databases.insert(name.as_str().to_owned(), entry);
        Some(start)
    }

    /// Takes note that a new database is there, by an update of this sequence.
    pub fn mark_made(&mut self, name: &DbName, update: u64) {
        if let Some(entry) = self.databases.get_mut(name.as_str()) {
            entry.unfinished = false;
            entry.created = Some(update);
            self.raise_ceiling(update);
        }
    }

    /// Takes note that a database was found damaged, in this incarnation as far as can be read: how far it has counted
    /// is not known, before a sound one is opened in its place.
    pub fn mark_unknown(&mut self, name: &DbName, incarnation: u8) {
        if let Some(entry) = self.databases.get_mut(name.as_str()) {
            entry.uuid.clear();
            entry.incarnation = entry.incarnation.max(incarnation);
        }
    }

    /// Takes note of what a database turned out to be when it was opened.
    pub fn mark_known(&mut self, name: &DbName, uuid: String, incarnation: u8) {
        if let Some(entry) = self.databases.get_mut(name.as_str()) {
            (entry.uuid, entry.incarnation) = (uuid, incarnation);
        }
    }

    pub fn floor_of(&self, name: &DbName) -> Sequence {
        let own = self.floors.iter().rfind(|floor| floor.name == name.as_str());
        let floor = own.map_or(self.floor_of_all, |own| own.floor.raised_to(self.floor_of_all));
        Sequence::new(floor.incarnation, floor.version)
    }

    /// Takes note that a database is to go, by an update of the sequence `update`.
    pub fn mark_deleted(&mut self, name: &DbName, counted: Counted, update: u64) {
        let before = Floor::at(self.floor_of(name));
        let Some(entry) = self.databases.get_mut(name.as_str()) else {
            return;
        };
        entry.unfinished = true;
        let least = Floor { version: 0, incarnation: entry.incarnation }.raised_to(before);
        let floor = match counted {
            Counted::To(last) => least.raised_to(Floor::at(last)),
            Counted::AtLeast(seq) => least.raised_to(Floor::at(seq)).next_incarnation(),
        };
        self.floors.retain(|floor| floor.name != name.as_str());
        self.floors.push(NamedFloor { name: name.to_string(), floor, deleted: Some(update) });
        if self.floors.len() > FLOORS_MAX {
            self.floor_of_all = self.floor_of_all.raised_to(self.floors.remove(0).floor);
        }
        self.raise_ceiling(update);
    }

    /// Removes what is unfinished; what cannot be removed is left over and given, with why.
    pub fn drop_unfinished(&mut self, databases: &Path) -> Vec<(DbName, StorageError)> {
        let mut stays = Vec::new();
        self.databases.retain(|name, entry| {
            let name = DbName::parse(name).ok().filter(|_| entry.unfinished);
            if let Some(name) = name
                && let Err(error) = remove_folder(databases, &name)
            {
                entry.left_over = true;
                stays.push((name, error));
            }
            !entry.unfinished || entry.left_over
        });
        stays
    }

    /// Takes in folders that the catalogue does not know; opening them finds a foreign uuid and raises the incarnation.
    /// Gives those whose names no database can have.
    pub fn adopt_strangers(&mut self, databases: &Path) -> Result<Vec<PathBuf>, StorageError> {
        let mut nameless = Vec::new();
        for folder in fs::read_dir(databases).map_err(StorageError::io(databases))? {
            let folder = folder.map_err(StorageError::io(databases))?;
            let path = folder.path();
            if !path.is_dir() {
                continue;
            }
            let Some(name) = folder.file_name().to_str().and_then(DbName::from_folder) else {
                nameless.push(path);
                continue;
            };
            let incarnation = self.floor_of(&name).incarnation;
            let stranger = || Entry::new(String::new(), incarnation);
            self.databases.entry(name.to_string()).or_insert_with(stranger);
        }
        Ok(nameless)
    }

    /// One that was just made has databases only where the one before was lost, which knew of deleted ones: what is
    /// made under their names counts above their first incarnation. How far they had come nobody knows any more.
    pub fn after_loss(&mut self) {
        if !self.databases.is_empty() {
            self.floor_of_all = self.floor_of_all.next_incarnation();
        }
    }

    /// What is written from now on, to whichever database, must sort above all that was written in the incarnations
    /// that the copy knows of.
    pub fn after_restoring(&mut self) {
        if std::mem::take(&mut self.restored) {
            let entries = self.databases.values().map(|entry| entry.incarnation);
            let floors = self.floors.iter().map(|named| named.floor.incarnation);
            let highest = entries.chain(floors).fold(self.floor_of_all.incarnation, u8::max);
            for entry in self.databases.values_mut() {
                entry.uuid.clear();
                entry.incarnation = highest;
            }
            self.floor_of_all = Floor { incarnation: highest, ..self.floor_of_all }.next_incarnation();
        }
    }

    /// A power cut may have cost the last commits of a relaxed run: what is written from now on must sort above them.
    pub fn after_unclean_stop(&mut self) {
        if self.running_relaxed {
            for entry in self.databases.values_mut() {
                entry.incarnation = entry.incarnation.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As where the file got its name, and the folder's sync failed.
    #[test]
    fn a_database_that_may_be_noted_as_made_and_could_not_be_removed_is_left_over() {
        let name = DbName::parse("a").unwrap();
        let mut catalogue = Catalogue::default();
        catalogue.add(&name, &[7; 16]).unwrap();
        catalogue.mark_made(&name, 5);
        catalogue.leave_over(&name);
        assert!(catalogue.is_left_over(&name));
        assert!(catalogue.entry(&name).is_none(), "there is no such database");
        assert_eq!(catalogue.databases["a"].created, None, "its sequence is given to another");
    }
}
