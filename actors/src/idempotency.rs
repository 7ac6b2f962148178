//! Writes that happen once, however often they are sent.

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::idempotency::{Fingerprint, IdempotencyKey};
use seqtide_storage::{Request, RequestKey, Write};

/// How a request is written.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The program's name for this request, the same at every attempt: the first one that changes anything is carried
    /// out, and the later ones are answered as it was, after a restart too.
    pub idempotency_key: Option<IdempotencyKey>,
    /// What tells the request from others with its key; `None` takes all of its writes. Give one where the writes
    /// differ from attempt to attempt though the request is the same, as with ids that are made anew each time.
    pub fingerprint: Option<Fingerprint>,
    /// The ids that were made for documents of the request: later attempts get those of the first,
    /// [`Written::made_ids`](crate::Written::made_ids).
    pub made_ids: Vec<DocId>,
}

impl From<IdempotencyKey> for WriteOptions {
    fn from(key: IdempotencyKey) -> WriteOptions {
        WriteOptions { idempotency_key: Some(key), ..WriteOptions::default() }
    }
}

impl WriteOptions {
    /// The request, made now by this clock.
    pub(crate) fn request(self, writes: Vec<Write>, now_secs: impl FnOnce() -> u64) -> Request {
        let WriteOptions { idempotency_key, fingerprint, made_ids } = self;
        let key = idempotency_key.map(|key| {
            let fingerprint = fingerprint.unwrap_or_else(|| Fingerprint::of_writes(&writes));
            RequestKey { key, fingerprint, made_ids, at_secs: now_secs() }
        });
        Request { writes, key }
    }
}
