//! The thread that puts rows from the log into LMDB.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(test)]
use super::logged::meanwhile;
use super::logged::{Failure, Logged, Shared, State};
use super::memtable::Memtable;
use super::permits::APPLYING;
use crate::codec::meta;
use crate::env::Env;
use crate::error::StorageError;
use crate::notice::Notice;
use crate::room::Room;
use crate::rows::{Row, ToWrite};
use crate::tables::{META_LOG, Table};
use crate::unwinding::unwinding;
use crate::view::View;

/// How much is gathered for one transaction of LMDB.
pub(super) struct Patience {
    /// Rows go to LMDB when they have waited for so long.
    wait: Duration,
    /// They go when they are so many.
    pub rows: usize,
    /// They go when so many of them [may lie anywhere](crate::rows::Rows::scattered) in their tables. Each may have a
    /// page to itself, which takes LMDB as long as several of those that come one behind the other.
    pub scattered: usize,
    /// They go when they are so many bytes.
    bytes: usize,
}

/// With few rows, and where memory is short. A sync of the log that meets one of LMDB's takes several times as long:
/// in this way few do where little is written.
const USUAL: Patience = Patience { wait: Duration::from_secs(1), rows: 80_000, scattered: 80_000, bytes: 16 << 20 };
/// With many rows: the more they are, the more of them share a page. Still more take more memory, and each takes longer
/// to be put in and found.
pub(super) const LONG: Patience = Patience { wait: LONGEST_WAIT, rows: 480_000, scattered: 200_000, bytes: 60 << 20 };
/// No rows wait longer before LMDB begins to take them, where it is not behind.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// So many are many: fewer would have most of the pages to themselves after three seconds too.
const MANY_ROWS: usize = 40_000;
/// Among so many pages of documents nearly half of those that wait have theirs to themselves: the 160,000 new documents
/// of 480,000 rows have 110,000 pages, where six transactions of 27,000 have 150,000. The memory is worth more there.
const PAGES_MANY: usize = 200_000;
/// A thread that has nothing to do for so long ends.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// After a failure LMDB is tried again as often as this, besides by whoever writes.
const RETRY: Duration = Duration::from_secs(1);

impl State {
    fn patience(&self) -> Patience {
        let is_worth_it = self.over.active.len() >= MANY_ROWS && self.docs_pages < PAGES_MANY && self.memory_is_ample();
        if is_worth_it { LONG } else { USUAL }
    }

    /// Whether the newest rows should not wait any longer because of what they take.
    pub fn is_large(&self) -> bool {
        let Patience { rows, scattered, bytes, .. } = self.patience();
        let active = &self.over.active;
        active.len() >= rows || active.scattered() >= scattered || active.bytes() >= bytes
    }

    /// Whether somebody waits until LMDB has come further, or the thread has ended.
    fn is_waited_for(&self) -> bool {
        self.waiting > 0 || self.closing
    }

    /// How long the newest rows wait yet, which have waited for so long.
    pub fn rest(&self, waited: Duration) -> Duration {
        if self.is_large() { Duration::ZERO } else { self.patience().wait.saturating_sub(waited) }
    }
}

/// Somebody waits until LMDB has come further, for as long as this lives.
pub(super) struct Waits<'a>(&'a Shared);

