//! One LMDB environment: opening it, reading it, writing rows to it, growing its map.
//!
//! It needs `unsafe`: a file that is mapped can be changed by others, of which only lock files keep them, and LMDB's
//! map may be resized only while no transaction of the process is open.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heed::types::Bytes;
use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions, MdbError, RoTxn, WithoutTls};
use memmap2::Mmap;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use rustix::fs::{Stat, fstat};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Resource, getrlimit};

use crate::disk::{MetaPages, READERS_NAME, allocate, allocate_lock_file};
use crate::error::{StorageError, is_full};
use crate::gauge::StoreGauge;
use crate::last_commits::LastCommits;
use crate::notice::{Notice, SyncedBy, Tell};
use crate::room::Room;
use crate::rows::ToWrite;
use crate::seal::Seals;
use crate::tables::{Handles, Table};
use crate::view::View;
use crate::write_out::write_out;
use crate::write_rows::{WriteRows, note_commit};

/// LMDB's file in a database's folder.
pub(crate) const DATA_FILE: &str = "data.mdb";

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
    /// A map is doubled when it is full, up to this much address space, a multiple of the page size.
    pub map_bytes_max: usize,
    /// Most read transactions at once.
    pub readers_max: u32,
    pub durability: Durability,
    /// Told how long syncing took.
    pub tell: Tell,
}

/// How often a commit is tried that the disk fails. LMDB reports a write that was cut short by a full disk as it
/// reports a disk that fails. Where there is room again by the time it is asked why, only writing once more tells which
/// it was.
const DISK_ATTEMPTS: usize = 2;

/// How often it is looked for readers in other processes that have ended without a word, as a `seqtide check` that was
/// killed: the pages that they saw could not be used again.
const STALE_READERS_EVERY: Duration = Duration::from_secs(5);

/// No map is larger, in bytes: half the address space a process has on common machines.
pub(crate) const MAP_BYTES_MAX: usize = 1 << 46;

pub(crate) struct Env {
    folder: PathBuf,
    options: EnvOptions,
    seals: Seals,
    /// Held shared by every open read transaction, exclusively while the map grows or the environment is opened anew.
    /// Empty when that failed.
    lmdb: RwLock<Option<Lmdb>>,
    /// Bytes of the pages that tables need, as of the last commit.
    used_bytes: AtomicUsize,
    /// Where the last page ends that was ever in use, as of the last commit.
    end_bytes: AtomicUsize,
    /// The address space reserved. It is kept here to be known without the gate, which is shut while the map is to
    /// grow, for as long as readers take.
    map_bytes: AtomicUsize,
    /// How large a page is.
    page_bytes: usize,
    /// One write at a time, its transaction opened, used and committed on one thread.
    writing: Mutex<Writing>,
    /// When it was last looked for readers that are gone.
    cleared: Mutex<Instant>,
}

/// What is known between two writes.
#[derive(Default)]
struct Writing {
    /// What a failed commit may have changed of the meta pages, until it is undone on disk.
    undone: Option<MetaPages>,
    /// With relaxed durability alone; with full durability the meta pages are synced.
    last_commits: LastCommits,
}

/// An open environment and its tables.
#[derive(Clone)]
struct Lmdb {
    env: heed::Env<WithoutTls>,
    handles: Handles,
    /// The data file: writing must not need another descriptor. Only [`write_out`] opens one, and does without it where
    /// there is none to be had.
    data: Arc<File>,
}

impl Env {
    /// Opens the environment in a folder, which must exist, and makes the tables that are missing. What is there was
    /// synced: the first commit builds on it.
    pub fn open(folder: &Path, options: EnvOptions) -> Result<Env, StorageError> {
        let lmdb = open_lmdb(folder, options)?;
        let txn = lmdb.env.read_txn()?;
        let used_bytes = AtomicUsize::new(lmdb.used_bytes(&txn)?);
        drop(txn);
        let (end_bytes, map_bytes) = (AtomicUsize::new(lmdb.end_bytes()), AtomicUsize::new(lmdb.map_bytes()));
        let page_bytes = lmdb.page_bytes();
        let (lmdb, writing) = (RwLock::new(Some(lmdb)), Mutex::new(Writing::default()));
        let (folder, seals) = (folder.to_owned(), Seals::Optional);
        let cleared = Mutex::new(Instant::now());
        Ok(Env { folder, options, seals, lmdb, used_bytes, end_bytes, map_bytes, page_bytes, writing, cleared })
    }

