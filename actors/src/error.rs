//! What the engine answers when it cannot do what it was asked.

use std::sync::Arc;
use std::time::Duration;

use seqtide_storage::StorageError;
use seqtide_storage::model::db_name::DbNameError;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};

use crate::functions::{DesignError, FunctionError};

/// Why the engine could not do it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The name is none a database can have.
    #[error(transparent)]
    BadName(#[from] DbNameError),
    /// There is no database of that name, or it was deleted meanwhile.
    #[error("Database does not exist.")]
    NoDatabase,
    /// There is a database of that name already.
    #[error("The database could not be created, the file already exists.")]
    DatabaseExists,
    /// As much as is allowed waits to be written already. Try again shortly.
    #[error("the write queue is full: it takes {edits_max} edits or {bytes_max} bytes")]
    WriteQueueFull {
        /// The bound of the edits waiting.
        edits_max: usize,
        /// The bound of their bodies.
        bytes_max: usize,
    },
    /// A document is not as an edit of the request [expects](seqtide_storage::Edit::expecting) it; or it changed again
    /// and again while its new revision was being validated. Look at it, and try again. Nothing was written.
    #[error("a document is not as it was when an edit of it was made, or changed again and again meanwhile: try again")]
    Moved,
    /// A function of a design document gave no answer. Of a write, nothing was written.
    #[error(transparent)]
    Function(FunctionError),
    /// A design document is malformed. Nothing was written.
    #[error("{id}: {source}")]
    BadDesign {
        /// Which.
        id: DocId,
        /// What is wrong with it.
        source: DesignError,
    },
    /// The idempotency key came with another request before. Nothing was written.
    #[error("The key was used for a different request.")]
    KeyReused,
    /// The token asked for is from the future, and the feed was to be refused then.
    #[error("`since` is ahead of all there is: start again from the beginning")]
    Ahead {
        /// The update sequence.
        update_seq: Sequence,
        /// How sequences are written there.
        format: SeqFormat,
    },
    /// As many feeds are open as are allowed. Try again later.
    #[error("{feeds_max} feeds are open, and no more are allowed")]
    TooManyFeeds {
        /// The bound.
        feeds_max: usize,
    },
    /// The feeds that are open name as many documents as is allowed. Try again later, or with fewer ids.
    #[error(
        "with these `doc_ids` the feeds that are open would name more than {ids_max} documents, and no more are allowed"
    )]
    TooManyListedIds {
        /// The bound.
        ids_max: usize,
    },
    /// With this one the selectors and lists of fields that this process has, of feeds that are open or not, take more
    /// memory than is allowed. Try again later, or with less.
    #[error(
        "with this one the selectors and `fields` of all feeds would take more than {bytes_max} bytes of memory, and no \
         more are allowed"
    )]
    SelectorsTooLarge {
        /// The bound.
        bytes_max: usize,
    },
    /// The feeds that are open are being ended, because the engine stops. Try again later.
    #[error("the server is stopping and opens no more feeds")]
    Draining {
        /// How long to wait.
        retry: Duration,
    },
    /// As many databases are in use as may be open.
    #[error("{databases_max} databases are in use, and no more may be open")]
    TooManyDatabases {
        /// The bound.
        databases_max: usize,
    },
    /// The engine is stopping or has stopped; or the database was closed meanwhile, as one that could not be deleted,
    /// and is opened again when it is wanted.
    #[error("the engine has stopped")]
    Stopped,
    /// The disk said no, or the system: nothing of the write was kept.
    #[error(transparent)]
    Storage(Arc<StorageError>),
}

impl From<FunctionError> for Error {
    fn from(error: FunctionError) -> Error {
        match error {
            FunctionError::EngineStopped => Error::Stopped,
            error => Error::Function(error),
        }
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Error {
        Error::Storage(Arc::new(error))
    }
}
