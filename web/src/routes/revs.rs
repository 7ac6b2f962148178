//! What a target lacks of a source's revisions: `_revs_diff`, `_missing_revs`.

use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use seqtide::documents::{RevsDiff, revs_diff as diff};
use seqtide::storage::Snapshot;
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use serde_json::Value;

use super::{Answer, Call};
use crate::error::ApiError;
use crate::{reply, request};

/// Documents compared in one snapshot.
const PAGE_DOCS: usize = 200;

/// Each document's missing revisions, with leaves that may be their ancestors.
pub async fn revs_diff(call: Call, db: &str) -> Answer {
    let mut out = vec![b'{'];
    for (id, diff) in differences(call, db).await? {
        start_member(&mut out, &id);
        write_diff(&mut out, &diff);
    }
    out.push(b'}');
    Ok(reply::json_body(StatusCode::OK, out))
}

/// Each document's missing revisions alone.
pub async fn missing_revs(call: Call, db: &str) -> Answer {
    let mut out = b"{\"missing_revs\":{".to_vec();
    for (id, diff) in differences(call, db).await? {
        start_member(&mut out, &id);
        write_list(&mut out, &diff.missing);
    }
    out.extend_from_slice(b"}}");
    Ok(reply::json_body(StatusCode::OK, out))
}

/// Compares what is asked with what is there; documents that lack nothing are left out.
async fn differences(call: Call, db: &str) -> Result<Vec<(String, RevsDiff)>, ApiError> {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (_, _, _, body) = call.body().await?;
    let asked = request::parse(body, parse).await?;
    let mut differences = Vec::new();
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

/// Reads `{"id":["rev",…],…}`.
fn parse(body: &[u8]) -> Result<Vec<(String, Vec<RevId>)>, ApiError> {
    let value: Value = serde_json::from_slice(body).map_err(|_| ApiError::not_json())?;
    if !value.is_object() {
        return Err(ApiError::bad_request("Request body must be a JSON object"));
    }
    let asked: BTreeMap<String, Vec<String>> = serde_json::from_value(value)
        .map_err(|_| ApiError::bad_request("each member must be a list of revisions: {\"id\":[\"1-…\"]}"))?;
    let parse = |(id, revs): (String, Vec<String>)| {
        let revs = revs.iter().map(|rev| RevId::parse(rev)).collect::<Result<_, _>>()?;
        Ok((id, revs))
    };
    asked.into_iter().map(parse).collect()
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
