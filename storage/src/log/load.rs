//! What waits for LMDB, and whether it will fit: into LMDB, as what is acknowledged must not meet a full disk or a full
//! map later, and into memory until then.

use super::applier::LONG;
use super::logged::{Shared, State};
use super::memtable::Memtable;
use crate::disk::FreeBytes;
use crate::env::Env;
use crate::room::Room;
use crate::rows::Rows;

/// A row may touch a leaf of a table, and part of a branch; pages beyond those that are in use are needed for both.
const PAGES_A_ROW: usize = 2;
const PAGE_BYTES: usize = 4096;
/// There must be as much room beyond what waits, on the disk for all logs and in each map, or the log is not used.
const SPARE_BYTES: usize = 64 << 20;
/// The most that a row takes in memory beyond its record: 32 bytes in a run, which may have room for as many rows
/// again, as much while runs are merged, and what an older state of them has that somebody reads.
const ROW_BYTES: usize = 256;
/// Rows of all logs take no more memory.
const MEMORY_MAX: u64 = 512 << 20;
/// No more rows go to LMDB in one transaction, as long as which a writer may have to wait: a third more than those that
/// wait at most. The rest comes while the one before it takes its time.
const ROWS_MAX: usize = LONG.rows / 3 * 4;
/// No more of them, superseded ones included, [may lie anywhere in their tables](Rows::scattered).
const SCATTERED_MAX: usize = LONG.scattered / 3 * 4;

/// Rows that wait for LMDB, or are about to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    rows: usize,
    /// How many of them [may lie anywhere](Rows::scattered).
    scattered: usize,
    /// What their records take in memory.
    pub bytes: usize,
}

impl Load {
    pub fn of(rows: &Rows) -> Load {
        Load { rows: rows.len(), scattered: rows.scattered(), bytes: rows.memory_bytes() }
    }

    fn of_memtable(memtable: &Memtable) -> Load {
        Load { rows: memtable.len(), scattered: memtable.scattered(), bytes: memtable.bytes() }
    }

    fn and(self, other: Load) -> Load {
        Load {
            rows: self.rows + other.rows,
            scattered: self.scattered + other.scattered,
            bytes: self.bytes + other.bytes,
        }
    }

    /// The most that LMDB's file grows by when it gets these rows in one commit. A page that is changed is written
    /// elsewhere, and the old one may be kept by readers; but no more are written anew than there are. A value takes at
    /// most twice its bytes in new pages.
    fn lmdb_bytes(self, used_bytes: usize) -> usize {
        (self.rows * PAGES_A_ROW * PAGE_BYTES).min(used_bytes) + 2 * self.bytes
    }

    fn memory_bytes(self) -> usize {
        self.bytes + self.rows * ROW_BYTES
    }

    /// Whether LMDB may get them in one transaction.
    fn is_one_transaction(self) -> bool {
        self.rows <= ROWS_MAX && self.scattered <= SCATTERED_MAX
    }
}

/// What a commit is about to add.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coming {
    pub rows: Load,
    /// By how much the log's files are about to grow.
    pub segment_bytes: usize,
}

/// What all logs claim, and one of them.
struct Needed {
    /// What goes to LMDB when what is frozen has.
    next: Load,
    /// By which this log's LMDB file may grow.
    here: usize,
    /// What all logs may take of the disk.
    disk: u64,
    /// What all logs take in memory.
    memory: u64,
}

impl State {
    /// Claims what waits, and what a commit is about to add, in place of what was claimed before.
    fn claim(&mut self, coming: Coming, env: &Env) -> Needed {
        self.coming = coming;
        let used_bytes = env.used_bytes();
        let active = Load::of_memtable(&self.over.active).and(coming.rows);
        let frozen = self.over.frozen.as_deref().map(Load::of_memtable).unwrap_or_default();
        // They go to LMDB in two commits.
        let here = active.lmdb_bytes(used_bytes) + frozen.lmdb_bytes(used_bytes);
        let memory = active.and(frozen).memory_bytes();
        Needed { next: active, here, disk: self.disk.set(here + coming.segment_bytes), memory: self.memory.set(memory) }
    }

    /// The commit up to which LMDB will have come when it has got the next rows, if any wait.
    fn waits_for(&self) -> Option<u64> {
        match self.over.frozen {
            Some(_) => Some(self.frozen_up_to),
            None => Some(self.number).filter(|_| !self.over.is_empty()),
        }
    }

    /// Whether what all logs take in memory leaves a third as much again, for whoever comes.
    pub fn memory_is_ample(&self) -> bool {
        self.memory.of_all() <= MEMORY_MAX / 4 * 3
    }

    /// Claims anew what waits, some of which LMDB has got.
    pub fn claim_again(&mut self, env: &Env) {
        self.claim(self.coming, env);
    }

    /// Gives back what was claimed for a commit, which is among the rows by now or will not be.
    pub fn nothing_comes(&mut self, env: &Env) {
        self.claim(Coming::default(), env);
    }
}

impl Shared {
    /// Claims what a commit is about to add, once so much of what waits has gone to LMDB that it fits. Gives `false`,
    /// and claims nothing of it, where it does not fit.
    pub fn claim(&self, coming: Coming, room: Room, free: &mut FreeBytes) -> bool {
        while !self.try_claim(coming, room, free) {
            let waits = self.state().waits_for();
            if !waits.is_some_and(|number| self.wait_until_covered(number)) {
                return false;
            }
        }
        true
    }

    fn try_claim(&self, coming: Coming, room: Room, free: &mut FreeBytes) -> bool {
        let Needed { next, here, disk, memory } = self.state().claim(coming, &self.env);
        // The disk is asked when the claim is among all others: of two that are made at once, one knows of the other.
        let fits = next.is_one_transaction()
            && memory <= MEMORY_MAX
            && self.env.check_room_at_the_end(room, here + SPARE_BYTES).is_ok()
            && free.are_at_least(disk + SPARE_BYTES as u64, &self.folder);
        if !fits {
            self.state().nothing_comes(&self.env);
        }
        fits
    }
}
