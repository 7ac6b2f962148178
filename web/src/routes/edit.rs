//! What requests that write documents have in common: the document that comes, the edit that it asks for, and the
//! answer.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use seqtide::functions::check_design;
use seqtide::storage::Edit;
use seqtide::storage::json::{Document, DocumentError, scan_document, write_json_string};
use seqtide::storage::model::doc_id::{DocId, LocalId};
use seqtide::storage::model::rev::RevId;
use seqtide::storage::model::rev_path::RevPath;
use serde::Deserialize;

use crate::call_state::CallState;
use crate::error::ApiError;
use crate::query::Query;
use crate::state::State;
use crate::{reply, request};

/// Scans a document that a client hands in.
///
/// # Errors
/// 400 for what is no document, 413 for one that is too large.
pub fn scan(text: &[u8], state: &State) -> Result<Document, ApiError> {
    let too_large = |id: Option<String>, what: String| {
        let which = id.map_or_else(|| "the document".to_owned(), |id| format!("the document `{id}`"));
        ApiError::document_too_large(format!("{which} has {what} are accepted"))
    };
    let document = scan_document(text, &state.scan_limits()).map_err(|error| match error {
        DocumentError::TooMany { what, max } => {
            too_large(Named::of(text).id, format!("too many {what}: at most {max}"))
        }
        error => error.into(),
    })?;
    let (bytes, bytes_max) = (document.body.as_bytes().len(), state.config.limits.document_bytes_max);
    if bytes > bytes_max {
        let refused = too_large(document.id, format!("{bytes} bytes, at most {bytes_max}"));
        return Err(refused.for_own_bound(true));
    }
    Ok(document)
}

/// What a document is called that was refused as it was scanned.
#[derive(Default, Deserialize)]
pub struct Named {
    #[serde(rename = "_id")]
    pub id: Option<String>,
    #[serde(rename = "_rev")]
    pub rev: Option<String>,
}

impl Named {
    /// Nothing where it cannot be told.
    pub fn of(text: &[u8]) -> Named {
        serde_json::from_slice(text).unwrap_or_default()
    }
}

/// Scans a request's body as [`scan`] does.
///
/// # Errors
/// As [`scan`].
pub async fn scan_body(body: Bytes, state: &CallState) -> Result<Document, ApiError> {
    let state = state.clone();
    request::parse(body, move |text| scan(text, &state)).await
}

/// Takes out the id that a document says it has, where its URL says which it is to have.
///
/// # Errors
/// 400 `illegal_docid` for what could be no document's.
pub fn check_own_id(document: &mut Document) -> Result<(), ApiError> {
    if let Some(ignored) = document.id.take().filter(|given| LocalId::parse(given).is_none()) {
        DocId::parse(&ignored)?;
    }
    Ok(())
}

/// Takes the ancestry that a replicated revision comes with.
///
/// # Errors
/// 400 when it has none.
pub fn replicated_path(document: &mut Document) -> Result<RevPath, ApiError> {
    let lone = || document.rev.clone().map(RevPath::lone);
    document.revisions.take().or_else(lone).ok_or_else(|| {
        ApiError::bad_request("When `new_edits: false`, the document needs `_rev` or `_revisions` specified")
    })
}

/// The edit that a document asks for, which is replicated where there is a path.
///
/// # Errors
/// It would not be what its writer takes it for: 501 for one with attachments, 400 `invalid_design_doc`.
pub fn edit(id: DocId, path: Option<RevPath>, document: Document) -> Result<Edit, ApiError> {
    if document.attachments.is_some() {
        return Err(attachments(path.is_some()));
    }
    if id.is_design() {
        check_design(&document.body)?;
    }
    Ok(match path {
        Some(path) => Edit::replicated(id, path, document.deleted, document.body),
        None => Edit::interactive(id, document.rev, document.deleted, document.body),
    })
}

/// Why a document with attachments is refused. CouchDB's replicator begins its work again and again where a document it
/// brings is answered with 501, and leaves out one that is answered with 415.
///
/// Source: CouchDB `couch_replicator_worker:handle_doc_write_error`.
pub fn attachments(replicated: bool) -> ApiError {
    let refused = ApiError::not_implemented("attachments");
    if replicated { refused.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE) } else { refused }
}

/// The revision an edit goes on from: the body's, the query's and the `If-Match` header's must agree.
///
/// Source: CouchDB `chttpd_db:couch_doc_from_req`, `extract_header_rev`.
///
/// # Errors
/// 400 where they do not, and for what is no revision.
pub fn agreed_rev(req: &HttpRequest, query: &Query, body: Option<RevId>) -> Result<Option<RevId>, ApiError> {
    let in_query = query.get("rev").map(RevId::parse).transpose()?;
    let if_match = req.headers().get(header::IF_MATCH).map(|value| value.to_str().unwrap_or_default());
    let in_header = if_match.map(|etag| RevId::parse(etag.trim().trim_matches('"'))).transpose()?;
    let differ = |a: &Option<RevId>, b: &Option<RevId>| a.is_some() && b.is_some() && a != b;
    if differ(&body, &in_query) {
        let reason = "Document rev from request body and query string have different values";
        return Err(ApiError::bad_request(reason));
    }
    let rev = body.or(in_query);
    if differ(&rev, &in_header) {
        return Err(ApiError::bad_request("Document rev and etag have different values"));
    }
    Ok(rev.or(in_header))
}

/// Whether what is written comes from elsewhere, with the revision that it has there: `new_edits=false`.
pub fn replicated(query: &Query) -> bool {
    query.get("new_edits") == Some("false")
}

/// Whether nobody waits for the write: `batch=ok`.
pub fn unattended(query: &Query) -> bool {
    query.get("batch") == Some("ok")
}

/// The answer to a write that is queued: it has no revision yet.
pub fn accepted(id: &str) -> HttpResponse {
    let mut out = b"{\"ok\":true,\"id\":".to_vec();
    write_json_string(&mut out, id);
    out.push(b'}');
    reply::json_body(StatusCode::ACCEPTED, out)
}

/// `{"ok":true,"id":…,"rev":…}` and a line end.
pub fn written_json(id: &str, rev: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    write_written(&mut out, id, rev);
    out.push(b'\n');
    out
}

/// Appends `{"ok":true,"id":…,"rev":…}`.
pub fn write_written(out: &mut Vec<u8>, id: &str, rev: &str) {
    out.extend_from_slice(b"{\"ok\":true,\"id\":");
    write_json_string(out, id);
    out.extend_from_slice(b",\"rev\":");
    write_json_string(out, rev);
    out.push(b'}');
}
