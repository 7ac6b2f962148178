//! What Seqtide keeps on disk: documents as revision trees, their bodies, and one row a document in the order of
//! change, in one LMDB environment a database.
//!
//! Synchronous; knows neither actors nor HTTP. A write goes `plan` (pure) → `batch` (over one state) → `apply` (pure:
//! rows at a sequence) → `env` (one transaction). All reading goes through [`Snapshot`]. A file is walked through
//! before LMDB gets it; a damaged one never does, and what is sound in it is read by `pages`.

mod apply;
mod at_once;
mod base;
mod batch;
mod bodies;
mod change;
mod check;
mod clock;
pub mod codec;
mod counts;
mod data_folder;
mod disk;
mod env;
mod error;
mod feed_index;
mod gauge;
pub mod json;
mod last_commits;
mod leaf_body;
mod log;
pub mod model;
mod notice;
mod pages;
mod plan;
mod purge;
mod range;
mod reclaim;
mod refusal;
mod rehearsal;
mod request;
mod room;
mod rows;
mod seal;
mod snapshot;
mod store;
mod sync_folder;
mod tables;
mod times;
mod transactions;
mod unwinding;
mod updates;
mod view;
mod write;
mod write_out;
mod write_rows;

pub use batch::Commit;
pub use change::{Change, Changed, Detail, LeafRev, Previous, PreviousWinner};
pub use check::CheckReport;
pub use clock::now_secs;
pub use codec::head::DocSummary;
pub use codec::meta::{Counters, FORMAT, Identity};
pub use data_folder::{Counted, CreateError, DataFolder, Listed};
pub use env::Durability;
pub use error::StorageError;
pub use feed_index::{FeedIndexStatus, FeedKeys, FieldKeys, Lookup, ReadKeys, Tended};
pub use gauge::StoreGauge;
pub use leaf_body::LeafBody;
pub use notice::{NewIncarnation, Notice, SyncedBy, Tell};
pub use pages::{At, Damage, Lost};
pub use plan::{Edit, EditKind, Expected};
pub use range::Direction;
pub use reclaim::{ReclaimPolicy, Reclaimed};
pub use refusal::{Refusal, RefusalKind};
pub use rehearsal::{BaseLeaf, Rehearsal, Rehearsed};
pub use request::{Attempt, Request, RequestKey, RequestOutcome};
pub use snapshot::{
    ChangesPage, DocTree, DocsPage, KeepId, LocalDoc, LocalsPage, PageLimits, ReadChanges, ReadDocs, ReadLocals,
    Snapshot,
};
pub use store::{Birth, MadeUp, Store, StoreOptions};
pub use tables::Table;
pub use transactions::TransactionLimits;
pub use unwinding::unwinding;
pub use updates::{DbUpdate, ReadUpdates, UpdateKind, UpdateLog, UpdatesPage};
pub use write::{LocalEdit, Outcome, Write};
