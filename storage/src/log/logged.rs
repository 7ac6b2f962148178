//! An environment with a log in front of it.
//!
//! A write is planned over what LMDB has and what lies over it, becomes a record that is synced, and then rows that lie
//! over LMDB for whoever reads from now on. A thread freezes these rows now and then and puts them into LMDB in one
//! synced commit that says up to which record it has come; a segment is written over when LMDB has come past its last
//! record. So LMDB is a whole database by itself at every moment, only an older one.
//!
//! The log is of no use while the disk, the map or memory is nearly full, for a huge commit, when readers have all
//! slots, and when LMDB or the log's disk fails. Then LMDB is brought up to date first and written to as if there were
//! no log: what there is to say is said there.
//!
//! Locks are taken in this order: writing, applying, a permit to apply, the environment's own, the state. None is
//! waited for while the state is held. They are the standard library's, which are not handed over to whoever waits for
//! them: that may be the thread, which gives way to all others, and these would wait until it has had its turn.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::applier::docs_pages;
use super::claims::{Claim, DISK, MEMORY};
use super::load::{Coming, Load};
use super::memtable::Overlay;
use super::record::{self, Origin};
use super::replay::{FoundLog, Replayed, covered};
use super::segment::BYTES_MAX;
use super::segments::Segments;
use crate::codec::meta;
use crate::disk::FreeBytes;
use crate::env::{Durability, Env, ReadTxn};
use crate::error::StorageError;
use crate::gauge::StoreGauge;
use crate::notice::{Notice, SyncedBy, Tell};
use crate::room::Room;
use crate::rows::{Rows, ToWrite};
use crate::tables::{META_LOG, Table};
use crate::unwinding::unwinding;
use crate::view::View;

/// A record larger than this goes to LMDB by itself: a few of them fill the log.
const RECORD_BYTES_MAX: usize = BYTES_MAX as usize / 8;
/// A reader that came in between a commit and its being told looks again after so long, if it is not told before.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// After a failure whoever writes has LMDB asked at most so often whether it works again. A disk takes its time to
/// fail, on a thread that other databases wait for, and clients try again at once; but nobody who has made room should
/// notice.
const PAUSE: Duration = Duration::from_millis(100);

/// An environment and its log.
pub(crate) struct Logged {
    pub(super) shared: Arc<Shared>,
    /// Puts rows into LMDB, and gets to know documents; started when there are rows.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// What writers, readers and the thread share.
pub(super) struct Shared {
    pub env: Env,
    pub folder: PathBuf,
    /// The database whose log it is.
    origin: Origin,
    /// Told how long syncing took, and of LMDB's failures to take rows, which may concern nobody who writes.
    pub tell: Tell,
    /// Whether commits go to the log.
    logs: bool,
    /// Whether rows are put into LMDB without being asked to; tests do it themselves.
    by_itself: bool,
    /// One write at a time.
    writing: Mutex<Writing>,
    state: Mutex<State>,
    /// Told when something in the state has changed that is waited for.
    pub changed: Condvar,
    /// One commit of frozen rows at a time.
    pub applying: Mutex<()>,
}

/// What only whoever writes needs.
struct Writing {
    segments: Segments,
    /// Of the disk that has them and LMDB.
    free: FreeBytes,
    /// The number of a commit that failed and may be on the disk all the same, in the log or in LMDB: until LMDB says
    /// that it has come that far, nothing is written.
    void: Option<u64>,
}

/// What readers see, and how far LMDB has come. Commits are numbered; those that went to LMDB by themselves as well.
pub(super) struct State {
    pub over: Overlay,
    /// What is being written, and will be among these rows.
    pub coming: Coming,
    /// What these rows may need of the disk.
    pub disk: Claim,
    /// What they take in memory.
    pub memory: Claim,
    /// The last commit that is seen.
    pub number: u64,
    /// The last one whose rows are frozen.
    pub frozen_up_to: u64,
    /// The last one that LMDB has.
    pub covered: u64,
    /// Since when there are rows that are not frozen.
    pub since: Option<Instant>,
    /// How many pages LMDB has of documents, as it was last looked at.
    pub docs_pages: usize,
    /// That its documents cannot be known.
    pub knows_nothing: bool,
    /// How many wait until LMDB has come further.
    pub waiting: usize,
    /// That LMDB failed to take the frozen rows the last time.
    pub failed: Option<Failure>,
    /// Whether the thread runs.
    pub running: bool,
    pub closing: bool,
    /// The panic that broke off a commit. Half of the commit may be among the rows, and its number may be in the log,
    /// where another record of that number would be damage. So neither is used any more; the next opening reads the
    /// log.
    broken_off: Option<String>,
}

/// A failure of LMDB.
pub(super) struct Failure {
    pub error: StorageError,
    pub at: Instant,
}

impl State {
    /// Refuses a write soon after LMDB has failed, and what [`State::check`] does.
    fn check_write(&self) -> Result<(), StorageError> {
        self.check()?;
        match &self.failed {
            Some(Failure { error, at }) if at.elapsed() < PAUSE => Err(error.again()),
            _ => Ok(()),
        }
    }

