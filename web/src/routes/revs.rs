//! What a target lacks of a source's revisions: `_revs_diff`, `_missing_revs`.

use actix_web::http::StatusCode;
use seqtide::documents::{RevsDiff, revs_diff as diff};
use seqtide::storage::Snapshot;
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use serde_json::value::RawValue;

use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::json::{self, Members};
use crate::{reply, request};

/// Documents compared in one snapshot.
const PAGE_DOCS: usize = 200;

/// Each document's missing revisions, with leaves that may be their ancestors.
pub async fn revs_diff(call: Call, db: &str) -> Answer {
    let mut out = vec![b'{'];
    for (id, diff) in differences(call, db, "_revs_diff").await? {
        start_member(&mut out, &id);
        write_diff(&mut out, &diff);
    }
    out.push(b'}');
    Ok(reply::json_body(StatusCode::OK, out))
}

/// Each document's missing revisions alone.
pub async fn missing_revs(call: Call, db: &str) -> Answer {
    let mut out = b"{\"missing_revs\":{".to_vec();
    for (id, diff) in differences(call, db, "_missing_revs").await? {
        start_member(&mut out, &id);
        write_list(&mut out, &diff.missing);
    }
    out.extend_from_slice(b"}}");
    Ok(reply::json_body(StatusCode::OK, out))
}

/// Compares what is asked with what is there; documents that lack nothing are left out.
async fn differences(mut call: Call, db: &str, endpoint: &'static str) -> Result<Vec<(String, RevsDiff)>, ApiError> {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (body, state) = (call.body().await?, call.state);
    let most = state.config.limits.bulk_docs_max;
    let asked = request::parse(body, move |body| parse(body, most, endpoint)).await?;
    let (database, mut differences) = (database.pinned().await?, Vec::new());
    for page in asked.chunks(PAGE_DOCS) {
        let page = page.to_vec();
        let read = move |snapshot: &Snapshot<'_>| {
            let mut found = Vec::new();
            for (id, revs) in page {
                let lacks_all = RevsDiff { missing: revs.clone(), possible_ancestors: Vec::new() };
                // What no document can be called (a `_local` id among them) is none that is there.
                let diff = match DocId::parse(&id) {
                    Ok(id) => diff(snapshot, &id, &revs)?,
                    Err(_) => (!revs.is_empty()).then_some(lacks_all),
                };
                if let Some(diff) = diff {
                    found.push((id, diff));
                }
            }
            Ok(found)
        };
        differences.extend(database.read(read).await?);
    }
    Ok(differences)
}

/// Reads `{"id":["rev",…],…}`, with at most so many documents, and so many revisions in all.
///
/// # Errors
/// 400 for anything else; 413 for more, in which the endpoint is named.
pub(super) fn parse(body: &[u8], most: usize, endpoint: &str) -> Result<Vec<(String, Vec<RevId>)>, ApiError> {
    let too_many =
        |what: &str| ApiError::too_large(format!("`{endpoint}` names too many {what}: at most {most} are accepted"));
    let members = Members::read(body, json::BODY, most, || too_many("documents"))?;
    let mut revs_left = most;
    let parse = |(id, revs): (String, &RawValue)| {
        let not_list = || ApiError::bad_request(format!("{id:?} must be a list of revisions: {{\"id\":[\"1-…\"]}}"));
        let revs: Vec<String> = json::elements(revs, revs_left, not_list, || too_many("revisions"))?;
        revs_left -= revs.len();
        let revs = revs.iter().map(|rev| RevId::parse(rev)).collect::<Result<_, _>>()?;
        Ok((id, revs))
    };
    members.into_iter().map(parse).collect()
}

/// Writes a member's name, and a comma in front unless it is the first.
pub(super) fn start_member(out: &mut Vec<u8>, name: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_json_string(out, name);
    out.push(b':');
}

fn write_diff(out: &mut Vec<u8>, diff: &RevsDiff) {
    out.push(b'{');
    start_member(out, "missing");
    write_list(out, &diff.missing);
    if !diff.possible_ancestors.is_empty() {
        start_member(out, "possible_ancestors");
        write_list(out, &diff.possible_ancestors);
    }
    out.push(b'}');
}

pub(super) fn write_list(out: &mut Vec<u8>, revs: &[RevId]) {
    out.push(b'[');
    for (at, rev) in revs.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        rev.write_json(out);
    }
    out.push(b']');
}
