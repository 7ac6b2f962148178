//! What a log holds when it is found: after a crash, or beside a server that writes to it.

use std::path::Path;
use std::sync::Arc;

use super::memtable::{Memtable, Overlay};
use super::segment::{Found, Segment};
use super::segments::{NAMES, Segments};
use crate::codec::meta;
use crate::error::StorageError;
use crate::pages::Damage;
use crate::tables::Table;
use crate::view::{META_LOG, View};

/// The log in a folder, read.
pub(crate) struct FoundLog([Option<Found>; 2]);

/// What is to be made of a log.
pub(crate) struct Replayed {
    /// The rows of all records that the tables do not have.
    pub over: Overlay,
    /// The last record.
    pub number: u64,
    /// Up to which record the tables have come.
    pub covered: u64,
    /// That records are missing which had been acknowledged.
    pub damage: Option<Damage>,
}

impl FoundLog {
    /// Reads the log in a folder, which may have none. It is read before the tables are: what they do not have is then
    /// among what was read, also where a server goes on.
    pub fn read(folder: &Path) -> Result<FoundLog, StorageError> {
        let find = |name| {
            let path = folder.join(name);
            Segment::find(&path).map_err(StorageError::io(&path))
        };
        Ok(FoundLog([find(NAMES[0])?, find(NAMES[1])?]))
    }

    /// Lays the rows of all records over the tables that these do not have, as far as none is missing.
    ///
    /// A record at the end that is not whole was not acknowledged, or cannot be told from one that was not. But each is
    /// written when the one before has been synced: where a later one is whole, one that was acknowledged is lost.
    pub fn replay(&self, tables: View<'_>) -> Result<Replayed, StorageError> {
        let covered = covered(tables)?;
        let mut records: Vec<_> = self.0.iter().flatten().flat_map(|found| &found.records).collect();
        records.retain(|record| record.number > covered);
        records.sort_by_key(|record| record.number);
        let (mut frozen, mut number) = (Memtable::default(), covered);
        for record in records {
            if record.number != number + 1 {
                break;
            }
            number = record.number;
            record.rows.iter().cloned().for_each(|row| frozen.insert(row));
        }
        let frozen = Some(Arc::new(frozen)).filter(|frozen| !frozen.is_empty());
        let over = Overlay { active: Memtable::default(), frozen };
        Ok(Replayed { over, number, covered, damage: self.damage(number) })
    }

    /// That there is a record beyond the last one that could be replayed.
    fn damage(&self, number: u64) -> Option<Damage> {
        NAMES.iter().zip(&self.0).find_map(|(name, found)| {
            let (at, beyond) = found.as_ref()?.record_above(number)?;
            Some(Damage::of_log(name, at as u64, beyond.number, number + 1))
        })
    }

    pub fn into_segments(self, folder: &Path) -> Segments {
        Segments::new(folder, self.0.map(|found| found.map(|found| found.segment)))
    }
}

/// Up to which record tables have come.
pub(super) fn covered(tables: View<'_>) -> Result<u64, StorageError> {
    Ok(tables.read(Table::Meta, META_LOG, meta::decode_number)?.unwrap_or(0))
}
