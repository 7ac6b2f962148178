//! Opening a database's file and its log, sound or damaged; making both where there are none.

use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::path::Path;

use super::{Birth, StoreOptions};
use crate::base::Base;
use crate::codec::meta::{self, Counters, FORMAT, FORMAT_WITH_SEALS};
use crate::disk::{sync_meta_pages, sync_what_is_there};
use crate::env::{DATA_FILE, Env, EnvOptions};
use crate::error::StorageError;
use crate::log::logged::Logged;
use crate::log::replay::{FoundLog, Replayed};
use crate::pages::{Damage, Looked, Survey, look};
use crate::room::Room;
use crate::rows::Rows;
use crate::tables::{META_BORN, META_COUNTERS, META_FORMAT, META_IDENTITY, META_REVS_LIMIT, Table};
use crate::view::View;

/// A database's file and the log in front of it.
pub(super) struct Opened {
    pub base: Base,
    /// Whether all of it was looked at.
    pub verified: bool,
    /// A damage that was put right.
    pub mended: Option<Damage>,
}

/// Opens a database's file and the log in front of it.
pub(super) fn open_base(folder: &Path, options: &StoreOptions, birth: &Birth) -> Result<Opened, StorageError> {
    // Nobody else uses the folder: the log need not be read before the tables are.
    let log = FoundLog::open(folder)?;
    let (page_bytes, verified, mended) = match look(folder, options.verify_at_open_bytes_max)? {
        Looked::Sound { page_bytes, whole, mended } => (page_bytes, whole, mended),
        Looked::Damaged(mut survey) => {
            let Replayed { over, damage, .. } = log.replay(View::of_survey(&survey))?;
            damage.into_iter().for_each(|damage| survey.add(damage));
            return Ok(Opened { base: Base::Damaged(survey, Box::new(over)), verified: true, mended: None });
        }
    };
    sync(folder, page_bytes, &log)?;
    let env = open_env(folder, options, birth)?;
    let mut replayed = log.replay(env.read()?.view())?;
    if let Some(damage) = replayed.damage.take() {
        env.close();
        let survey = Survey::because_of(folder, damage)?;
        let base = Base::Damaged(Box::new(survey), Box::new(replayed.over));
        return Ok(Opened { base, verified: true, mended });
    }
    let logged = Logged::open(folder, env, options.durability, options.tell, log, replayed)?;
    Ok(Opened { base: Base::Sound(Box::new(logged)), verified, mended })
}

/// Has LMDB's file outlive a power cut: what a process wrote that was killed it may not have synced.
fn sync(folder: &Path, page_bytes: Option<usize>, log: &FoundLog) -> Result<(), StorageError> {
    let file = folder.join(DATA_FILE);
    // Beside a log much may have been written for a commit that was broken off, which nothing leads to.
    let synced = match page_bytes.filter(|_| log.is_there()) {
        Some(page_bytes) => sync_meta_pages(&file, page_bytes),
        None => sync_what_is_there(&file),
    };
    synced.map_err(|error| match error.kind() {
        PermissionDenied | ReadOnlyFilesystem => StorageError::io(&file)(error),
        _ => StorageError::disk(error),
    })
}

/// Opens a sound file, or makes a new one. One of an older format becomes one of this format, its rows as they are.
fn open_env(folder: &Path, options: &StoreOptions, birth: &Birth) -> Result<Env, StorageError> {
    let StoreOptions { map_bytes, map_bytes_max, readers_max, durability, revs_limit, tell, .. } = *options;
    let mut env = Env::open(folder, EnvOptions { map_bytes, map_bytes_max, readers_max, durability, tell })?;
    let settle = |view: View<'_>| {
        let mut rows = Rows::default();
        let born = match view.read(Table::Meta, META_FORMAT, meta::decode_number)? {
            None => {
                put_birth(&mut rows, birth, revs_limit);
                FORMAT
            }
            Some(FORMAT) => view.expect(Table::Meta, META_BORN, meta::decode_number)?,
            Some(found) if found > FORMAT => {
                return Err(StorageError::NewerFormat { path: folder.to_owned(), found, known: FORMAT });
            }
            Some(older) => {
                rows.put(Table::Meta, META_FORMAT, meta::encode_number(FORMAT));
                // Since format 2 it says itself in which it was born.
                let born = view.read(Table::Meta, META_BORN, meta::decode_number)?.unwrap_or(older);
                rows.put(Table::Meta, META_BORN, meta::encode_number(born));
                born
            }
        };
        Ok((rows, born))
    };
    if env.write(Room::Reserve, settle, |_| {})? >= FORMAT_WITH_SEALS {
        env.require_seals();
    }
    Ok(env)
}

/// The first rows of a new database.
fn put_birth(rows: &mut Rows, birth: &Birth, revs_limit: u32) {
    let counters = Counters { update_seq: birth.start, docs: 0, deleted_docs: 0, body_bytes: 0, garbage_bytes: 0 };
    rows.put(Table::Meta, META_FORMAT, meta::encode_number(FORMAT));
    rows.put(Table::Meta, META_BORN, meta::encode_number(FORMAT));
    rows.put(Table::Meta, META_IDENTITY, meta::encode_identity(&birth.identity));
    rows.put(Table::Meta, META_REVS_LIMIT, meta::encode_number(u64::from(revs_limit.max(1))));
    rows.put(Table::Meta, META_COUNTERS, meta::encode_counters(&counters));
}
