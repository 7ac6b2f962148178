//! Reading a document: `GET /{db}/{id}`.

use actix_web::http::{StatusCode, header};
use seqtide::documents::{Document, Extras, Which, read_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;

use super::open_revs;
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::query::Query;
use crate::reply;

/// What a query asks to see of documents.
pub fn extras(query: &Query) -> Extras {
    let meta = query.flag("meta");
    Extras {
        revs: query.flag("revs"),
        revs_info: meta || query.flag("revs_info"),
        conflicts: meta || query.flag("conflicts"),
        deleted_conflicts: meta || query.flag("deleted_conflicts"),
        local_seq: query.flag("local_seq"),
    }
}

/// Reads a list of revisions.
///
/// # Errors
/// 400 for what is no JSON, no list of texts, or has a text that is no revision.
pub fn rev_list(text: &str) -> Result<Vec<RevId>, ApiError> {
    let list: serde_json::Value = serde_json::from_str(text).map_err(|_| ApiError::not_json())?;
    let no_list = |_| ApiError::bad_request("Invalid list of revisions: it is [\"1-…\",…]");
    let revs: Vec<String> = serde_json::from_value(list).map_err(no_list)?;
    Ok(revs.iter().map(|rev| RevId::parse(rev)).collect::<Result<_, _>>()?)
}

pub async fn get(call: &Call, db: &str, id: &str) -> Answer {
    let database = call.state.database(db)?;
    let id = DocId::parse(id)?;
    let extras = extras(&call.query);
    if let Some(since) = call.query.get("atts_since") {
        // Of attachments, which no document has yet.
        rev_list(since)?;
    }
    if let Some(asked) = call.query.get("open_revs") {
        return open_revs::answer(call, database, id, asked, extras).await;
    }
    let which = match call.query.get("rev").map(RevId::parse).transpose()? {
        // CouchDB's `latest` gives the winner, even from another branch, as without a revision.
        Some(_) if call.query.flag("latest") => Which::Winner,
        Some(rev) => Which::Rev(rev),
        None => Which::Winner,
    };
    let found = database.read(move |snapshot| read_document(snapshot, &id, &which, extras)).await??;
    Ok(answer(call, &found))
}

fn answer(call: &Call, found: &Document) -> actix_web::HttpResponse {
    // What stands beside the body may change without the revision changing.
    let none = |revs: &Option<Vec<RevId>>| revs.as_ref().is_none_or(Vec::is_empty);
    let alone =
        none(&found.conflicts) && none(&found.deleted_conflicts) && found.revs_info.is_none() && !found.shows_seq;
    let etag = if alone { reply::rev_etag(&found.rev.to_string()) } else { None };
    if let Some(not_modified) = reply::not_modified(&call.req, etag.as_deref()) {
        return not_modified;
    }
    let mut answer = reply::json(StatusCode::OK);
    if let Some(etag) = etag {
        answer.insert_header((header::ETAG, etag));
    }
    let mut body = found.to_json();
    body.push(b'\n');
    answer.body(body)
}
