//! Reading many revisions in one request: `_bulk_get`.
//!
//! Source: CouchDB `chttpd_db:bulk_get_ret_json`. The answer has no other member than `results`: CouchDB's replicator
//! gives up on it otherwise.

use actix_web::http::StatusCode;
use seqtide::documents::{Document, Extras, Which, read_document, read_leaves, read_leaves_under};
use seqtide::storage::model::doc_id::{DocId, LocalId};
use seqtide::storage::model::rev::RevId;
use seqtide::storage::{Snapshot, StorageError};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Answer, Call, document};
use crate::error::ApiError;
use crate::request::{elements, object};
use crate::{reply, request};

/// Revisions read in one snapshot.
const PAGE_ITEMS: usize = 100;

/// Options of a document's GET that make no sense here.
const FORBIDDEN: [&str; 5] = ["open_revs", "new_edits", "w", "rev", "atts_since"];

#[derive(Deserialize)]
struct BulkGet<'a> {
    #[serde(borrow)]
    docs: Option<&'a RawValue>,
}

/// An item of `docs` as it was given.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    rev: Value,
}

/// What an item asks for, and what its answer repeats of it.
#[derive(Clone)]
struct Item {
    id: Value,
    rev: Value,
    asked: Result<Asked, ApiError>,
}

/// Revisions of a document.
#[derive(Clone)]
enum Asked {
    /// Every leaf.
    Leaves(DocId),
    /// One revision, or with `latest` the leaves under it.
    Rev(DocId, RevId),
}

pub async fn bulk_get(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    if let Some(forbidden) = FORBIDDEN.into_iter().find(|name| call.query.get(name).is_some()) {
        return Err(ApiError::bad_request(format!("\"{forbidden}\" query parameter is not acceptable")));
    }
    let (_, query, state, body) = call.body().await?;
    let docs_max = state.config.limits.bulk_docs_max;
    let items = request::parse(body, move |body| parse(body, docs_max)).await?;
    let (extras, latest) = (document::extras(&query), query.flag("latest"));
    let mut out = b"{\"results\":[".to_vec();
    // Page by page, so that no snapshot is held for long.
    for page in items.chunks(PAGE_ITEMS) {
        let page = page.to_vec();
        let read = move |snapshot: &Snapshot<'_>| {
            let read = |item: Item| Ok((item.read(snapshot, latest, extras)?, item));
            page.into_iter().map(read).collect::<Result<Vec<_>, StorageError>>()
        };
        for (found, item) in database.read(read).await? {
            if out.last() == Some(&b'}') {
                out.push(b',');
            }
            item.write(&mut out, &found);
        }
    }
    out.extend_from_slice(b"]}");
    Ok(reply::json_body(StatusCode::OK, out))
}

fn parse(body: &[u8], docs_max: usize) -> Result<Vec<Item>, ApiError> {
    let missing = || ApiError::bad_request("Missing JSON list of 'docs'.");
    let request: BulkGet<'_> = object(body)?;
    let docs = elements(request.docs.ok_or_else(missing)?, docs_max, missing)?;
    Ok(docs.iter().map(|doc| Item::parse(doc.get())).collect())
}

impl Item {
    fn parse(text: &str) -> Item {
        match serde_json::from_str(text) {
            // Without a document, CouchDB repeats no revision either.
            Ok(Given { id: Value::Null, .. }) => Item::refused(ApiError::bad_request("document id missed")),
            Ok(Given { id, rev }) => Item { asked: Asked::parse(&id, &rev), id, rev },
            Err(_) => Item::refused(ApiError::bad_request("document must be a JSON object")),
        }
    }

    fn refused(why: ApiError) -> Item {
        Item { id: Value::Null, rev: Value::Null, asked: Err(why) }
    }

    /// Reads what is asked for; inside, why there is nothing.
    fn read(
        &self,
        snapshot: &Snapshot<'_>,
        latest: bool,
        extras: Extras,
    ) -> Result<Result<Vec<Document>, ApiError>, StorageError> {
        let found: Vec<Document> = match &self.asked {
            Err(refused) => return Ok(Err(refused.clone())),
            Ok(Asked::Leaves(id)) => read_leaves(snapshot, id, extras)?,
            Ok(Asked::Rev(id, rev)) if latest => read_leaves_under(snapshot, id, rev, extras)?,
            Ok(Asked::Rev(id, rev)) => {
                read_document(snapshot, id, &Which::Rev(rev.clone()), extras)?.into_iter().collect()
            }
        };
        Ok(if found.is_empty() { Err(ApiError::not_found("missing")) } else { Ok(found) })
    }

    fn write(&self, out: &mut Vec<u8>, found: &Result<Vec<Document>, ApiError>) {
        out.extend_from_slice(format!("{{\"id\":{},\"docs\":[", self.id).as_bytes());
        match found {
            Ok(documents) => {
                for (at, document) in documents.iter().enumerate() {
                    out.extend_from_slice(if at > 0 { b",{\"ok\":" } else { b"{\"ok\":" });
                    document.write_json(out);
                    out.push(b'}');
                }
            }
            Err(refused) => {
                out.extend_from_slice(format!("{{\"error\":{{\"id\":{},\"rev\":{},", self.id, self.rev()).as_bytes());
                refused.write_members(out);
                out.extend_from_slice(b"}}");
            }
        }
        out.extend_from_slice(b"]}");
    }

    /// The revision as an error repeats it: of a document that is not there and was asked for without one, CouchDB
    /// says `"undefined"`.
    fn rev(&self) -> Value {
        if matches!(self.asked, Ok(Asked::Leaves(_))) { Value::from("undefined") } else { self.rev.clone() }
    }
}

impl Asked {
    fn parse(id: &Value, rev: &Value) -> Result<Asked, ApiError> {
        let id = match id {
            Value::String(id) if LocalId::parse(id).is_some() => return Err(ApiError::not_found("missing")),
            Value::String(id) => DocId::parse(id)?,
            _ => return Err(ApiError::id_not_string()),
        };
        match rev {
            Value::Null => Ok(Asked::Leaves(id)),
            Value::String(rev) => Ok(Asked::Rev(id, RevId::parse(rev)?)),
            _ => Err(ApiError::bad_request("Invalid rev format")),
        }
    }
}