    /// Refuses what is asked for after a panic that broke off a commit.
    pub fn check(&self) -> Result<(), StorageError> {
        match &self.broken_off {
            Some(what) => Err(StorageError::BrokenOff { what: what.clone() }),
            None => Ok(()),
        }
    }

    /// Freezes the newest rows, unless there are frozen ones.
    pub fn freeze(&mut self) {
        if self.over.frozen.is_none() && !self.over.active.is_empty() {
            self.over.frozen = Some(Arc::new(std::mem::take(&mut self.over.active)));
            (self.frozen_up_to, self.since) = (self.number, None);
        }
    }

    /// LMDB has come up to a commit that went there by itself.
    fn went_through(&mut self, number: u64) {
        (self.number, self.frozen_up_to, self.covered) = (number, number, number);
    }
}

/// One state of the tables.
pub(crate) struct Reading<'env> {
    over: Box<Overlay>,
    lmdb: ReadTxn<'env>,
}

impl Reading<'_> {
    pub fn view(&self) -> View<'_> {
        self.lmdb.view().under(&self.over)
    }
}

impl Logged {
    /// Puts a log in front of an environment, with what was replayed of the one that was found. Where LMDB does not
    /// take that, as on a full disk, it lies over LMDB and is read; writing waits until LMDB has taken it.
    pub fn open(
        folder: &Path,
        env: Env,
        durability: Durability,
        tell: Tell,
        found: FoundLog,
        replayed: Replayed,
    ) -> Result<Logged, StorageError> {
        // What the log is built on, and what it has, must outlive a power cut before anybody sees it. What the log
        // cannot keep LMDB has to take.
        let kept = replayed.keep(folder);
        let logged = Logged::new(folder, env, durability, tell, found, replayed, true)?;
        let shared = &logged.shared;
        let drained = if shared.logs && kept.is_ok() { None } else { Some(shared.drain()) };
        if drained.is_some() {
            shared.env.sync()?;
        }
        match (kept, drained) {
            (Err(why), Some(Err(_))) => return Err(StorageError::disk(why)),
            (_, Some(Ok(()))) => shared.writing().segments.remove(),
            _ => {}
        }
        logged.start();
        Ok(logged)
    }

    pub(super) fn new(
        folder: &Path,
        env: Env,
        durability: Durability,
        tell: Tell,
        found: FoundLog,
        replayed: Replayed,
        by_itself: bool,
    ) -> Result<Logged, StorageError> {
        let Replayed { origin, over, number, covered, .. } = replayed;
        let mut state = State {
            over,
            coming: Coming::default(),
            disk: Claim::on(&DISK),
            memory: Claim::on(&MEMORY),
            number,
            frozen_up_to: number,
            covered,
            since: None,
            docs_pages: docs_pages(&env).unwrap_or(0),
            knows_nothing: false,
            waiting: 0,
            failed: None,
            running: false,
            closing: false,
            broken_off: None,
        };
        let segments = found.into_segments(folder, number)?;
        state.claim_again(&env);
        let shared = Shared {
            env,
            folder: folder.to_owned(),
            origin,
            tell,
            logs: durability == Durability::Full,
            by_itself,
            writing: Mutex::new(Writing { segments, free: FreeBytes::default(), void: None }),
            state: Mutex::new(state),
            changed: Condvar::new(),
            applying: Mutex::new(()),
        };
        Ok(Logged { shared: Arc::new(shared), thread: Mutex::new(None) })
    }

