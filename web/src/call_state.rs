//! The server's state as one request sees it: its writes are made under its idempotency key, if it has one.

use std::future::{Future, ready};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use actix_web::web::Data;
use bytes::Bytes;
use parking_lot::Mutex;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::{Outcome, Write};
use seqtide::{Database, Fingerprint, IdempotencyKey, WriteOptions, Written};

use crate::error::ApiError;
use crate::ids::new_id;
use crate::state::State;

/// What a handler reaches the server through. A handler that writes, and makes ids, through this alone answers a
/// repeated request as the first one, whatever it writes.
#[derive(Clone)]
pub struct CallState {
    state: Data<State>,
    keyed: Option<Arc<Keyed>>,
}

/// A request with an idempotency key, on one way through its handler.
pub struct Keyed {
    /// The client's name for the request.
    pub key: IdempotencyKey,
    /// Of all that it asks for.
    pub fingerprint: Fingerprint,
    /// Its body, which was read for the fingerprint.
    pub body: Bytes,
    /// What was written when the request was carried out; `None` for its first attempt.
    pub first: Option<Written>,
    /// The ids made so far, in order.
    pub made_ids: Mutex<Vec<DocId>>,
    /// What the same request wrote on another connection, before this one came to write.
    pub overtaken_by: OnceLock<Written>,
}

impl Keyed {
    /// How the request is written.
    pub fn options(&self) -> WriteOptions {
        let made_ids = self.made_ids.lock().clone();
        WriteOptions { idempotency_key: Some(self.key.clone()), fingerprint: Some(self.fingerprint), made_ids }
    }

    /// The next id that is made: at a repetition the one that was made the first time.
    fn next_id(&self) -> DocId {
        let mut made_ids = self.made_ids.lock();
        let recorded = self.first.as_ref().and_then(|first| first.made_ids.get(made_ids.len()));
        let id = recorded.cloned().unwrap_or_else(made);
        made_ids.push(id.clone());
        id
    }
}

fn made() -> DocId {
    DocId::parse(&new_id()).expect("hexadecimal digits are an id")
}

impl CallState {
    /// Of a request without a key.
    pub fn new(state: Data<State>) -> CallState {
        CallState { state, keyed: None }
    }

    /// The same for a request with a key.
    pub fn with(&self, keyed: Arc<Keyed>) -> CallState {
        CallState { state: self.state.clone(), keyed: Some(keyed) }
    }

    /// The request's body, if it was read already.
    pub fn body(&self) -> Option<Bytes> {
        self.keyed.as_ref().map(|keyed| keyed.body.clone())
    }

    /// An id for a document that came without one.
    pub fn new_id(&self) -> DocId {
        self.keyed.as_ref().map_or_else(made, |keyed| keyed.next_id())
    }

    /// Writes in one commit, waiting no longer than the configuration allows. A request writes once.
    ///
    /// # Errors
    /// As [`State::write_with`].
    pub async fn write(&self, database: &Database, writes: Vec<Write>) -> Result<Written, ApiError> {
        self.write_prepared(database, ready(Ok(writes))).await
    }

    /// Writes what depends on what the database has now, and may be refused for it. A repetition is not asked: what
    /// the database has now is not what it had then.
    ///
    /// # Errors
    /// Those of `writes`, and those of [`State::write_with`].
    pub async fn write_prepared(
        &self,
        database: &Database,
        writes: impl Future<Output = Result<Vec<Write>, ApiError>>,
    ) -> Result<Written, ApiError> {
        let Some(keyed) = &self.keyed else {
            return self.write_with(database, writes.await?, WriteOptions::default()).await;
        };
        if let Some(first) = &keyed.first {
            return Ok(first.clone());
        }
        let written = self.write_with(database, writes.await?, keyed.options()).await?;
        if written.replayed {
            keyed.overtaken_by.get_or_init(|| written.clone());
        }
        Ok(written)
    }

    /// Writes one thing; its outcome, and the request's sequence.
    ///
    /// # Errors
    /// As [`CallState::write`].
    pub async fn write_one(&self, database: &Database, write: Write) -> Result<(Outcome, Written), ApiError> {
        let mut written = self.write(database, vec![write]).await?;
        let outcome = written.outcomes.pop().unwrap_or(Outcome::Done);
        Ok((outcome, written))
    }
}

impl Deref for CallState {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}
