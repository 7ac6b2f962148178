//! Reading a document: `GET /{db}/{id}`.

use actix_web::http::{StatusCode, header};
use seqtide::documents::{Document, Extras, Which, read_document, read_leaves, read_leaves_under};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::storage::{Snapshot, StorageError};

use super::{Answer, Call};
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

pub async fn get(call: &Call, db: &str, id: &str) -> Answer {
    let database = call.state.database(db)?;
    let id = DocId::parse(id)?;
    let extras = extras(&call.query);
    if let Some(asked) = call.query.get("open_revs") {
        let asked = OpenRevs::parse(asked, call.query.flag("latest"))?;
        let read = move |snapshot: &Snapshot<'_>| asked.read(snapshot, &id, extras);
        return Ok(reply::json(StatusCode::OK).body(open_revs_json(&database.read(read).await??)));
    }
    let which = match call.query.get("rev").map(RevId::parse).transpose()? {
        // CouchDB's `latest` gives the winner, even from another branch.
        Some(_) if call.query.flag("latest") => Which::WinnerOrTombstone,
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
    let etag = if alone { reply::rev_etag(&found.rev) } else { None };
    if let Some(known) = etag.as_ref().filter(|etag| reply::is_known(&call.req, etag)) {
        return reply::not_modified(known.clone());
    }
    let mut answer = reply::json(StatusCode::OK);
    if let Some(etag) = etag {
        answer.insert_header((header::ETAG, etag));
    }
    let mut body = found.to_json();
    body.push(b'\n');
    answer.body(body)
}

/// `open_revs`: all leaves, or those named.
struct OpenRevs {
    revs: Option<Vec<RevId>>,
    latest: bool,
}

/// A revision asked for, as it was found.
enum OpenRev {
    Ok(Document),
    Missing(RevId),
}

impl OpenRevs {
    fn parse(text: &str, latest: bool) -> Result<OpenRevs, ApiError> {
        if text == "all" {
            return Ok(OpenRevs { revs: None, latest });
        }
        let revs: Vec<String> = serde_json::from_str(text).map_err(|_| ApiError::not_json())?;
        let revs = revs.iter().map(|rev| RevId::parse(rev)).collect::<Result<_, _>>()?;
        Ok(OpenRevs { revs: Some(revs), latest })
    }

    fn read(
        &self,
        snapshot: &Snapshot<'_>,
        id: &DocId,
        extras: Extras,
    ) -> Result<Result<Vec<OpenRev>, ApiError>, StorageError> {
        let Some(revs) = &self.revs else {
            let leaves = read_leaves(snapshot, id, extras)?;
            let missing = leaves.is_empty().then(|| ApiError::not_found("missing"));
            return Ok(missing.map_or_else(|| Ok(leaves.into_iter().map(OpenRev::Ok).collect()), Err));
        };
        let mut found = Vec::new();
        for rev in revs {
            let documents = if self.latest {
                read_leaves_under(snapshot, id, rev, extras)?
            } else {
                read_document(snapshot, id, &Which::Rev(rev.clone()), extras)?.into_iter().collect()
            };
            if documents.is_empty() {
                found.push(OpenRev::Missing(rev.clone()));
            }
            found.extend(documents.into_iter().map(OpenRev::Ok));
        }
        found.sort_by_key(|open| match open {
            OpenRev::Ok(document) => (false, document.rev.clone()),
            OpenRev::Missing(rev) => (true, rev.clone()),
        });
        Ok(Ok(found))
    }
}

fn open_revs_json(revs: &[OpenRev]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (at, rev) in revs.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match rev {
            OpenRev::Ok(document) => {
                out.extend_from_slice(b"{\"ok\":");
                document.write_json(&mut out);
                out.push(b'}');
            }
            OpenRev::Missing(rev) => out.extend_from_slice(format!("{{\"missing\":\"{rev}\"}}").as_bytes()),
        }
    }
    out.extend_from_slice(b"]\n");
    out
}
