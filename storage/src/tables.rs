//! The tables of a database.

use heed::types::Bytes;

/// A table. `docs/storage-format.md` draws its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Document id -> the head of its revision tree.
    Docs,
    /// Document id and chunk number -> older ancestors.
    History,
    /// Sequence -> change row; exactly one row a document.
    BySeq,
    /// Sequence and ordinal -> JSON body.
    Bodies,
    /// Name -> `_local` document.
    Local,
    /// Name -> what is true of the whole database.
    Meta,
    /// Block of versions -> how many rows of `by_seq` it has.
    Blocks,
    /// Idempotency key -> what the request did that came with it.
    Transactions,
    /// Place in the age order -> idempotency key.
    TransactionAges,
    /// Number of a field, key and sequence -> nothing more: which changes have the key under the field.
    FeedIndex,
    /// Second -> the update sequence before its first commit.
    Times,
}

impl Table {
    /// Every table.
    pub const ALL: [Table; 11] = [
        Table::Docs,
        Table::History,
        Table::BySeq,
        Table::Bodies,
        Table::Local,
        Table::Meta,
        Table::Blocks,
        Table::Transactions,
        Table::TransactionAges,
        Table::FeedIndex,
        Table::Times,
    ];

    /// The table's name in LMDB and in errors.
    pub fn name(self) -> &'static str {
        match self {
            Table::Docs => "docs",
            Table::History => "history",
            Table::BySeq => "by_seq",
            Table::Bodies => "bodies",
            Table::Local => "local",
            Table::Meta => "meta",
            Table::Blocks => "blocks",
            Table::Transactions => "transactions",
            Table::TransactionAges => "transaction_ages",
            Table::FeedIndex => "feed_index",
            Table::Times => "times",
        }
    }
}

/// Row of `meta`: the format the database was born in.
pub(crate) const META_BORN: &[u8] = b"born";
/// Row of `meta`: the number of LMDB's transaction that wrote it, which is the newest.
pub(crate) const META_COMMIT: &[u8] = b"commit";
/// Row of `meta`: the counters.
pub(crate) const META_COUNTERS: &[u8] = b"counters";
/// Row of `meta`: what the index of the feed is of. It is not there before there was one.
pub(crate) const META_FEED_INDEX: &[u8] = b"feed_index";
/// Row of `meta`: the file format.
pub(crate) const META_FORMAT: &[u8] = b"format";
/// Row of `meta`: uuid, time of making, form of sequences.
pub(crate) const META_IDENTITY: &[u8] = b"identity";
/// Row of `meta`: the number of the last record of the log whose rows are in the tables. It is not there before there
/// was a log.
pub(crate) const META_LOG: &[u8] = b"log";
/// Row of `meta`: how many purges have changed a document. It is not there before the first.
pub(crate) const META_PURGE_SEQ: &[u8] = b"purge_seq";
/// Row of `meta`: how many revisions a branch keeps.
pub(crate) const META_REVS_LIMIT: &[u8] = b"revs_limit";
/// Row of `meta`: how many records of keyed requests there are.
pub(crate) const META_TRANSACTIONS: &[u8] = b"transactions";

/// LMDB's handle of a table: rows are bytes here, their meaning is in `codec`.
pub(crate) type Handle<'env> = heed::Database<'env, Bytes, Bytes>;

/// The handles of all tables, by [`Table`].
#[derive(Clone, Copy)]
pub(crate) struct Handles(pub [Handle<'static>; Table::ALL.len()]);

impl Handles {
    pub fn of(&self, table: Table) -> Handle<'static> {
        self.0[table as usize]
    }
}
