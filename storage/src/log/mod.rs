//! The log in front of LMDB: a commit is a record that is synced once, and rows in memory laid over LMDB's; a thread puts
//! them into LMDB later, many commits at a time.

pub(crate) mod logged;
pub(crate) mod memtable;
pub(crate) mod merge;
mod record;
mod segment;