    /// From now on a row without a checksum is damaged.
    pub fn require_seals(&mut self) {
        self.seals = Seals::Required;
    }

    /// Opens a read transaction. It must not outlive a page: it pins what it can see. A thread that has one open must
    /// neither open another nor write: a map about to grow waits for the first and holds up the second.
    pub fn read(&self) -> Result<ReadTxn<'_>, StorageError> {
        match self.try_read() {
            Err(StorageError::Closed | StorageError::Lmdb(heed::Error::Mdb(MdbError::Panic))) => {
                // The writer is about to open the environment anew, or could not: then it may be possible by now.
                let mut writing = self.writing.lock();
                let settled = self.settle(&mut writing);
                drop(writing);
                self.try_read().map_err(|closed| settled.err().unwrap_or(closed))
            }
            read => read,
        }
    }

    fn try_read(&self) -> Result<ReadTxn<'_>, StorageError> {
        let gate = self.lmdb.read();
        let Lmdb { env, handles, .. } = gate.clone().ok_or(StorageError::Closed)?;
        Ok(ReadTxn { txn: env.static_read_txn()?, handles, seals: self.seals, _gate: gate })
    }

    fn lmdb(&self) -> Result<Lmdb, StorageError> {
        self.lmdb.read().clone().ok_or(StorageError::Closed)
    }

    /// The environment, while no transaction is open but the caller's.
    fn alone(&self) -> RwLockWriteGuard<'_, Option<Lmdb>> {
        self.lmdb.write()
    }

    /// Lets `plan` read the newest state and decide on rows, writes them, commits, and tells `committed` before the
    /// next write starts. While the map is too small for the rows it grows, and the same plan is made once more; so it
    /// is after a failure that may have been a disk full for a moment. Nothing is written when anything fails, but see
    /// [`StorageError::InDoubt`].
    pub fn write<R: ToWrite, T>(
        &self,
        room: Room,
        mut plan: impl FnMut(View<'_>) -> Result<(R, T), StorageError>,
        committed: impl FnOnce(&T),
    ) -> Result<T, StorageError> {
        let mut writing = self.writing.lock();
        let mut attempts = 1..DISK_ATTEMPTS;
        loop {
            self.settle(&mut writing)?;
            let lmdb = self.lmdb()?;
            self.clear_stale_readers(&lmdb);
            let before = lmdb.meta_pages()?;
            let relaxed = self.options.durability == Durability::Relaxed;
            let kept = if relaxed { writing.last_commits.keep(&lmdb.env) } else { Ok(()) };
            let mut used_bytes = self.used_bytes();
            let check_room = |used| {
                used_bytes = used;
                room.check(used, self.options.map_bytes_max)
            };
            let synced = |took| (self.options.tell)(&self.folder, &Notice::Synced { by: SyncedBy::Lmdb, took });
            let before_sync = |rows: &R| {
                if rows.are_many() {
                    write_out(&self.folder.join(DATA_FILE), || rows.are_awaited());
                }
            };
            let written = kept
                .map_err(StorageError::from)
                .and_then(|()| lmdb.try_write(check_room, self.seals, before_sync, synced, &mut plan));
            if written.is_ok() {
                if relaxed {
                    writing.last_commits.follow(&lmdb.env);
                }
                self.used_bytes.store(used_bytes, Ordering::Relaxed);
            }
            self.end_bytes.store(lmdb.end_bytes(), Ordering::Relaxed);
            drop(lmdb);
            match written {
                Err(StorageError::Lmdb(heed::Error::Mdb(MdbError::MapFull))) => self.grow(&mut writing.last_commits)?,
                Err(StorageError::DiskFull { source } | StorageError::Lmdb(heed::Error::Io(source))) => {
                    let why = before.why(source);
                    writing.undone = Some(before);
                    match self.undo(&mut writing, why) {
                        StorageError::DiskFailed { .. } if attempts.next().is_some() => {}
                        failed => return Err(failed),
                    }
                }
                done => return done.inspect(committed),
            }
        }
    }

    /// Where it fails only pages stay pinned, and it is tried again.
    fn clear_stale_readers(&self, lmdb: &Lmdb) {
        let mut cleared = self.cleared.lock();
        if cleared.elapsed() >= STALE_READERS_EVERY {
            *cleared = Instant::now();
            let _ = lmdb.env.clear_stale_readers();
        }
    }

    /// Undoes a commit that failed; gives the answer for its writers.
    fn undo(&self, writing: &mut Writing, why: io::Error) -> StorageError {
        // LMDB panics when it was overwriting a meta page, and at no other failure.
        let may_stand = self.panicked();
        match self.settle(writing) {
            Err(_) if may_stand => StorageError::InDoubt { source: why },
            _ => StorageError::disk(why),
        }
    }

    /// Undoes what a failed commit may have changed, opening the environment anew where that is needed. Until it has
    /// succeeded nothing is written; reading goes on as soon as the meta pages are those of the last commit.
    fn settle(&self, writing: &mut Writing) -> Result<(), StorageError> {
        let Writing { undone, last_commits } = writing;
        let Some(before) = undone.as_ref() else { return self.open_again() };
        // First: until it is done, whoever opens the file may find half a commit.
        let put_back = before.put_back();
        if self.panicked() {
            self.close_lmdb(last_commits);
        }
        put_back.map_err(StorageError::disk)?;
        self.open_again()?;
        before.sync().map_err(StorageError::disk)?;
        *undone = None;
        Ok(())
    }

    /// Whether LMDB will do nothing any more until it is opened anew; asked between two writes.
    fn panicked(&self) -> bool {
        let panic = |lmdb: Lmdb| matches!(lmdb.env.write_txn(), Err(heed::Error::Mdb(MdbError::Panic)));
        self.lmdb().is_ok_and(panic)
    }

    /// Opens the environment if it is not open.
    fn open_again(&self) -> Result<(), StorageError> {
        if self.lmdb().is_ok() {
            return Ok(());
        }
        let mut alone = self.alone();
        if alone.is_none() {
            let lmdb = open_lmdb(&self.folder, self.options)?;
            self.map_bytes.store(lmdb.map_bytes(), Ordering::Relaxed);
            *alone = Some(lmdb);
        }
        Ok(())
    }

    fn close_lmdb(&self, last_commits: &mut LastCommits) {
        last_commits.let_go();
        if let Some(Lmdb { env, .. }) = self.alone().take() {
            env.prepare_for_closing().wait();
        }
    }

    fn grow(&self, last_commits: &mut LastCommits) -> Result<(), StorageError> {
        let (map_bytes, map_bytes_max) = (self.map_bytes(), self.options.map_bytes_max);
        // Before readers are waited for, which may be long.
        if map_bytes >= map_bytes_max {
            if last_commits.make_room() {
                return Ok(());
            }
            return Err(StorageError::MapFull { map_bytes_max });
        }
        last_commits.let_go();
        let alone = self.alone();
        let lmdb = alone.as_ref().ok_or(StorageError::Closed)?;
        // SAFETY: no transaction is open: readers hold the gate, the only writer is this thread between two attempts,
        // and the last commits are let go.
        let grown = unsafe { lmdb.env.resize(map_bytes.saturating_mul(2).min(map_bytes_max)) };
        if grown.is_ok() {
            // Where it has failed there is no map to be asked.
            self.map_bytes.store(lmdb.map_bytes(), Ordering::Relaxed);
        }
        drop(alone);
        if grown.is_err() {
            // LMDB has let go of the old map before it asked for the new one.
            self.close_lmdb(last_commits);
            self.open_again()?;
        }
        Ok(grown?)
    }

    /// Refuses what needs more bytes than there are behind the last page that was ever in use. Many before it may be
    /// free, but readers may keep all of them from being used again.
    pub fn check_room_at_the_end(&self, room: Room, bytes: usize) -> Result<(), StorageError> {
        let end_bytes = self.end_bytes.load(Ordering::Relaxed);
        room.check(end_bytes.saturating_add(bytes), self.options.map_bytes_max)
    }

    /// Bytes of the pages that tables need, as of the last commit.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Syncs everything: what relaxed durability has committed outlives a power cut then.
    pub fn sync(&self) -> Result<(), StorageError> {
        Ok(self.lmdb()?.env.force_sync()?)
    }

    /// What it measures of itself.
    pub fn gauge(&self) -> StoreGauge {
        let (map_bytes, page_bytes) = (self.map_bytes(), self.page_bytes);
        let (used_bytes, end_bytes) = (self.used_bytes(), self.end_bytes.load(Ordering::Relaxed));
        StoreGauge { used_bytes, end_bytes, map_bytes, page_bytes }
    }

    /// The address space reserved.
    fn map_bytes(&self) -> usize {
        self.map_bytes.load(Ordering::Relaxed)
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> Result<u64, StorageError> {
        let file = self.folder.join(DATA_FILE);
        Ok(file.metadata().map_err(StorageError::io(&file))?.len())
    }

    /// Closes the environment, waiting until no transaction uses it.
    pub fn close(&self) {
        self.close_lmdb(&mut self.writing.lock().last_commits);
    }
}

fn open_lmdb(folder: &Path, options: EnvOptions) -> Result<Lmdb, StorageError> {
    let (flags, readers_max) = match options.durability {
        Durability::Full => (EnvFlags::empty(), options.readers_max),
        Durability::Relaxed => (EnvFlags::NO_META_SYNC, options.readers_max + LastCommits::READERS),
    };
    allocate_lock_file(folder, readers_max)?;
    let mut open = EnvOpenOptions::new().read_txn_without_tls();
    let map_bytes = options.map_bytes.min(options.map_bytes_max);
    open.map_size(map_bytes).max_readers(readers_max).max_dbs(16);
    // SAFETY: the data folder's lock keeps other processes away (`data_folder.rs`), the catalogue opens a folder once;
    // NO_META_SYNC leaves the file whole after a crash, with `last_commits.rs`.
    let env = unsafe { open.flags(flags).open(folder)? };
    let data = Arc::new(env.try_clone_inner_file()?);
    keep_from_children(&data)?;
    env.clear_stale_readers()?;
    let handles = create_tables(&env)?;
    Ok(Lmdb { env, handles, data })
}

/// Has the programs that this process starts not inherit LMDB's descriptor of a data file, of which `data` is a copy.
/// LMDB opens it so that they do, and nothing tells its number: it is mostly the one just below the copy's. A program
/// that another thread starts in this very moment has it all the same.
fn keep_from_children(data: &File) -> Result<(), StorageError> {
    let copy = data.as_raw_fd();
    let place = |file: Stat| (file.st_dev, file.st_ino);
    let opened = fstat(data).map(place).map_err(|why| heed::Error::Io(why.into()))?;
    let end = getrlimit(Resource::Nofile).current.and_then(|end| RawFd::try_from(end).ok()).unwrap_or(copy);
    for number in (0..copy).rev().chain(copy + 1..end) {
        // SAFETY: the descriptor may be anybody's, or none. It is only asked about, unless it is the data file's; of
        // those LMDB's alone are inherited, and the one that was just opened is not closed meanwhile.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        if fcntl_getfd(descriptor) != Ok(FdFlags::empty()) {
            continue;
        }
        if fstat(descriptor).map(place) == Ok(opened) {
            fcntl_setfd(descriptor, FdFlags::CLOEXEC).map_err(|why| heed::Error::Io(why.into()))?;
            break;
        }
    }
    Ok(())
}

