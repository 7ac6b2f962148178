//! Writing a document: `PUT`, `DELETE` and `COPY /{db}/{id}`, `POST /{db}`.

use std::future::{Future, ready};

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponseBuilder};
use seqtide::documents::{Extras, Which, read_document};
use seqtide::storage::json::{Body, Document};
use seqtide::storage::model::doc_id::{DocId, LocalId};
use seqtide::storage::model::rev::RevId;
use seqtide::storage::{Edit, Outcome, Snapshot, Write};
use seqtide::{Database, Written};

use super::edit::{
    accepted, agreed_rev, attachments, check_own_id, edit, replicated, replicated_path, scan_body, unattended,
    written_json,
};
use super::local;
use crate::call::{Answer, Call};
use crate::call_state::CallState;
use crate::error::ApiError;
use crate::query::{Query, decode};
use crate::{reply, request};

pub async fn put(mut call: Call, db: &str, id: &str) -> Answer {
    let database = call.state.database(db)?;
    let id = DocId::parse(id)?;
    if request::essence(&call.req).eq_ignore_ascii_case("multipart/related") {
        return Err(attachments(replicated(&call.query)));
    }
    let target = Target { database: &database, id, replicated: replicated(&call.query) };
    // By the time it waits for the write, it need not have room for the document any more.
    let (status, writes) = {
        let mut document = scan_body(call.body().await?, &call.state).await?;
        check_own_id(&mut document)?;
        document.rev = agreed_rev(&call.req, &call.query, document.rev)?;
        if unattended(&call.query) {
            return Box::pin(target.write_later(document)).await;
        }
        let status = if document.deleted { StatusCode::OK } else { StatusCode::CREATED };
        // Where it fails does not matter to a repetition, which is answered as it was.
        (status, target.writes(document))
    };
    let (rev, answer) = target.write(&call.state, status, ready(writes)).await?;
    Ok(tagged(target.placed(&call.req, answer), &rev).body(written_json(target.id.as_str(), &rev)))
}

pub async fn delete(call: &Call, db: &str, id: &str) -> Answer {
    let database = call.state.database(db)?;
    let id = DocId::parse(id)?;
    let rev = agreed_rev(&call.req, &call.query, None)?;
    let target = Target { database: &database, id, replicated: false };
    let there = target.id.clone();
    let read = database.read(move |snapshot| read_document(snapshot, &there, &Which::Winner, Extras::default()));
    let tombstone = Box::pin(async {
        // There must be something to delete.
        read.await??;
        Ok::<_, ApiError>(Document::new(rev, true, Body::empty()))
    });
    if unattended(&call.query) {
        return target.write_later(tombstone.await?).await;
    }
    let writes = async { target.writes(tombstone.await?) };
    let (rev, answer) = target.write(&call.state, StatusCode::OK, writes).await?;
    Ok(tagged(answer, &rev).body(written_json(target.id.as_str(), &rev)))
}

/// Writes a document's body under another id of the same database: the same edit as a PUT of it would be.
///
/// Source: CouchDB `chttpd_db:db_doc_req`, COPY.
pub async fn copy(call: &Call, db: &str, id: &str) -> Answer {
    let database = call.state.database(db)?;
    let source = DocId::parse(id)?;
    let (id, rev) = destination(&call.req)?;
    let which = agreed_rev(&call.req, &call.query, None)?.map_or(Which::Winner, Which::Rev);
    let database = database.pinned().await?;
    let read = move |snapshot: &Snapshot<'_>| read_document(snapshot, &source, &which, Extras::default());
    let copied = Box::pin(async {
        let found = database.read(read).await??;
        Ok::<_, ApiError>(Document::new(rev, found.deleted, found.body))
    });
    let target = Target { database: &database, id, replicated: false };
    if unattended(&call.query) {
        return target.write_later(copied.await?).await;
    }
    let writes = async { target.writes(copied.await?) };
    let (rev, answer) = target.write(&call.state, StatusCode::CREATED, writes).await?;
    Ok(tagged(target.placed(&call.req, answer), &rev).body(written_json(target.id.as_str(), &rev)))
}

