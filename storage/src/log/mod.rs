//! The log in front of LMDB: a commit is a record that is synced once, and rows in memory that are laid over LMDB's; a
//! thread puts them into LMDB later, many commits at a time.
//!
//! `record` and `segment` are the files, `blocks` how they are written, `segments` the two that take turns, `found` how
//! they are read, `replay` what is made of them after a crash. `memtable` and `merge` lay rows over others,
//! `maybe_there` tells which documents are not among them, `known_docs` which are not in LMDB either. `logged` is what
//! the rest of the store has to do with: it writes and reads; `applier` is the thread. `load` is what waits and whether
//! it will fit, `claims` what all logs of the process need together, `permits` how many of them LMDB takes rows from at
//! once.

mod applier;
mod blocks;
mod claims;
mod fetched;
mod found;
mod id_filter;
mod key;
mod known_docs;
mod load;
pub(crate) mod logged;
mod maybe_there;
pub(crate) mod memtable;
pub(crate) mod merge;
mod permits;
mod record;
pub(crate) mod replay;
mod runs;
mod segment;
mod segments;

pub(crate) use self::segments::NAMES as FILES;

#[cfg(test)]
mod tests;
