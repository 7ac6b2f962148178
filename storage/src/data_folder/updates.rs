//! What of the log of updates outlives the process.
//!
//! Creations and deletions are noted in the catalogue as they happen. Writes are noted at an orderly end alone: a
//! commit must not cost another sync. So that none is lost by a crash, every database is then announced as written to,
//! above the ceiling below which the crashed process gave out its sequences.

use super::DataFolder;
use super::catalogue::{Catalogue, Entry, NamedFloor, Updates};
use crate::error::StorageError;
use crate::model::db_name::DbName;
use crate::updates::{Noted, UpdateKind, UpdateLog};

impl DataFolder {
    /// The log of its databases' updates.
    pub fn updates(&self) -> &UpdateLog {
        &self.updates
    }

    /// Makes room in the log on disk, if there is little; to be called before a commit. It writes the catalogue at the
    /// first commit after a start, and once in half a million of them; then, `true`, updates that waited for room are
    /// there.
    ///
    /// # Errors
    /// [`StorageError`]: updates wait until there is room, and a crash before that may lose them.
    pub fn make_room_for_updates(&self) -> Result<bool, StorageError> {
        let Some(ceiling) = self.updates.next_ceiling() else { return Ok(false) };
        self.change(|catalogue| {
            catalogue.updates.exact = false;
            catalogue.raise_ceiling(ceiling);
        })?;
        self.updates.raise_ceiling(ceiling);
        Ok(true)
    }

    /// Takes note of a commit that changed documents of a database.
    pub fn note_update(&self, name: &DbName) {
        self.updates.note(name, UpdateKind::Updated);
    }
}

impl Catalogue {
    /// What was noted of the log.
    pub fn noted_updates(&self) -> Noted {
        let exact = self.updates.exact;
        let of_database = |(name, entry): (DbName, &Entry)| {
            let updated = entry.updated.filter(|_| exact).map(|seq| (seq, UpdateKind::Updated));
            let created = entry.created.map(|seq| (seq, UpdateKind::Created));
            created.into_iter().chain(updated).map(move |(seq, kind)| (seq, name.clone(), kind))
        };
        let of_floor = |floor: &NamedFloor| {
            let name = DbName::parse(&floor.name).ok().filter(|name| self.entry(name).is_none())?;
            Some((floor.deleted?, name, UpdateKind::Deleted))
        };
        let rows = self.entries().flat_map(of_database).chain(self.floors.iter().filter_map(of_floor));
        Noted { last: self.updates.ceiling, rows: rows.collect() }
    }

    /// What the log must tell besides: databases that were found at this start or put in the place of others, and all
    /// of them where it is not known which have been written to.
    pub fn unnoted_updates(&self, before: &Catalogue) -> Vec<(DbName, UpdateKind)> {
        let unnoted = self.entries().filter_map(|(name, entry)| {
            let kind = if !before.databases.contains_key(name.as_str()) {
                UpdateKind::Created
            } else if !self.updates.exact || entry.uuid.is_empty() {
                UpdateKind::Updated
            } else {
                return None;
            };
            Some((name, kind))
        });
        unnoted.collect()
    }

    /// Notes all of the log: nothing follows.
    pub fn note_updates(&mut self, noted: &Noted) {
        self.updates = Updates { ceiling: noted.last, exact: true };
        for entry in self.databases.values_mut() {
            (entry.created, entry.updated) = (None, None);
        }
        for (seq, name, kind) in &noted.rows {
            let Some(entry) = self.databases.get_mut(name.as_str()) else { continue };
            match kind {
                UpdateKind::Created => entry.created = Some(*seq),
                UpdateKind::Updated => entry.updated = Some(*seq),
                // Noted with its floor when it happened.
                UpdateKind::Deleted => {}
            }
        }
    }

    /// Takes note that sequences up to this one are given out.
    pub(super) fn raise_ceiling(&mut self, ceiling: u64) {
        self.updates.ceiling = self.updates.ceiling.max(ceiling);
    }
}