impl Lmdb {
    fn meta_pages(&self) -> Result<MetaPages, StorageError> {
        Ok(MetaPages::read(Arc::clone(&self.data), self.page_bytes()).map_err(heed::Error::Io)?)
    }

    /// Plans, writes and commits, if there is room for what is in use then.
    fn try_write<R: ToWrite, T>(
        &self,
        check_room: impl FnOnce(usize) -> Result<(), StorageError>,
        seals: Seals,
        before_sync: impl FnOnce(&R),
        synced: impl FnOnce(Duration),
        plan: &mut impl FnMut(View<'_>) -> Result<(R, T), StorageError>,
    ) -> Result<T, StorageError> {
        let mut txn = self.env.write_txn()?;
        let (rows, outcome) = plan(View::of_lmdb(&txn, self.handles, seals))?;
        if rows.is_empty() {
            txn.abort();
            return Ok(outcome);
        }
        let mut writing = WriteRows::new(&mut txn, self.handles);
        rows.in_order().try_for_each(|row| writing.write(row))?;
        note_commit(&mut txn, self.handles.of(Table::Meta))?;
        check_room(self.used_bytes(&txn)?)?;
        let began = Instant::now();
        before_sync(&rows);
        // Its commits are its syncs.
        txn.commit()?;
        synced(began.elapsed());
        Ok(outcome)
    }

    fn page_bytes(&self) -> usize {
        self.env.unnamed_database_stat().page_size as usize
    }

    fn map_bytes(&self) -> usize {
        self.env.info().map_size
    }

    /// Where the last page ends that was ever in use, as of the last commit.
    fn end_bytes(&self) -> usize {
        (self.env.info().last_page_number + 1) * self.page_bytes()
    }

    /// Bytes of the pages that tables need; all others can be used again.
    fn used_bytes(&self, txn: &RoTxn<'_>) -> Result<usize, StorageError> {
        let mut bytes = 0;
        for table in Table::ALL {
            let stat = self.handles.of(table).stat(txn)?;
            bytes += stat.page_size as usize * (stat.branch_pages + stat.leaf_pages + stat.overflow_pages);
        }
        Ok(bytes)
    }
}

/// Opens the tables, making those that are missing.
fn create_tables(env: &heed::Env<WithoutTls>) -> Result<Handles, StorageError> {
    let txn = env.write_txn()?;
    let created = env.create_databases_and_commit(txn, |opener, txn| {
        let mut missing = false;
        for table in Table::ALL {
            missing = missing || opener.open_database::<Bytes, Bytes>(txn, Some(table.name()))?.is_none();
        }
        let mut handles = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            handles.push(opener.create_database::<Bytes, Bytes>(txn, Some(table.name()))?);
        }
        let handles: [_; Table::ALL.len()] = handles.try_into().map_err(|_| StorageError::missing(Table::Meta, b""))?;
        if missing {
            note_commit(txn, handles[Table::Meta as usize])?;
        }
        Ok::<_, StorageError>(CommitOrAbort::<_, ()>::Commit(handles))
    })?;
    Ok(Handles(created.unwrap_commit()))
}

