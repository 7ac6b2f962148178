//! One LMDB environment: opening it, reading it, writing rows to it, growing its map.
//!
//! The only place of the project that needs `unsafe`: LMDB maps a file that only its lock file protects, and a map may
//! be resized only while no transaction of the process is open.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions, MdbError, PutFlags, RoTxn, RwTxn, WithoutTls};

use crate::error::StorageError;
use crate::tables::{Handles, Row, RowChange, Rows, Table};
use crate::view::View;

/// What a commit promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A commit returns when it is on disk.
    #[default]
    Full,
    /// A power cut may cost the last commits, never the file.
    Relaxed,
}

impl Durability {
    /// The name in the configuration and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Full => "full",
            Durability::Relaxed => "relaxed",
        }
    }
}

/// How to open an environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnvOptions {
    /// Address space to reserve, a multiple of the page size.
    pub map_bytes: usize,
    /// Most read transactions at once.
    pub readers_max: u32,
    pub durability: Durability,
}

/// A map is doubled when it is full, up to this much address space.
const MAP_BYTES_MAX: usize = 1 << 44;

pub(crate) struct Env {
    env: heed::Env<WithoutTls>,
    handles: Handles,
    /// Held shared by every open read transaction, exclusively while the map grows.
    gate: RwLock<()>,
    /// One write at a time, its transaction opened, used and committed on one thread.
    writing: Mutex<()>,
}

impl Env {
    /// Opens the environment in a folder, which must exist, and makes the tables that are missing.
    pub fn open(folder: &Path, options: EnvOptions) -> Result<Env, StorageError> {
        let flags = match options.durability {
            Durability::Full => EnvFlags::empty(),
            Durability::Relaxed => EnvFlags::NO_META_SYNC,
        };
        let mut open = EnvOpenOptions::new().read_txn_without_tls();
        open.map_size(options.map_bytes).max_readers(options.readers_max).max_dbs(16);
        // SAFETY: the data folder's lock keeps other processes away (`data_folder.rs`), the catalogue opens a folder once;
        // NO_META_SYNC leaves the file whole after a crash.
        let env = unsafe { open.flags(flags).open(folder)? };
        env.clear_stale_readers()?;
        let handles = create_tables(&env)?;
        Ok(Env { env, handles, gate: RwLock::new(()), writing: Mutex::new(()) })
    }

    /// Opens the environment in a folder, which must hold one, for reading beside the process that writes it.
    pub fn open_to_read(folder: &Path) -> Result<Env, StorageError> {
        let mut open = EnvOpenOptions::new().read_txn_without_tls();
        open.max_dbs(16);
        // SAFETY: nothing is written; LMDB's own lock file keeps the pages of an open transaction from being reused.
        let env = unsafe { open.flags(EnvFlags::READ_ONLY).open(folder)? };
        let handles = open_tables(&env)?;
        Ok(Env { env, handles, gate: RwLock::new(()), writing: Mutex::new(()) })
    }

    /// Opens a read transaction. It must not outlive a page: it pins what it can see. A thread that has one open must
    /// neither open another nor write: a map about to grow waits for the first and holds up the second.
    pub fn read(&self) -> Result<Reading<'_>, StorageError> {
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let txn = self.env.read_txn()?;
        Ok(Reading { txn, handles: self.handles, _gate: gate })
    }

    /// Lets `plan` read the newest state and decide on rows, writes them, commits, and tells `committed` before the
    /// next write starts. While the map is too small for the rows it grows, and the same plan is made once more.
    /// Nothing is written when anything fails.
    pub fn write<T>(
        &self,
        mut plan: impl FnMut(View<'_>) -> Result<(Rows, T), StorageError>,
        committed: impl FnOnce(&T),
    ) -> Result<T, StorageError> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match self.try_write(&mut plan) {
                Err(StorageError::Lmdb(heed::Error::Mdb(MdbError::MapFull))) => self.grow()?,
                done => return done.inspect(committed),
            }
        }
    }

    fn try_write<T>(
        &self,
        plan: &mut impl FnMut(View<'_>) -> Result<(Rows, T), StorageError>,
    ) -> Result<T, StorageError> {
        let mut txn = self.env.write_txn()?;
        let (rows, outcome) = plan(View::new(&txn, self.handles))?;
        if rows.0.is_empty() {
            txn.abort();
            return Ok(outcome);
        }
        for row in &rows.0 {
            write_row(&mut txn, &self.handles, row)?;
        }
        txn.commit()?;
        Ok(outcome)
    }

    fn grow(&self) -> Result<(), StorageError> {
        let _no_readers = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let map_bytes = self.map_bytes();
        let grown = map_bytes.saturating_mul(2);
        if grown > MAP_BYTES_MAX {
            return Err(StorageError::MapFull { map_bytes });
        }
        // SAFETY: no transaction is open: readers hold the gate, the only writer is this thread between two attempts.
        unsafe { self.env.resize(grown)? };
        Ok(())
    }

    /// The address space reserved.
    pub fn map_bytes(&self) -> usize {
        self.env.info().map_size
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> Result<u64, StorageError> {
        Ok(self.env.real_disk_size()?)
    }

    /// Closes the environment, waiting until no transaction uses it.
    pub fn close(self) {
        self.env.prepare_for_closing().wait();
    }
}

fn create_tables(env: &heed::Env<WithoutTls>) -> Result<Handles, StorageError> {
    let txn = env.write_txn()?;
    let created = env.create_databases_and_commit(txn, |opener, txn| {
        let [docs, history, by_seq, bodies, local, meta, blocks] = Table::ALL.map(Table::name);
        let mut create = |name| opener.create_database(txn, Some(name));
        let handles = [
            create(docs)?,
            create(history)?,
            create(by_seq)?,
            create(bodies)?,
            create(local)?,
            create(meta)?,
            create(blocks)?,
        ];
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(handles))
    })?;
    Ok(Handles(created.unwrap_commit()))
}

fn open_tables(env: &heed::Env<WithoutTls>) -> Result<Handles, StorageError> {
    let opened = env.open_databases_and_commit(env.read_txn()?, |opener, txn| {
        let open = |table: Table| opener.open_database(txn, Some(table.name())).transpose();
        let missing = |table: Table| StorageError::missing(table, b"");
        let mut handles = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            handles.push(open(table).ok_or_else(|| missing(table))??);
        }
        let handles: [_; Table::ALL.len()] = handles.try_into().map_err(|_| missing(Table::Meta))?;
        Ok::<_, StorageError>(CommitOrAbort::<_, ()>::Commit(handles))
    })?;
    Ok(Handles(opened.unwrap_commit()))
}

fn write_row(txn: &mut RwTxn<'_>, handles: &Handles, row: &Row) -> Result<(), StorageError> {
    let handle = handles.of(row.table);
    match &row.change {
        RowChange::Put(value) => handle.put(txn, &row.key, value)?,
        RowChange::Append(value) => handle.put_with_flags(txn, PutFlags::APPEND, &row.key, value)?,
        RowChange::Delete => {
            handle.delete(txn, &row.key)?;
        }
    }
    Ok(())
}

/// An open read transaction.
pub(crate) struct Reading<'env> {
    txn: RoTxn<'env, WithoutTls>,
    handles: Handles,
    _gate: RwLockReadGuard<'env, ()>,
}

impl Reading<'_> {
    pub fn view(&self) -> View<'_> {
        View::new(&self.txn, self.handles)
    }
}
