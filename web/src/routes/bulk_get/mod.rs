//! Reading many revisions in one request: `_bulk_get`.
//!
//! Source: CouchDB `chttpd_db:bulk_get_ret_json`, `bulk_get_ret_multipart`. The JSON answer has no other member than
//! `results`: CouchDB's replicator gives up on it otherwise.

mod item;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use seqtide::Database;
use seqtide::documents::Reader;
use serde_json::value::RawValue;

use self::item::{Item, Read};
use super::bulk_docs::too_many_docs;
use super::document;
use crate::accept::accepts;
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::json::Members;
use crate::multipart::boundary;
use crate::pages::{self, Items, paged};
use crate::{json, reply, request};

/// Options of a document's GET that make no sense here.
const FORBIDDEN: [&str; 5] = ["open_revs", "new_edits", "w", "rev", "atts_since"];

pub async fn bulk_get(mut call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    if let Some(forbidden) = FORBIDDEN.into_iter().find(|name| call.query.get(name).is_some()) {
        return Err(ApiError::bad_request(format!("\"{forbidden}\" query parameter is not acceptable")));
    }
    let body = call.body().await?;
    let Call { req, query, state, .. } = call;
    let docs_max = state.config.limits.bulk_docs_max;
    let items = request::parse(body, move |body| parse(body, docs_max)).await?;
    let database = database.pinned().await?;
    let read = Read { extras: document::extras(&query), latest: query.flag("latest") };
    match Form::of(&req) {
        Form::Json => as_json(&req, database, items, read).await,
        Form::Multipart(kind) => as_multipart(&req, database, items, read, kind).await,
    }
}

/// How the answer is written: as JSON unless the client takes multipart alone.
enum Form {
    Json,
    Multipart(&'static str),
}

impl Form {
    fn of(req: &HttpRequest) -> Form {
        let takes = |subtype: &&&str| accepts(req, "multipart", subtype);
        match ["mixed", "related"].iter().find(takes) {
            Some(kind) if !accepts(req, "application", "json") => Form::Multipart(kind),
            _ => Form::Json,
        }
    }
}

async fn as_json(req: &HttpRequest, database: Database, items: Vec<Item>, read: Read) -> Answer {
    let write = move |out: &mut Vec<u8>, reader: &mut Reader<'_>, item: &Item| {
        item.write_json(out, &item.read(reader, read)?);
        Ok(())
    };
    let items = Items::new(database, items, write).framed(b"{\"results\":[".into(), b",", b"]}\n".into());
    pages::streaming(req, reply::json(StatusCode::OK), paged(items)).await
}

async fn as_multipart(req: &HttpRequest, database: Database, items: Vec<Item>, read: Read, kind: &str) -> Answer {
    // In CouchDB the boundary itself begins with dashes here.
    let boundary = format!("--{}", boundary());
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, format!("multipart/{kind}; boundary=\"{boundary}\"")));
    let end = if items.is_empty() { String::new() } else { format!("\r\n--{boundary}--\r\n") };
    let delimiter = format!("\r\n--{boundary}");
    let write = move |out: &mut Vec<u8>, reader: &mut Reader<'_>, item: &Item| {
        item.write_parts(out, &item.read(reader, read)?, &delimiter);
        Ok(())
    };
    let items = Items::new(database, items, write).framed(Vec::new(), b"", end.into_bytes());
    pages::streaming(req, answer, paged(items)).await
}

fn parse(body: &[u8], docs_max: usize) -> Result<Vec<Item>, ApiError> {
    let missing = || ApiError::bad_request("Missing JSON list of 'docs'.");
    let docs = Members::of_options(body, json::BODY)?.get("docs").ok_or_else(missing)?;
    let docs: Vec<&RawValue> = json::elements(docs, docs_max, missing, || too_many_docs(docs_max))?;
    Ok(docs.iter().map(|doc| Item::parse(doc.get())).collect())
}
