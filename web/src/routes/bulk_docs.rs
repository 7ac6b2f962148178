//! Writing many documents in one request: `_bulk_docs`.

use actix_web::http::StatusCode;
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::doc_id::{DocId, LocalId};
use seqtide::storage::{Outcome, Refusal, RefusalKind, Write};
use serde_json::value::RawValue;

use super::edit::{Named, edit, replicated_path, scan, write_written};
use super::local;
use crate::call::{Answer, Call};
use crate::call_state::CallState;
use crate::error::ApiError;
use crate::json::Members;
use crate::{json, reply, request};

/// A document of a bulk request.
struct Item {
    id: String,
    /// The revision as given, for refusals of replicated ones.
    rev: Option<String>,
}

struct Bulk {
    items: Vec<Item>,
    /// What is written: one an item, in order. One that is refused alone has a place there too, so that a repetition of
    /// the request knows it by that, whatever is refused then.
    writes: Vec<Write>,
    replicated: bool,
    /// How many more revisions may be named as ancestry.
    revisions_left: usize,
}

/// The revisions that documents are replicated with may be as many as would fit into a request with the hashes that
/// CouchDB and PouchDB make: only shorter ones can be more, which take several times their text.
const HASH_BYTES: usize = 32;

pub async fn bulk_docs(mut call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (body, state) = (call.body().await?, call.state);
    let shared = state.clone();
    let Bulk { items, writes, replicated, .. } = request::parse(body, move |body| Bulk::parse(body, &shared)).await?;
    let written = state.write(&database, writes).await?;
    if written.outcomes.len() != items.len() {
        return Err(ApiError::other_writes());
    }
    let body = results_json(&items, &written.outcomes, replicated);
    Ok(reply::written(StatusCode::CREATED, &written).body(body))
}

impl Bulk {
    fn parse(body: &[u8], state: &CallState) -> Result<Bulk, ApiError> {
        let request = Members::of_options(body, json::BODY)?;
        let docs =
            request.get("docs").ok_or_else(|| ApiError::bad_request("POST body must include `docs` parameter."))?;
        let not_array = || ApiError::bad_request("`docs` parameter must be an array.");
        let most = state.config.limits.bulk_docs_max;
        let docs: Vec<&RawValue> = json::elements(docs, most, not_array, || too_many_docs(most))?;
        let replicated = match request.get("new_edits").map(RawValue::get) {
            None | Some("true") => false,
            Some("false") => true,
            Some(_) => return Err(ApiError::bad_request("`new_edits` parameter must be a boolean.")),
        };
        let mut bulk = Bulk {
            items: Vec::with_capacity(docs.len()),
            writes: Vec::with_capacity(docs.len()),
            replicated,
            revisions_left: revisions_max(state),
        };
        for doc in docs {
            let text = doc.get().as_bytes();
            bulk.add(text, state).or_else(|error| bulk.refuse_alone(text, error))?;
        }
        Ok(bulk)
    }

    /// Adds a document.
    ///
    /// # Errors
    /// What makes the whole request invalid.
    fn add(&mut self, text: &[u8], state: &CallState) -> Result<(), ApiError> {
        let mut document = scan(text, state)?;
        let id = match document.id.take().filter(|id| !id.is_empty()) {
            Some(id) => match LocalId::parse(&id) {
                Some(local_id) => {
                    self.writes.push(Write::Local(local::edit(local_id?, document, !self.replicated)?));
                    self.items.push(Item { id, rev: None });
                    return Ok(());
                }
                None => DocId::parse(&id)?,
            },
            None => state.new_id(),
        };
        let path = self.replicated.then(|| replicated_path(&mut document)).transpose()?;
        let revisions = path.as_ref().map_or(0, |path| path.hashes().len());
        self.revisions_left = self.revisions_left.checked_sub(revisions).ok_or_else(|| {
            let most = revisions_max(state);
            ApiError::too_large(format!("`docs` has too many revisions: at most {most} are accepted"))
        })?;
        let rev = path.as_ref().map(|path| path.rev().to_string());
        self.writes.push(edit(id.clone(), path, document).map_or_else(refused, Write::Edit));
        self.items.push(Item { id: id.to_string(), rev });
        Ok(())
    }

