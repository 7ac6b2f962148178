//! What a target lacks of a source's revisions: `_revs_diff`, `_missing_revs`.

use actix_web::http::StatusCode;
use seqtide::documents::{RevsDiff, revs_diff as diff};
use seqtide::storage::Snapshot;
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::{RevError, RevId};
use serde_json::value::RawValue;

use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::json::{self, Members};
use crate::{reply, request};

/// Documents compared in one snapshot.
const PAGE_DOCS: usize = 200;

/// What is asked of a document.
#[derive(Clone)]
struct Asked {
    id: String,
    revs: Vec<RevId>,
    /// Revisions whose hashes no document has here: they are missing, and who brings them is told of each by itself.
    too_long: Vec<String>,
}

/// What a document lacks.
struct Lacking {
    id: String,
    diff: RevsDiff,
    too_long: Vec<String>,
}

/// Each document's missing revisions, with leaves that may be their ancestors.
pub async fn revs_diff(call: Call, db: &str) -> Answer {
    let mut out = vec![b'{'];
    for lacking in differences(call, db, "_revs_diff").await? {
        start_member(&mut out, &lacking.id);
        write_diff(&mut out, &lacking);
    }
    out.push(b'}');
    Ok(reply::json_body(StatusCode::OK, out))
}

/// Each document's missing revisions alone.
pub async fn missing_revs(call: Call, db: &str) -> Answer {
    let mut out = b"{\"missing_revs\":{".to_vec();
    for lacking in differences(call, db, "_missing_revs").await? {
        start_member(&mut out, &lacking.id);
        write_missing(&mut out, &lacking);
    }
    out.extend_from_slice(b"}}");
    Ok(reply::json_body(StatusCode::OK, out))
}

/// Compares what is asked with what is there; documents that lack nothing are left out.
async fn differences(mut call: Call, db: &str, endpoint: &'static str) -> Result<Vec<Lacking>, ApiError> {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    let (body, state) = (call.body().await?, call.state);
    let most = state.config.limits.bulk_docs_max;
    let asked = request::parse(body, move |body| asked(body, most, endpoint)).await?;
    let (database, mut differences) = (database.pinned().await?, Vec::new());
    for page in asked.chunks(PAGE_DOCS) {
        let page = page.to_vec();
        let read = move |snapshot: &Snapshot<'_>| {
            let mut found = Vec::new();
            for Asked { id, revs, too_long } in page {
                // What no document can be called (a `_local` id among them) is none that is there.
                let diff = match DocId::parse(&id) {
                    Ok(id) => diff(snapshot, &id, &revs)?,
                    Err(_) => (!revs.is_empty()).then(|| RevsDiff { missing: revs, ..RevsDiff::default() }),
                };
                if diff.is_some() || !too_long.is_empty() {
                    found.push(Lacking { id, diff: diff.unwrap_or_default(), too_long });
                }
            }
            Ok(found)
        };
        differences.extend(database.read(read).await?);
    }
    Ok(differences)
}

/// Reads what is asked, as [`parse`] does.
fn asked(body: &[u8], most: usize, endpoint: &str) -> Result<Vec<Asked>, ApiError> {
    let one = |(id, texts): (String, Vec<String>)| {
        let (mut revs, mut too_long) = (Vec::with_capacity(texts.len()), Vec::new());
        for text in texts {
            match RevId::parse(&text) {
                Ok(rev) => revs.push(rev),
                Err(RevError::TooLong) => too_long.push(text),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Asked { id, revs, too_long })
    };
    parse(body, most, endpoint)?.into_iter().map(one).collect()
}

/// Reads `{"id":["rev",…],…}`, with at most so many documents, and so many revisions in all.
///
/// # Errors
/// 400 for anything else; 413 for more, in which the endpoint is named.
pub(super) fn parse(body: &[u8], most: usize, endpoint: &str) -> Result<Vec<(String, Vec<String>)>, ApiError> {
    let too_many =
        |what: &str| ApiError::too_large(format!("`{endpoint}` names too many {what}: at most {most} are accepted"));
    let members = Members::read(body, json::BODY, most, || too_many("documents"))?;
    let mut revs_left = most;
    let parse = |(id, revs): (String, &RawValue)| {
        let not_list = || ApiError::bad_request(format!("{id:?} must be a list of revisions: {{\"id\":[\"1-…\"]}}"));
        let revs: Vec<String> = json::elements(revs, revs_left, not_list, || too_many("revisions"))?;
        revs_left -= revs.len();
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

fn write_diff(out: &mut Vec<u8>, lacking: &Lacking) {
    out.push(b'{');
    start_member(out, "missing");
    write_missing(out, lacking);
    if !lacking.diff.possible_ancestors.is_empty() {
        start_member(out, "possible_ancestors");
        write_list(out, &lacking.diff.possible_ancestors);
    }
    out.push(b'}');
}

fn write_missing(out: &mut Vec<u8>, Lacking { diff, too_long, .. }: &Lacking) {
    out.push(b'[');
    write_items(out, &diff.missing);
    for rev in too_long {
        start_item(out);
        write_json_string(out, rev);
    }
    out.push(b']');
}

pub(super) fn write_list(out: &mut Vec<u8>, revs: &[RevId]) {
    out.push(b'[');
    write_items(out, revs);
    out.push(b']');
}

fn write_items(out: &mut Vec<u8>, revs: &[RevId]) {
    for rev in revs {
        start_item(out);
        rev.write_json(out);
    }
}

/// Writes the comma in front of an item of a list, unless it is the first.
fn start_item(out: &mut Vec<u8>) {
    if out.last() != Some(&b'[') {
        out.push(b',');
    }
}
