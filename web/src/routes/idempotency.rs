//! Writes with an `Idempotency-Key`: carried out once, and answered the same however often they are sent.
//!
//! Nothing but outcomes and ids made is recorded. A repetition goes through its handler like the first attempt, which
//! finds there what it wrote then instead of writing, and so answers the same.

use std::sync::{Arc, OnceLock};

use actix_web::http::header;
use actix_web::{HttpRequest, ResponseError};
use bytes::Bytes;
use parking_lot::Mutex;
use seqtide::{Database, Fingerprint, IdempotencyKey, IdempotencyKeyError, Written};

use super::edit::unattended;
use crate::call::{Answer, Call};
use crate::call_state::{CallState, Keyed};
use crate::error::ApiError;
use crate::query::Query;
use crate::reply::IDEMPOTENCY_REPLAYED;
use crate::request;

const IDEMPOTENCY_KEY: header::HeaderName = header::HeaderName::from_static("idempotency-key");

/// Headers that say what a write does.
const MEANINGFUL: [header::HeaderName; 2] = [header::IF_MATCH, header::HeaderName::from_static("destination")];

/// Carries a write out, unless it has a key and was carried out before; then it is answered as it was then.
pub async fn once(call: Call, db: &str, carry_out: impl AsyncFn(Call) -> Answer) -> Answer {
    match key_of(&call.req)? {
        None => carry_out(call).await,
        // Boxed: most requests have no key, and need far less room.
        Some(key) => Box::pin(once_with_key(key, call, db, carry_out)).await,
    }
}

/// Carries a write with a key out.
async fn once_with_key(key: IdempotencyKey, call: Call, db: &str, carry_out: impl AsyncFn(Call) -> Answer) -> Answer {
    if unattended(&call.query) {
        let reason = "`batch=ok` answers before the write is made, so it cannot be had with an Idempotency-Key: \
                      leave one of them out";
        return Err(ApiError::bad_request(reason));
    }
    let database = call.state.database(db)?;
    let repeatable = Repeatable::read(call, key).await?;
    if let Some(first) = database.written_before(&repeatable.key, repeatable.fingerprint).await? {
        return repeatable.answer_as(first, carry_out).await;
    }
    let (call, keyed) = repeatable.attempt(None);
    let answer = carry_out(call).await;
    match overtaken(&database, &repeatable.state, &keyed, &answer).await? {
        Some(first) => repeatable.answer_as(first, carry_out).await,
        None => answer,
    }
}

/// What the same request wrote on another connection, if it came first: this one met it at the writer, or was refused
/// for what the other had changed by then.
///
/// # Errors
/// Those of asking: whether the refusal stands is not known then.
async fn overtaken(
    database: &Database,
    state: &CallState,
    keyed: &Keyed,
    answer: &Answer,
) -> Result<Option<Written>, ApiError> {
    match answer {
        Err(error) if error.status_code().is_client_error() => {
            // Writes nothing, and is answered behind everything that was sent to the writer before.
            let asked = state.write_with(database, Vec::new(), keyed.options()).await?;
            Ok(Some(asked).filter(|written| written.replayed))
        }
        _ => Ok(keyed.overtaken_by.get().cloned()),
    }
}

/// A request with a key, read so that it can go through its handler more than once.
struct Repeatable {
    req: HttpRequest,
    query: Query,
    state: CallState,
    body: Bytes,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
}

impl Repeatable {
    async fn read(mut call: Call, key: IdempotencyKey) -> Result<Repeatable, ApiError> {
        let body = call.body().await?;
        let fingerprint = fingerprint(&call.req, body.clone()).await?;
        let Call { req, query, state, .. } = call;
        Ok(Repeatable { req, query, state, body, key, fingerprint })
    }

    /// The request on its way through its handler, `first` being what was written when it was carried out.
    fn attempt(&self, first: Option<Written>) -> (Call, Arc<Keyed>) {
        let keyed = Arc::new(Keyed {
            key: self.key.clone(),
            fingerprint: self.fingerprint,
            body: self.body.clone(),
            first,
            made_ids: Mutex::default(),
            overtaken_by: OnceLock::new(),
        });
        let state = self.state.with(Arc::clone(&keyed));
        (Call { req: self.req.clone(), payload: None, query: self.query.clone(), state }, keyed)
    }

    async fn answer_as(&self, first: Written, carry_out: impl AsyncFn(Call) -> Answer) -> Answer {
        let (call, _) = self.attempt(Some(first));
        let mut answer = carry_out(call).await?;
        answer.headers_mut().insert(IDEMPOTENCY_REPLAYED, header::HeaderValue::from_static("true"));
        Ok(answer)
    }
}

/// The key a request comes with. Given twice, it must be the same one.
fn key_of(req: &HttpRequest) -> Result<Option<IdempotencyKey>, ApiError> {
    let invalid = |why: String| ApiError::bad_request(format!("Invalid Idempotency-Key header: {why}"));
    let mut given = req.headers().get_all(IDEMPOTENCY_KEY);
    let Some(key) = given.next() else { return Ok(None) };
    if given.any(|other| other != key) {
        return Err(invalid("it is given more than once, with different values".to_owned()));
    }
    let key = key.to_str().map_err(|_| IdempotencyKeyError::NotPrintable).and_then(IdempotencyKey::new);
    key.map(Some).map_err(|why| invalid(why.to_string()))
}

/// Of all that a request asks for: two with one key are the same request if they agree in this.
async fn fingerprint(req: &HttpRequest, body: Bytes) -> Result<Fingerprint, ApiError> {
    let mut parts = Fingerprint::builder().part(req.method().as_str()).part(req.path()).part(req.query_string());
    for name in MEANINGFUL {
        let values: Vec<&[u8]> = req.headers().get_all(name).map(header::HeaderValue::as_bytes).collect();
        parts = parts.part(values.join(&b','));
    }
    request::parse(body, |body| Ok(parts.part(body).finish())).await
}
