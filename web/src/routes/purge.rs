//! Forgetting revisions for good: `_purge`.

use actix_web::http::StatusCode;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::storage::{Outcome, Write};

use super::revs::{start_member, write_list};
use super::{Answer, Call};
use crate::error::ApiError;
use crate::{reply, request};

/// Forgets the leaves that are named; the answer says which those were.
///
/// Source: CouchDB `chttpd_db:handle_purge_req`.
pub async fn purge(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (_, _, state, body) = call.body().await?;
    let most = state.config.limits.bulk_docs_max;
    let named = request::parse(body, move |body| parse(body, most)).await?;
    let ids: Vec<DocId> = named.iter().map(|(id, _)| id.clone()).collect();
    let writes = named.into_iter().map(|(id, revs)| Write::Purge { id, revs }).collect();
    let written = state.write(&database, writes).await?;
    let mut answer = reply::json(StatusCode::CREATED);
    answer.insert_header(reply::seq_header(database.seq_format().await?, written.seq));
    Ok(answer.body(purged_json(&ids, &written.outcomes)))
}

/// Reads `{"id":["rev",…],…}`, with at most so many documents, and so many revisions in all.
fn parse(body: &[u8], most: usize) -> Result<Vec<(DocId, Vec<RevId>)>, ApiError> {
    let too_many =
        |what: &str| ApiError::too_large(format!("`_purge` names too many {what}: at most {most} are accepted"));
    let members = request::members(body, most, || too_many("documents"))?;
    let mut revs_left = most;
    let mut named = Vec::with_capacity(members.len());
    for (id, revs) in members {
        let not_list = || ApiError::bad_request(format!("{id:?} must be a list of revisions: {{\"id\":[\"1-…\"]}}"));
        let revs: Vec<String> = serde_json::from_str(revs.get()).map_err(|_| not_list())?;
        revs_left = revs_left.checked_sub(revs.len()).ok_or_else(|| too_many("revisions"))?;
        let revs = revs.iter().map(|rev| RevId::parse(rev)).collect::<Result<_, _>>()?;
        named.push((DocId::parse(&id)?, revs));
    }
    Ok(named)
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