impl<'a> Waits<'a> {
    pub fn for_lmdb(shared: &'a Shared) -> Waits<'a> {
        shared.state().waiting += 1;
        Waits(shared)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

impl Logged {
    /// Starts the thread if there is something for it to do and it does not run.
    pub(super) fn start(&self) {
        let mut state = self.shared.state();
        if state.running || state.over.is_empty() || !self.shared.starts_by_itself() {
            return;
        }
        state.running = true;
        drop(state);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = thread.take() {
            let _ = ended.join();
        }
        let shared = Arc::clone(&self.shared);
        match thread::Builder::new().name("log".to_owned()).spawn(move || shared.run()) {
            Ok(started) => *thread = Some(started),
            // The rows are in the log: whoever writes when it is full puts them into LMDB.
            Err(_) => self.shared.state().running = false,
        }
    }

    pub(super) fn stop(&self) {
        self.shared.state().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// What the thread does.
enum Work {
    /// Put the frozen rows into LMDB.
    Apply,
    /// Get to know some of the documents that LMDB has.
    Learn,
}

/// A thread that a panic has ended does not run either.
struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state().running = false;
            self.0.changed.notify_all();
        }
    }
}

impl Shared {
    /// Puts rows into LMDB when it is time, and gets to know documents in between, until nothing has come for a while.
    fn run(&self) {
        let _running = Running(self);
        be_nice();
        while let Some(work) = self.next_work() {
            match work {
                Work::Apply if self.apply().is_err() => {
                    drop(self.changed.wait_timeout_while(self.state(), RETRY, |state| !state.closing));
                }
                // Where LMDB is behind there is always something to put into it.
                Work::Apply if self.state().is_waited_for() => {}
                Work::Apply | Work::Learn => self.learn(),
            }
        }
    }

    /// Waits until there is something to do; freezes rows that are to be put into LMDB. `None` when the thread is to
    /// end.
    fn next_work(&self) -> Option<Work> {
        let mut state = self.state();
        let mut idle_since = Instant::now();
        loop {
            let idle = idle_since.elapsed();
            if state.closing || (state.over.is_empty() && idle >= IDLE_MAX) {
                // While the state is held: who adds rows from now on starts another.
                state.running = false;
                return None;
            }
            let rest = state.since.map(|since| state.rest(since.elapsed()));
            if rest.is_some_and(|rest| rest.is_zero()) || state.over.frozen.is_some() {
                state.freeze();
                return Some(Work::Apply);
            }
            if state.learns() {
                return Some(Work::Learn);
            }
            if rest.is_some() {
                idle_since = Instant::now();
            }
            let rest = rest.unwrap_or_else(|| IDLE_MAX.saturating_sub(idle));
            state = self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until LMDB has come up to a commit; `false` where that cannot be waited for.
    pub fn wait_until_covered(&self, number: u64) -> bool {
        let _waits = Waits::for_lmdb(self);
        let mut state = self.state();
        while state.covered < number {
            if state.failed.is_some() || !state.running {
                return false;
            }
            state.freeze();
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Puts all rows into LMDB, here and now.
    pub fn drain(&self) -> Result<(), StorageError> {
        let _waits = Waits::for_lmdb(self);
        loop {
            self.state().freeze();
            if self.state().over.is_empty() {
                return Ok(());
            }
            self.apply()?;
        }
    }

    /// Puts the frozen rows into LMDB, if there are any.
    pub fn apply(&self) -> Result<(), StorageError> {
        let _one = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        let (frozen, up_to) = {
            let state = self.state();
            state.check()?;
            (state.over.frozen.clone(), state.frozen_up_to)
        };
        let Some(frozen) = frozen else { return Ok(()) };
        let permit = APPLYING.take();
        let plan = |_: View<'_>| {
            #[cfg(test)]
            meanwhile::happens();
            let frozen = Frozen { rows: Arc::clone(&frozen), up_to: meta::encode_number(up_to), shared: self };
            Ok((frozen, ()))
        };
        // A panic is a failure like others: told, and tried again.
        let written = unwinding(|| self.env.write(Room::Reserve, plan, |()| {}));
        drop(permit);
        let applied = written.map_err(StorageError::of_an_earlier_one);
        let docs_pages = applied.is_ok().then(|| docs_pages(&self.env)).flatten();
        self.make_room_to_know();
        let mut state = self.state();
        let failure = applied.as_ref().err().map(|error| Failure { error: error.again(), at: Instant::now() });
        let failed_before = std::mem::replace(&mut state.failed, failure).is_some();
        if applied.is_ok() {
            (state.over.frozen, state.covered) = (None, up_to);
            state.docs_pages = docs_pages.unwrap_or(state.docs_pages);
            state.forget_too_many();
            // What has become large meanwhile is next; who waits for room need not wait until LMDB has that as well.
            if state.is_large() {
                state.freeze();
            }
            state.claim_again(&self.env);
        }
        drop(state);
        self.changed.notify_all();
        match &applied {
            Err(error) => (self.tell)(&self.folder, &Notice::Stalled { error, first: !failed_before }),
            Ok(()) if failed_before => (self.tell)(&self.folder, &Notice::Resumed),
            Ok(()) => {}
        }
        applied
    }
}

/// How many pages there are of documents; `None` where no reader may look.
pub(super) fn docs_pages(env: &Env) -> Option<usize> {
    env.read().and_then(|reading| reading.leaf_pages(Table::Docs)).ok()
}

/// Makes this thread nicer than those that write. Nobody waits for it before much has come. Where processors are few it
/// would otherwise take turns with them, and clients would wait that much longer for their answers.
fn be_nice() {
    // Elsewhere niceness is not a thread's but the process's.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}

/// Frozen rows, and up to which commit they are.
pub(super) struct Frozen<'a> {
    pub rows: Arc<Memtable>,
    pub up_to: Vec<u8>,
    pub shared: &'a Shared,
}

impl ToWrite for Frozen<'_> {
    fn is_empty(&self) -> bool {
        false
    }

    fn in_order(&self) -> impl Iterator<Item = Row<'_>> {
        let up_to = Row { table: Table::Meta, key: META_LOG, value: Some(&self.up_to[..]) };
        self.rows.rows().chain([up_to])
    }

    fn are_many(&self) -> bool {
        self.rows.len() >= MANY_ROWS
    }

    fn are_awaited(&self) -> bool {
        let state = self.shared.state();
        state.is_waited_for() || state.is_large()
    }
}
