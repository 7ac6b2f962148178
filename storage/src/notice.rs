//! What a store has to tell while it is open, though nobody has asked.

use std::path::Path;

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
    /// A folder among the databases has a name that no database's has, and is passed over.
    PassedOver,
}

/// Why a database's past may be another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewIncarnation {
    /// Its folder was brought here, or it is not known what is in it.
    Foreign,
    /// Its folder was lost: it is empty now.
    Lost,
    /// Its last process, with relaxed durability, did not end in order.
    Unclean,
}

/// Takes what a database's folder has to tell, on the thread where it came up, which it must not hold up.
pub type Tell = fn(&Path, &Notice<'_>);
