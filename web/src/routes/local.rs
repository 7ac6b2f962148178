//! `_local` documents: replication's checkpoints. Never replicated, never in a feed.

use actix_web::HttpRequest;
use actix_web::http::{StatusCode, header};
use seqtide::Database;
use seqtide::storage::json::{Body, Document, write_json_string};
use seqtide::storage::model::doc_id::LocalId;
use seqtide::storage::model::rev::RevId;
use seqtide::storage::{LocalEdit, Outcome, Write};

use super::edit::{accepted, agreed_rev, replicated, scan_body, unattended, written_json};
use crate::call::{Answer, Call};
use crate::call_state::CallState;
use crate::error::ApiError;
use crate::query::Query;
use crate::reply;

pub async fn get(call: &Call, db: &str, id: LocalId) -> Answer {
    let database = call.state.database(db)?;
    let name = id.to_string();
    let found = database.read(move |snapshot| snapshot.local(&id)).await?;
    let (revision, body) = found.ok_or_else(|| ApiError::not_found("missing"))?;
    let mut out = Vec::with_capacity(body.as_bytes().len() + 64);
    write_document(&mut out, &name, revision, &body);
    let etag = etag(revision, &body);
    if let Some(not_modified) = reply::not_modified(&call.req, Some(&etag)) {
        return Ok(not_modified);
    }
    out.push(b'\n');
    Ok(reply::json(StatusCode::OK).insert_header((header::ETAG, etag)).body(out))
}

/// Appends a local document as CouchDB writes it.
pub fn write_document(out: &mut Vec<u8>, id: &str, revision: u64, body: &Body) {
    out.extend_from_slice(b"{\"_id\":");
    write_json_string(out, id);
    out.extend_from_slice(format!(",\"_rev\":\"0-{revision}\"").as_bytes());
    if !body.is_empty() {
        out.push(b',');
        out.extend_from_slice(body.members());
    }
    out.push(b'}');
}

pub async fn put(mut call: Call, db: &str, id: LocalId) -> Answer {
    let database = call.state.database(db)?;
    let mut document = scan_body(call.body().await?, &call.state).await?;
    document.rev = agreed_rev(&call.req, &call.query, document.rev)?;
    write(&call.req, &call.query, &call.state, &database, id, document).await
}

pub async fn delete(call: &Call, db: &str, id: LocalId) -> Answer {
    let database = call.state.database(db)?;
    let rev = agreed_rev(&call.req, &call.query, None)?;
    let document = Document::new(rev, true, Body::empty());
    write(&call.req, &call.query, &call.state, &database, id, document).await
}

/// Writes a local document, or deletes it if it says so.
pub async fn write(
    req: &HttpRequest,
    query: &Query,
    state: &CallState,
    database: &Database,
    id: LocalId,
    document: Document,
) -> Answer {
    let checked = !replicated(query);
    let name = id.to_string();
    let deleted = document.deleted;
    let tag_body = document.body.clone();
    let edit = edit(id, document, checked)?;
    if unattended(query) {
        database.write_later(Write::Local(edit)).await?;
        return Ok(accepted(&name));
    }
    let (outcome, written) = state.write_one(database, Write::Local(edit)).await?;
    let revision = match outcome {
        Outcome::Local { revision } => revision,
        Outcome::Missing => return Err(ApiError::not_found("missing")),
        _ => return Err(ApiError::conflict()),
    };
    let status = if deleted { StatusCode::OK } else { StatusCode::CREATED };
    let mut answer = reply::written(status, &written);
    answer.insert_header((header::ETAG, etag(revision, &tag_body)));
    if !deleted {
        answer.insert_header(reply::location(req, &[database.name().as_str(), &name]));
    }
    Ok(answer.body(written_json(&name, &format!("0-{revision}"))))
}

/// 400: local documents have none.
pub fn no_attachments() -> ApiError {
    ApiError::bad_request("_local documents do not accept attachments.")
}

/// The edit a local document asks for.
///
/// # Errors
/// 400 for a revision that is not `0-n`, and for attachments.
pub fn edit(id: LocalId, document: Document, checked: bool) -> Result<LocalEdit, ApiError> {
    if document.attachments.is_some() {
        return Err(no_attachments());
    }
    let base = document.rev.as_ref().map(number_of).transpose()?;
    let body = (!document.deleted).then_some(document.body);
    Ok(LocalEdit { id, base, checked, body })
}

fn number_of(rev: &RevId) -> Result<u64, ApiError> {
    let number = (rev.generation == 0).then(|| rev.hash.to_string().parse().ok()).flatten();
    number.ok_or_else(|| ApiError::bad_request("Invalid rev format: a _local document's is 0-n"))
}

fn etag(revision: u64, body: &Body) -> String {
    reply::etag_of((revision, body.as_bytes()))
}
