//! The words of the field as types: sequences, ids, revisions and their trees. Pure: no LMDB, no I/O.

pub mod body_place;
pub mod db_name;
pub mod doc_id;
pub mod idempotency;
pub mod rev;
pub mod rev_path;
pub mod rev_tree;
pub mod sequence;