    /// Adds a replicated document that passes a bound which others need not have: where it comes from it is a document
    /// like others, and a replicator would bring a request that is refused as a whole again and again.
    ///
    /// # Errors
    /// What makes the whole request invalid.
    fn refuse_alone(&mut self, text: &[u8], why: ApiError) -> Result<(), ApiError> {
        match Named::of(text) {
            Named { id: Some(id), rev } if self.replicated && why.is_of_own_bound() => {
                self.writes.push(refused(why));
                self.items.push(Item { id, rev });
                Ok(())
            }
            _ => Err(why),
        }
    }
}

/// What is written of a document that is refused alone.
fn refused(why: ApiError) -> Write {
    Write::Decided { outcome: Outcome::Refused(why.into_refusal()), expected: None }
}

fn revisions_max(state: &CallState) -> usize {
    state.config.limits.request_bytes_max / HASH_BYTES
}

/// 413: `docs` may not have more.
pub(super) fn too_many_docs(most: usize) -> ApiError {
    ApiError::too_large(format!("`docs` has too many documents: at most {most} are accepted"))
}

/// One result an item, in order; of replicated items only those that were refused.
fn results_json(items: &[Item], outcomes: &[Outcome], replicated: bool) -> Vec<u8> {
    let mut out = vec![b'['];
    for (item, outcome) in items.iter().zip(outcomes) {
        let start = out.len();
        if start > 1 {
            out.push(b',');
        }
        if let Some(refused) = write_outcome(&mut out, item, outcome, replicated) {
            write_refusal(&mut out, item, &refused, replicated && is_unfit(outcome));
        } else if replicated {
            out.truncate(start);
        }
    }
    out.extend_from_slice(b"]\n");
    out
}

/// Whether it was refused whatever the database has.
fn is_unfit(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(Refusal { kind: RefusalKind::Unfit(_), .. }))
}

/// Writes what became of an item, or gives why it was refused.
fn write_outcome(out: &mut Vec<u8>, item: &Item, outcome: &Outcome, replicated: bool) -> Option<ApiError> {
    match outcome {
        Outcome::Written { rev, .. } | Outcome::Known { rev } if !replicated => {
            write_written(out, &item.id, &rev.to_string());
        }
        Outcome::Local { revision } if !replicated => write_written(out, &item.id, &format!("0-{revision}")),
        Outcome::Written { .. }
        | Outcome::Known { .. }
        | Outcome::Local { .. }
        | Outcome::Purged { .. }
        | Outcome::Done
        | Outcome::Unchanged => {}
        Outcome::Refused(refusal) => return Some(refusal.into()),
        Outcome::Missing => return Some(ApiError::not_found("missing")),
        Outcome::Conflict => return Some(ApiError::conflict()),
    }
    None
}

/// Writes why an item was refused; and of one that will be however often it comes, the name of such errors at PouchDB,
/// whose push goes on behind them and stops at others.
///
/// Source: PouchDB `replicate`: `writeDocs`, `generateErrorFromResponse`.
fn write_refusal(out: &mut Vec<u8>, item: &Item, refused: &ApiError, is_denied: bool) {
    out.extend_from_slice(b"{\"id\":");
    write_json_string(out, &item.id);
    if let Some(rev) = &item.rev {
        out.extend_from_slice(b",\"rev\":");
        write_json_string(out, rev);
    }
    out.push(b',');
    refused.write_members(out);
    if is_denied {
        out.extend_from_slice(b",\"name\":\"forbidden\"");
    }
    out.push(b'}');
}
