//! The section `[storage]`: what a database takes of memory, address space and disk.

use serde::{Deserialize, Serialize};

use super::check::{at_least, at_most, refuse_if};
use super::error::ConfigError;

/// LMDB wants a map of whole pages.
const PAGE_BYTES: usize = 4096;

/// Room for an empty database's tables.
const MAP_BYTES_FLOOR: usize = 1 << 20;

/// Half of the 128 TiB a process on a 64-bit machine can address: all open databases' maps must fit.
const ADDRESS_SPACE_BYTES: usize = 1 << 46;

/// Room for the reserve, for what a commit takes, and for some documents.
const MAP_BYTES_MAX_FLOOR: usize = 4 << 20;

/// LMDB's lock file takes 64 bytes a reader and every commit looks at each.
const READERS_CEILING: u64 = 10_000;

/// A revision's number has so many bits.
const REVS_CEILING: u64 = u32::MAX as u64;

/// Each is a thread with a few open files of its own; more than cores wait for disks alone.
const COMMITTERS_CEILING: usize = 512;

/// How databases are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// Address space reserved for each open database, in bytes; whole pages.
    pub map_bytes: usize,
    /// The most it grows to, in bytes; whole pages.
    pub map_bytes_max: usize,
    /// Newest changes kept in memory for each open database, in bytes; without feeds there are none.
    pub tail_bytes_max: usize,
    /// Revisions remembered on each branch, in a new database.
    pub revs_limit: u64,
    /// Share of garbage from which a file's space is reclaimed, in percent; 100 is never.
    pub reclaim_garbage_percent: u64,
    /// Size of a file below which nothing is reclaimed, in bytes.
    pub reclaim_floor_bytes: u64,
    /// Threads that commit writes; 0 leaves the number to the engine.
    pub committers: usize,
    /// Processors kept awake while commits of few requests follow each other closely; 0 is none.
    pub awake_processors_max: usize,
    /// Read transactions open at once in one database.
    pub readers_max: u64,
    /// How long the answer to a write with an idempotency key is kept, in seconds.
    pub idempotency_age_secs: u64,
    /// Idempotency keys kept in one database.
    pub idempotency_keys_max: u64,
    /// What they and their answers take in one database, in bytes.
    pub idempotency_bytes_max: u64,
    /// Size of a file up to which it is checked before it is opened, in bytes; 0 is never.
    pub verify_at_open_bytes_max: u64,
}

impl Storage {
    pub(super) fn validate(&self, databases_open_max: usize) -> Result<(), ConfigError> {
        self.validate_map(databases_open_max)?;
        self.validate_largest_map()?;
        at_least("storage.tail_bytes_max", self.tail_bytes_max, 1)?;
        at_least("storage.revs_limit", self.revs_limit, 1)?;
        at_most("storage.revs_limit", self.revs_limit, REVS_CEILING)?;
        at_least("storage.reclaim_garbage_percent", self.reclaim_garbage_percent, 1)?;
        at_most("storage.reclaim_garbage_percent", self.reclaim_garbage_percent, 100)?;
        at_most("storage.committers", self.committers, COMMITTERS_CEILING)?;
        at_least("storage.readers_max", self.readers_max, 1)?;
        at_most("storage.readers_max", self.readers_max, READERS_CEILING)?;
        at_least("storage.idempotency_age_secs", self.idempotency_age_secs, 1)?;
        at_least("storage.idempotency_keys_max", self.idempotency_keys_max, 1)?;
        at_least("storage.idempotency_bytes_max", self.idempotency_bytes_max, 1)
    }

    fn validate_map(&self, databases_open_max: usize) -> Result<(), ConfigError> {
        const KEY: &str = "storage.map_bytes";
        at_least(KEY, self.map_bytes, MAP_BYTES_FLOOR)?;
        whole_pages(KEY, self.map_bytes)?;
        let too_much = self.map_bytes.saturating_mul(databases_open_max) > ADDRESS_SPACE_BYTES;
        refuse_if(too_much, KEY, || {
            let each = self.map_bytes;
            format!("{each} for each of limits.databases_open_max ({databases_open_max}) exceeds {ADDRESS_SPACE_BYTES}")
        })
    }

    fn validate_largest_map(&self) -> Result<(), ConfigError> {
        const KEY: &str = "storage.map_bytes_max";
        at_least(KEY, self.map_bytes_max, MAP_BYTES_MAX_FLOOR)?;
        at_most(KEY, self.map_bytes_max, ADDRESS_SPACE_BYTES)?;
        whole_pages(KEY, self.map_bytes_max)
    }
}

fn whole_pages(key: &'static str, bytes: usize) -> Result<(), ConfigError> {
    let not_whole = !bytes.is_multiple_of(PAGE_BYTES);
    refuse_if(not_whole, key, || format!("must be a multiple of {PAGE_BYTES}, is {bytes}"))
}
