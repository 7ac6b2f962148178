//! What a store has to tell while it is open, though nobody has asked.

use std::path::Path;
use std::time::Duration;

use crate::error::StorageError;

/// Something that whoever watches over the databases should know.
#[derive(Debug)]
pub enum Notice<'a> {
    /// LMDB did not take acknowledged rows from the log. They stay there and are read; further writes are refused until
    /// it takes them, which is tried again and again.
    Stalled {
        /// Why.
        error: &'a StorageError,
        /// Whether it had taken those before.
        first: bool,
    },
    /// LMDB has taken what it had not taken before.
    Resumed,
    /// A database counts on in a new incarnation, above all tokens it may have given out: its past may be another one.
    Raised {
        /// The incarnation.
        to: u8,
        /// What makes that so.
        why: NewIncarnation,
    },
    /// A commit, or several that came together, is on disk.
    Synced {
        /// By what.
        by: SyncedBy,
        /// How long writing and syncing it took.
        took: Duration,
    },
    /// What is left of a database that was deleted, or could not be made, cannot be removed. It is nobody's, and
    /// removing it is tried again when its name is wanted and at the next start.
    LeftOver {
        /// Why.
        error: &'a StorageError,
    },
    /// A folder among the databases has a name that no database's has, and is passed over.
    PassedOver,
}

/// What puts commits on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncedBy {
    /// The log.
    Log,
    /// LMDB, behind the log or by itself.
    Lmdb,
}

/// Why a database's past may be another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewIncarnation {
    /// It was brought here or restored, or was damaged: it is not known how far it had counted.
    Unknown,
    /// Its folder was lost: it is empty now.
    Lost,
    /// Its last process, with relaxed durability, did not end in order.
    Unclean,
}

/// Takes what a database's folder has to tell, on the thread where it came up, which it must not hold up.
pub type Tell = fn(&Path, &Notice<'_>);
