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
