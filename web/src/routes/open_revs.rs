//! Several revisions of one document: `open_revs`, as `multipart/mixed` or JSON.
//!
//! Source: CouchDB `chttpd_db:db_doc_req`, `send_docs_multipart`.

use actix_web::HttpResponse;
use actix_web::http::{StatusCode, header};
use seqtide::Database;
use seqtide::documents::{Document, Extras, OpenRev, Reader, Which, open_revs};
use seqtide::storage::StorageError;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;

use super::document::rev_list;
use crate::accept::accepts;
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::multipart::{JSON_PART, JSON_PART_ERROR, boundary};
use crate::pages::{self, Items, paged};
use crate::reply;

pub async fn answer(call: &Call, database: Database, id: DocId, asked: &str, extras: Extras) -> Answer {
    let revs = if asked == "all" { None } else { Some(rev_list(asked)?) };
    let (all, latest, of) = (revs.is_none(), call.query.flag("latest"), id.clone());
    let database = database.pinned().await?;
    let found = database.read(move |snapshot| open_revs(snapshot, &of, revs.as_deref(), latest)).await?;
    if all && found.is_empty() {
        return Err(ApiError::not_found("missing"));
    }
    let read = Read { id, extras };
    if !accepts(&call.req, "multipart", "mixed") {
        let write = move |out: &mut Vec<u8>, reader: &mut Reader<'_>, rev: &OpenRev| read.write_json(out, reader, rev);
        let items = Items::new(database, found, write).framed(b"[".into(), b",", b"]\n".into());
        return pages::streaming(&call.req, reply::json(StatusCode::OK), paged(items)).await;
    }
    let boundary = boundary();
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, format!("multipart/mixed; boundary=\"{boundary}\"")));
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first delimiter has no line end in front.
    let head = delimiter[2..].to_vec();
    let write = move |out: &mut Vec<u8>, reader: &mut Reader<'_>, rev: &OpenRev| {
        read.write_part(out, reader, rev)?;
        out.extend_from_slice(&delimiter);
        Ok(())
    };
    let items = Items::new(database, found, write).framed(head, b"", b"--".into());
    pages::streaming(&call.req, answer, paged(items)).await
}

/// What is read of each revision.
#[derive(Clone)]
struct Read {
    id: DocId,
    extras: Extras,
}

impl Read {
    fn write_json(&self, out: &mut Vec<u8>, reader: &mut Reader<'_>, rev: &OpenRev) -> Result<(), StorageError> {
        match self.read(reader, rev)? {
            Ok(document) => {
                out.extend_from_slice(b"{\"ok\":");
                document.write_json(out);
                out.push(b'}');
            }
            Err(missing) => write_missing(out, missing),
        }
        Ok(())
    }

    fn write_part(&self, out: &mut Vec<u8>, reader: &mut Reader<'_>, rev: &OpenRev) -> Result<(), StorageError> {
        match self.read(reader, rev)? {
            Ok(document) => {
                out.extend_from_slice(JSON_PART);
                document.write_json(out);
            }
            Err(missing) => {
                out.extend_from_slice(JSON_PART_ERROR);
                write_missing(out, missing);
            }
        }
        Ok(())
    }

    /// Reads a revision; inside, the one that is missing. Its body may be gone since it was looked for.
    fn read<'r>(&self, reader: &mut Reader<'_>, rev: &'r OpenRev) -> Result<Result<Document, &'r RevId>, StorageError> {
        match rev {
            OpenRev::Missing(rev) => Ok(Err(rev)),
            OpenRev::Found(rev) => {
                let found = reader.document(&self.id, &Which::Rev(rev.clone()), self.extras)?;
                Ok(found.map_err(|_gone| rev))
            }
        }
    }
}

fn write_missing(out: &mut Vec<u8>, rev: &RevId) {
    out.extend_from_slice(b"{\"missing\":");
    rev.write_json(out);
    out.push(b'}');
}
