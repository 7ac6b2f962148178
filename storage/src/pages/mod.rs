//! LMDB's file, read without LMDB: it has no checksums and trusts its pages, so that a flipped byte can make it read
//! outside of its map, end the process, or leave rows out. Here every page is looked at before it is believed.
//!
//! `file` gives pages, `page` takes one apart, `meta` finds the newest commit, `walk` goes through everything that it
//! reaches, and `survey` reads what the walk found sound. Safe code, bounds checked.
//!
//! Source: LMDB 0.9.70 as vendored by lmdb-master-sys 0.2 (`mdb.c`: `MDB_page`, `MDB_node`, `MDB_db`, `MDB_meta`).

mod accounts;
mod damage;
mod fields;
mod file;
mod free_list;
mod map;
mod meta;
mod page;
mod read;
mod rows;
mod survey;
mod tree;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use damage::{At, Damage, Lost};
pub(crate) use file::FileState;
pub(crate) use read::SurveyRows;
pub(crate) use survey::{Looked, Survey, look};
