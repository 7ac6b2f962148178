//! An embedded change feed: documents go in, and every change comes out again, in one total order.
//!
//! ```
//! use seqtide::{ChangesOptions, Engine, Since};
//! use tokio_stream::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let engine = Engine::start(folder.path())?;
//! let orders = engine.create_database("orders").await?;
//! let put = orders.put("o-1", r#"{"total": 12.50}"#).await?;
//!
//! let options = ChangesOptions { since: Since::START, include_docs: true, ..Default::default() };
//! let mut changes = orders.changes(options).await?.only_changes();
//! // It ends when the engine stops or the database is deleted; this one is left when it has shown what was put.
//! while let Some(change) = changes.next().await.transpose()? {
//!     assert_eq!((change.id.as_str(), &change.rev), ("o-1", &put.rev));
//!     assert_eq!(change.body.expect("it was asked for").as_str(), r#"{"total":12.50}"#);
//!     if change.seq == put.seq {
//!         break;
//!     }
//! }
//! # engine.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Metrics go through the [`metrics`](https://docs.rs/metrics) facade: to have them, install a recorder of that crate
//! before [`Engine::start`], and call [`Engine::measure`], and [`Engine::measure_lag`] where lag is wanted, before each
//! reading of them. Those of one engine a process make sense.
//!
//! A write's way: [`Database::write`] → the writer, an actor that gathers what arrives → one commit for all of it → the
//! tail, and whom it wakes → the feeds, which pull.

mod actor_system;
mod awake;
mod by_itself;
mod database;
pub mod documents;
mod drain;
mod end_reason;
mod engine;
mod error;
mod feed;
mod feed_index;
mod filter;
mod fingerprint;
pub mod functions;
mod gauges;
mod idempotency;
mod indexing;
mod known;
mod lag;
mod leaving;
mod live;
mod matcher;
mod metrics;
mod open_database;
mod permits;
mod readings;
mod registry;
mod reports;
mod rounds;
mod row;
mod selector;
mod sweep;
mod tail;
mod tasks;
mod updates;
mod validation;
mod writer;

pub use database::{Database, DatabaseInfo, Put, PutError};
pub use documents::Document;
pub use drain::Drain;
pub use end_reason::EndReason;
pub use engine::{Engine, EngineOptions};
pub use error::Error;
pub use feed::documents::Documents;
pub use feed::event::{ChangeEvent, FeedEvent, Portion};
pub use feed::frames::{FrameForm, Frames};
pub use feed::kind::FeedKind;
pub use feed::options::{Ahead, ChangesOptions, EndsAt, FeedMode, FeedOptions, OLDEST_SEQ, Since, UpdatesOptions};
pub use feed::source::{Lag, Source};
pub use feed::stream::{Change, Changes};
pub use feed::{END_GRACE, Extent, Feed, Likeness, Reopening, Seat, Turn};
pub use feed_index::{FeedIndex, FeedIndexState, IndexFields, IndexFieldsError};
pub use filter::{Filter, Ids, Test};
pub use functions::{FilterFunction, FunctionError};
pub use idempotency::WriteOptions;
pub use known::{FeedAbout, FeedId, FeedInfo, FeedRecord, FeedState, Order};
pub use metrics::FeedMetrics;
pub use rounds::{OwnRounds, Round};
pub use row::{FeedRow, Frame, Row, RowShape, write_row_document};
pub use selector::{DocView, EqualityTerm, FieldPath, Fields, ScalarKey, Selector, SelectorError, SelectorKeys};
pub use seqtide_storage::model::idempotency::{Fingerprint, IdempotencyKey, IdempotencyKeyError};
pub use seqtide_storage::{DbUpdate, UpdateKind};
pub use sweep::Sweep;
pub use tasks::{Task, TaskKind};
pub use updates::Databases;
pub use writer::Written;

/// What lies beneath: the store's types that the engine's own interface speaks of.
pub mod storage {
    pub use seqtide_storage::*;
}

// Runs the README's Rust with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