/// Where a copy goes: `id`, or `id?rev=…` to replace that revision.
fn destination(req: &HttpRequest) -> Result<(DocId, Option<RevId>), ApiError> {
    let missing = || ApiError::bad_request("Destination header is mandatory for COPY.");
    let given = req.headers().get("destination").ok_or_else(missing)?;
    let given = given.to_str().map_err(|_| ApiError::bad_request("the Destination header is not ASCII: escape it"))?;
    if given.starts_with("http://") || given.starts_with("https://") {
        return Err(ApiError::bad_request("Destination URL must be relative."));
    }
    let (id, query) = given.split_once('?').unwrap_or((given, ""));
    let rev = Query::parse(query)?.get("rev").map(RevId::parse).transpose()?;
    Ok((DocId::parse(&decode(id.trim())?)?, rev))
}

pub async fn post(mut call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let mut document = scan_body(call.body().await?, &call.state).await?;
    let Call { req, query, state, .. } = call;
    let (id, replicated) = match document.id.take() {
        Some(id) => match LocalId::parse(&id) {
            Some(id) => return local::write(&req, &query, &state, &database, id?, document).await,
            None => (DocId::parse(&id)?, replicated(&query)),
        },
        None => {
            // What is new goes on from nothing, and was nowhere before.
            document.rev = None;
            (state.new_id(), false)
        }
    };
    let target = Target { database: &database, id, replicated };
    if unattended(&query) {
        return Box::pin(target.write_later(document)).await;
    }
    let writes = target.writes(document);
    let (rev, answer) = target.write(&state, StatusCode::CREATED, ready(writes)).await?;
    Ok(target.placed(&req, answer).body(written_json(target.id.as_str(), &rev)))
}

/// What is written, and how.
struct Target<'a> {
    database: &'a Database,
    id: DocId,
    replicated: bool,
}

impl Target<'_> {
    /// The answer, which says where the document is.
    fn placed(&self, req: &HttpRequest, mut answer: HttpResponseBuilder) -> HttpResponseBuilder {
        answer.insert_header(reply::location(req, &[self.database.name().as_str(), self.id.as_str()]));
        answer
    }

    fn edit(&self, mut document: Document) -> Result<Edit, ApiError> {
        let path = self.replicated.then(|| replicated_path(&mut document)).transpose()?;
        edit(self.id.clone(), path, document)
    }

    /// Queues a write that nobody waits for.
    async fn write_later(&self, document: Document) -> Answer {
        self.database.write_later(Write::Edit(self.edit(document)?)).await?;
        Ok(accepted(self.id.as_str()))
    }

    /// What writes a document; an error where nothing may.
    fn writes(&self, document: Document) -> Result<Vec<Write>, ApiError> {
        Ok(vec![Write::Edit(self.edit(document)?)])
    }

    /// Writes a document; what does that may be made of what the database has now. Gives its revision as text, and
    /// starts the answer.
    async fn write(
        &self,
        state: &CallState,
        status: StatusCode,
        writes: impl Future<Output = Result<Vec<Write>, ApiError>>,
    ) -> Result<(String, HttpResponseBuilder), ApiError> {
        let written = state.write_prepared(self.database, writes).await?;
        let answer = reply::written(status, &written);
        Ok((outcome(self.database, &self.id, written)?, answer))
    }
}

/// What came of a write of one document: its revision, as text.
///
/// # Errors
/// 409 and others: why it was not written.
pub fn outcome(database: &Database, id: &DocId, written: Written) -> Result<String, ApiError> {
    match written.outcomes.into_iter().next() {
        Some(Outcome::Written { rev, .. } | Outcome::Known { rev }) => Ok(rev.to_string()),
        Some(Outcome::Refused(refusal)) => Err(ApiError::from(&refusal)),
        _ => {
            tracing::debug!(db = %database.name(), %id, "conflict");
            Err(ApiError::conflict())
        }
    }
}

fn tagged(mut answer: HttpResponseBuilder, rev: &str) -> HttpResponseBuilder {
    if let Some(etag) = reply::rev_etag(rev) {
        answer.insert_header((header::ETAG, etag));
    }
    answer
}
