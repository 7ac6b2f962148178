//! What a log holds when it is found: after a crash, or beside a server that writes to it.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use super::found::{Above, Found, Records};
use super::memtable::{Memtable, Overlay};
use super::record::Origin;
use super::segments::{NAMES, Segments};
use crate::at_once::at_once;
use crate::codec::meta;
use crate::error::StorageError;
use crate::pages::Damage;
use crate::tables::{META_IDENTITY, META_LOG, Table};
use crate::view::View;

/// How much is written at once of what is written again.
const KEPT_AT_ONCE: usize = 1 << 20;

/// The log in a folder.
pub(crate) struct FoundLog([Option<Found>; 2]);

/// What is to be made of a log.
pub(crate) struct Replayed {
    /// Whose records they are.
    pub(super) origin: Origin,
    /// The rows of all records that the tables do not have.
    pub over: Overlay,
    /// The last record.
    pub number: u64,
    /// Up to which record the tables have come.
    pub covered: u64,
    /// What each file has of the records that they do not have, and where.
    to_keep: [Vec<(usize, Arc<Vec<u8>>)>; 2],
    /// That records are missing which had been acknowledged, or that it is not known.
    pub damage: Option<Damage>,
}

impl FoundLog {
    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Finds the log in a folder that nobody else uses, which may have none; it is read when it is replayed.
    pub fn open(folder: &Path) -> Result<FoundLog, StorageError> {
        FoundLog::find(folder, Found::open)
    }

    /// Reads the log in a folder that a server may use, which may have none; nothing is changed. It is read before the
    /// tables are: what they do not have is then among what was read, also while the server goes on writing. But then
    /// one file may be read before it is filled, and the other after it was begun, so that the records in between are
    /// missing.
    pub fn read(folder: &Path) -> Result<FoundLog, StorageError> {
        FoundLog::find(folder, Found::read)
    }

    fn find(folder: &Path, find: fn(&Path) -> io::Result<Option<Found>>) -> Result<FoundLog, StorageError> {
        let find = |name| {
            let path = folder.join(name);
            find(&path).map_err(StorageError::io(&path))
        };
        let one = find(NAMES[0])?;
        #[cfg(test)]
        super::logged::meanwhile::happens();
        Ok(FoundLog([one, find(NAMES[1])?]))
    }

    /// Lays the rows of all records over the tables that these do not have, as far as none is missing. What is damaged
    /// of others costs nothing.
    ///
    /// A record at the end that is not whole was not acknowledged, or cannot be told from one that was not. But each is
    /// written when the one before has been synced: where a later one is whole, one that was acknowledged is lost. One
    /// may be lost, too, where the disk does not give what lies behind the last record, or where the file ends within a
    /// record: none is written that does not fit.
    ///
    /// Where the row is damaged that says how far the tables have come, none is laid over them.
    pub fn replay(&self, tables: View<'_>) -> Result<Replayed, StorageError> {
        let origin = Origin::of(&tables.expect(Table::Meta, META_IDENTITY, meta::decode_identity)?);
        let covered = match covered(tables) {
            Err(why) if why.is_damage() => {
                let damage = Some(Damage::of_whole_log(NAMES[0], &why));
                return Ok(Replayed {
                    origin,
                    over: Overlay::default(),
                    number: 0,
                    covered: 0,
                    to_keep: Default::default(),
                    damage,
                });
            }
            covered => covered?,
        };
        let (mut records, mut unread, mut cut) = (Vec::new(), None, None);
        let mut to_keep: [Vec<_>; 2] = Default::default();
        let [one, other] = &self.0;
        let above = |found: &Option<Found>| found.as_ref().map(|found| found.records_above(origin, covered));
        let (of_one, of_other) = at_once(|| above(one), || above(other));
        for ((name, both), kept) in NAMES.iter().zip([(one, of_one), (other, of_other)]).zip(&mut to_keep) {
            let (Some(found), Some(Records { above, cut: is_cut, unread: not_read })) = both else { continue };
            cut = cut.or(is_cut.then(|| (*name, found.bytes())));
            unread = unread.or(not_read.map(|(at, why)| (*name, at, why)));
            kept.extend(above.iter().map(|record| (record.at, Arc::clone(record.rows.record()))));
            records.extend(above.into_iter().map(|record| (*name, record)));
        }
        records.sort_by_key(|(_, record)| record.number);
        let (mut whole, mut number, mut damage) = (Vec::with_capacity(records.len()), covered, None);
        for (name, Above { at, number: of_this, rows }) in records {
            if of_this != number + 1 {
                damage = Some(Damage::of_log(name, at as u64, of_this, number + 1));
                break;
            }
            number = of_this;
            whole.push(rows);
        }
        let damage = damage.or(cut.map(|(name, end)| Damage::of_cut_log(name, end as u64, number + 1)));
        let damage = damage.or(unread.map(|(name, at, why)| Damage::of_unread_log(name, at as u64, &why, number + 1)));
        let mut frozen = Memtable::default();
        frozen.insert(whole);
        let frozen = Some(Arc::new(frozen)).filter(|frozen| !frozen.is_empty());
        let over = Overlay { frozen, ..Overlay::default() };
        Ok(Replayed { origin, over, number, covered, to_keep, damage })
    }

    /// The segments, to be used again when the tables have come up to the last record.
    pub fn into_segments(self, folder: &Path, last: u64) -> Result<Segments, StorageError> {
        let open = |name: &str, found: Option<Found>| {
            let path = folder.join(name);
            found.map(|found| found.into_segment(&path, last).map_err(StorageError::io(&path))).transpose()
        };
        let [one, other] = self.0;
        Ok(Segments::new(folder, [open(NAMES[0], one)?, open(NAMES[1], other)?]))
    }
}

impl Replayed {
    /// Makes the records that were replayed outlive a power cut, as whoever wrote them may have ended before they were
    /// synced. They are written once more first: a sync that failed may have left them in memory as if they were on the
    /// disk, and the next sync would say nothing.
    pub fn keep(&self, folder: &Path) -> io::Result<()> {
        for (name, records) in NAMES.iter().zip(&self.to_keep).filter(|(_, records)| !records.is_empty()) {
            let file = OpenOptions::new().write(true).open(folder.join(name))?;
            let mut writer = BufWriter::with_capacity(KEPT_AT_ONCE, &file);
            let mut end = None;
            for (at, record) in records {
                if end != Some(*at) {
                    writer.seek(SeekFrom::Start(*at as u64))?;
                }
                writer.write_all(record)?;
                end = Some(at + record.len());
            }
            writer.flush()?;
            file.sync_data()?;
        }
        Ok(())
    }
}

/// Up to which record tables have come.
pub(super) fn covered(tables: View<'_>) -> Result<u64, StorageError> {
    Ok(tables.read(Table::Meta, META_LOG, meta::decode_number)?.unwrap_or(0))
}