    /// Opens one state for reading; see [`Env::read`].
    pub fn read(&self) -> Result<Reading<'_>, StorageError> {
        self.shared.read()
    }

    /// Plans and writes; see [`Env::write`]. The plan may be made twice on the same state.
    pub fn write<T>(
        &self,
        room: Room,
        mut plan: impl FnMut(View<'_>) -> Result<(Rows, T), StorageError>,
        committed: impl FnOnce(&T),
    ) -> Result<T, StorageError> {
        let shared = &self.shared;
        let mut writing = shared.writing();
        shared.state().check_write()?;
        shared.make_void(&mut writing)?;
        if !shared.logs || shared.goes_alone(&writing) {
            return shared.write_through(&mut writing, room, plan, committed);
        }
        let reading = match shared.read() {
            // Writing to LMDB needs no slot.
            Err(full) if full.is_too_many_readers() => {
                return shared.write_through(&mut writing, room, plan, committed);
            }
            read => read?,
        };
        let (rows, outcome) = plan(reading.view())?;
        drop(reading);
        if rows.is_empty() {
            committed(&outcome);
            return Ok(outcome);
        }
        if !shared.is_ready_for(&mut writing, room, &rows) {
            return shared.write_through(&mut writing, room, plan, committed);
        }
        shared.append_or_break_off(&mut writing, rows)?;
        self.start();
        committed(&outcome);
        Ok(outcome)
    }

    /// Has a test change the segments.
    #[cfg(test)]
    pub(super) fn with_segments(&self, change: impl FnOnce(&mut Segments)) {
        change(&mut self.shared.writing().segments);
    }

    /// What it and LMDB measure of themselves.
    pub fn gauge(&self) -> StoreGauge {
        self.shared.env.gauge()
    }

    /// The length of LMDB's file.
    pub fn file_bytes(&self) -> Result<u64, StorageError> {
        self.shared.env.file_bytes()
    }

    /// Puts all rows into LMDB, and closes it, waiting until no transaction uses it. Where LMDB does not take them the
    /// log stays, for the next opening.
    pub fn close(self) -> Result<(), StorageError> {
        self.stop();
        let mut writing = self.shared.writing();
        let settled = self.shared.settle(&mut writing);
        drop(writing);
        self.shared.env.close();
        settled
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn starts_by_itself(&self) -> bool {
        self.by_itself
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a commit is not worth a segment, or LMDB is to be asked first whether it works again.
    fn goes_alone(&self, writing: &Writing) -> bool {
        let state = self.state();
        state.failed.is_some() || (state.over.is_empty() && !writing.segments.are_wanted())
    }

    /// What lies over LMDB is taken first. LMDB may then have some of it already, which changes nothing; if it has more
    /// than that, both are taken again.
    fn read(&self) -> Result<Reading<'_>, StorageError> {
        loop {
            let (over, number) = {
                let state = self.state();
                state.check()?;
                (state.over.clone(), state.number)
            };
            #[cfg(test)]
            meanwhile::happens();
            let lmdb = self.env.read()?;
            let covered = covered(lmdb.view())?;
            if covered <= number {
                return Ok(Reading { over: Box::new(over), lmdb });
            }
            drop(lmdb);
            let told = self.changed.wait_timeout_while(self.state(), LOOK_AGAIN, |state| state.number < covered);
            drop(told);
        }
    }

    /// Whether a record of these rows can be appended now. Where there is no room before LMDB has got more, it waits
    /// for that.
    fn is_ready_for(&self, writing: &mut Writing, room: Room, rows: &Rows) -> bool {
        let bytes = rows.record_bytes();
        let coming = Coming { rows: Load::of(rows), segment_bytes: writing.segments.grow_by(bytes) };
        if bytes > RECORD_BYTES_MAX || !self.claim(coming, room, &mut writing.free) {
            return false;
        }
        let is_ready = writing.segments.current(bytes).is_some()
            || self.wait_until_covered(writing.segments.needed_before_next()) && writing.segments.begin(bytes);
        if !is_ready {
            self.state().nothing_comes(&self.env);
        }
        is_ready
    }

    /// The same as [`Shared::append`]; where it panics, nothing goes on.
    fn append_or_break_off(&self, writing: &mut Writing, rows: Rows) -> Result<(), StorageError> {
        let appended = unwinding(|| self.append(writing, rows));
        if let Err(StorageError::Panicked { what }) = appended {
            let mut state = self.state();
            (state.broken_off, state.closing) = (Some(what), true);
            let broken_off = state.check();
            drop(state);
            self.changed.notify_all();
            return broken_off;
        }
        appended
    }

    /// Writes a record for which a segment is ready, syncs it, and shows its rows.
    fn append(&self, writing: &mut Writing, mut rows: Rows) -> Result<(), StorageError> {
        let number = self.state().number + 1;
        let Some(segment) = writing.segments.current(rows.record_bytes()) else {
            return Err(StorageError::Closed);
        };
        let record = record::encode(self.origin, segment.generation(), number, &mut rows);
        let began = Instant::now();
        if let Err(why) = segment.append(number, record) {
            self.state().nothing_comes(&self.env);
            writing.void = Some(number);
            return match self.make_void(writing) {
                Ok(()) => Err(StorageError::disk(why)),
                Err(_) => Err(StorageError::InDoubt { source: why }),
            };
        }
        (self.tell)(&self.folder, &Notice::Synced { by: SyncedBy::Log, took: began.elapsed() });
        self.show(number, rows);
        Ok(())
    }

    /// From now on readers see these rows.
    fn show(&self, number: u64, rows: Rows) {
        let mut state = self.state();
        state.over.insert(rows);
        #[cfg(test)]
        meanwhile::happens();
        state.nothing_comes(&self.env);
        state.number = number;
        // The thread looks by itself how long rows have waited, once there are some.
        let is_first = state.since.is_none();
        if is_first {
            state.since = Some(Instant::now());
        }
        let wakes = state.begin_to_know() || is_first || state.is_large();
        drop(state);
        if wakes {
            self.changed.notify_all();
        }
    }

    /// Writes to LMDB by itself, once it has everything from before.
    fn write_through<T>(
        &self,
        writing: &mut Writing,
        room: Room,
        mut plan: impl FnMut(View<'_>) -> Result<(Rows, T), StorageError>,
        committed: impl FnOnce(&T),
    ) -> Result<T, StorageError> {
        self.drain()?;
        let number = self.state().number + 1;
        let plan = |view: View<'_>| {
            let (mut rows, outcome) = plan(view)?;
            let writes = !rows.is_empty();
            self.know(&rows);
            if writes {
                rows.put(Table::Meta, META_LOG, meta::encode_number(number));
            }
            Ok((rows, (outcome, writes)))
        };
        let told = |(outcome, writes): &(T, bool)| {
            if *writes {
                self.went_through(number);
            }
            committed(outcome);
        };
        let written = self.env.write(room, plan, told);
        if let Err(StorageError::InDoubt { .. }) = &written {
            writing.void = Some(number);
        }
        if self.state().number == number {
            writing.segments.note_commit();
        }
        written.map(|(outcome, _)| outcome)
    }

    /// Has LMDB say that it has come past a commit that must not count.
    fn make_void(&self, writing: &mut Writing) -> Result<(), StorageError> {
        let Some(number) = writing.void else { return Ok(()) };
        self.drain()?;
        let past = |_: View<'_>| {
            let mut rows = Rows::default();
            rows.put(Table::Meta, META_LOG, meta::encode_number(number));
            Ok((rows, ()))
        };
        let written = self.env.write(Room::Reserve, past, |()| self.went_through(number));
        written.map_err(StorageError::of_an_earlier_one)?;
        // A file whose sync has failed once is not trusted again.
        writing.segments.remove();
        writing.void = None;
        Ok(())
    }

    /// Has LMDB take everything for good, so that no log is needed any more.
    fn settle(&self, writing: &mut Writing) -> Result<(), StorageError> {
        self.state().check()?;
        self.make_void(writing)?;
        self.drain()?;
        // What the log had promised must outlive a power cut without it, also where LMDB took it in relaxed durability.
        if writing.segments.any() {
            self.env.sync()?;
        }
        writing.segments.remove();
        Ok(())
    }

    fn went_through(&self, number: u64) {
        self.state().went_through(number);
        self.changed.notify_all();
    }
}

#[cfg(test)]
impl State {
    /// From now on LMDB failed the last time, so long ago that it is asked again.
    pub fn has_failed_before(&mut self) {
        let at = Instant::now().checked_sub(2 * PAUSE).unwrap();
        self.failed = Some(Failure { error: StorageError::Closed, at });
    }
}

/// What a test has happen while a thread has read one thing and not yet the other (the rows in memory and LMDB's state,
/// or the two files of the log), puts rows into LMDB, or shows them.
#[cfg(test)]
pub(crate) mod meanwhile {
    use std::cell::RefCell;

    thread_local! {
        static NEXT: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    }

    pub fn set(next: impl FnOnce() + 'static) {
        NEXT.replace(Some(Box::new(next)));
    }

    pub fn happens() {
        if let Some(next) = NEXT.take() {
            next();
        }
    }
}
