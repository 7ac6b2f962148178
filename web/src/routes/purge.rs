//! Forgetting revisions for good: `_purge`.

use actix_web::http::StatusCode;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::storage::{Outcome, Write};

use super::revs::{parse, start_member, write_list};
use crate::call::{Answer, Call};
use crate::{reply, request};

/// Forgets the leaves that are named; the answer says which those were.
///
/// Source: CouchDB `chttpd_db:handle_purge_req`.
pub async fn purge(mut call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (body, state) = (call.body().await?, call.state);
    let most = state.config.limits.bulk_docs_max;
    let named = request::parse(body, move |body| parse(body, most, "_purge")).await?;
    let mut ids = Vec::with_capacity(named.len());
    let mut writes = Vec::with_capacity(named.len());
    for (id, revs) in named {
        let id = DocId::parse(&id)?;
        let revs = revs.iter().map(|rev| RevId::parse(rev)).collect::<Result<_, _>>()?;
        ids.push(id.clone());
        writes.push(Write::Purge { id, revs });
    }
    let written = state.write(&database, writes).await?;
    let body = purged_json(&ids, &written.outcomes);
    Ok(reply::written(StatusCode::CREATED, &written).body(body))
}

/// `purge_seq` is always `null`, as in CouchDB 3; the database's information has it.
fn purged_json(ids: &[DocId], outcomes: &[Outcome]) -> Vec<u8> {
    let mut out = b"{\"purge_seq\":null,\"purged\":{".to_vec();
    for (id, outcome) in ids.iter().zip(outcomes) {
        start_member(&mut out, id.as_str());
        match outcome {
            Outcome::Purged { revs, .. } => write_list(&mut out, revs),
            _ => write_list(&mut out, &[]),
        }
    }
    out.extend_from_slice(b"}}\n");
    out
}
