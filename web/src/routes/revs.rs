//! What a target lacks of a source's revisions: `_revs_diff`.

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

pub async fn revs_diff(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (_, _, _, body) = call.body().await?;
    let asked = request::parse(body, parse).await?;
    let mut out = vec![b'{'];
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
        for (id, diff) in database.read(read).await? {
            if out.len() > 1 {
                out.push(b',');
            }
            write_diff(&mut out, &id, &diff);
        }
    }
    out.push(b'}');
    Ok(reply::json_body(StatusCode::OK, out))
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

fn write_diff(out: &mut Vec<u8>, id: &str, diff: &RevsDiff) {
    let list = |out: &mut Vec<u8>, name: &str, revs: &[RevId]| {
        out.extend_from_slice(format!("\"{name}\":[").as_bytes());
        for (at, rev) in revs.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_json_string(out, &rev.to_string());
        }
        out.push(b']');
    };
    write_json_string(out, id);
    out.extend_from_slice(b":{");
    list(out, "missing", &diff.missing);
    if !diff.possible_ancestors.is_empty() {
        out.push(b',');
        list(out, "possible_ancestors", &diff.possible_ancestors);
    }
    out.push(b'}');
}