/// Keeps the pages of the newest commit, and of all that follow, from being used again by the process that writes to
/// the environment in a folder.
pub(crate) struct Pin {
    _txn: RoTxn<'static, WithoutTls>,
}

impl Pin {
    /// `None` where this process may not write to LMDB's table of readers, where there is no room for it on the disk,
    /// and where there is none: then no server has the folder, and none is made, which would be this user's.
    pub fn set(folder: &Path, map_bytes: usize) -> Result<Option<Pin>, StorageError> {
        let readers = folder.join(READERS_NAME);
        let given = OpenOptions::new().read(true).write(true).open(&readers).and_then(|file| {
            let bytes = file.metadata()?.len();
            // A server's is never empty. To look at a part that the disk has no room for ends the process.
            if bytes == 0 { Err(NotFound.into()) } else { allocate(&file, bytes) }
        });
        match given {
            Err(why) if is_full(&why) => return Ok(None),
            Err(why) if matches!(why.kind(), NotFound | PermissionDenied | ReadOnlyFilesystem) => return Ok(None),
            given => given.map_err(StorageError::io(&readers))?,
        }
        let mut open = EnvOpenOptions::new().read_txn_without_tls();
        open.map_size(map_bytes);
        // SAFETY: nothing is written, and no page is read but the meta pages, which the caller has looked at.
        let env = unsafe { open.flags(EnvFlags::READ_ONLY).open(folder)? };
        keep_from_children(&env.try_clone_inner_file()?)?;
        Ok(Some(Pin { _txn: env.static_read_txn()? }))
    }
}

/// Maps a file for reading, as long as it is now.
pub(crate) fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: the file is a database's, which never shrinks. Who writes to it leaves pinned pages as they are; other
    // pages may change while they are looked at, which makes them other pages, as each is checked where it is read.
    unsafe { Mmap::map(file) }
}

/// An open read transaction.
pub(crate) struct ReadTxn<'env> {
    txn: RoTxn<'static, WithoutTls>,
    handles: Handles,
    seals: Seals,
    _gate: RwLockReadGuard<'env, Option<Lmdb>>,
}

impl ReadTxn<'_> {
    pub fn view(&self) -> View<'_> {
        View::of_lmdb(&self.txn, self.handles, self.seals)
    }

    /// How many pages have a table's rows.
    pub fn leaf_pages(&self, table: Table) -> Result<usize, StorageError> {
        Ok(self.handles.of(table).stat(&self.txn)?.leaf_pages)
    }
}
