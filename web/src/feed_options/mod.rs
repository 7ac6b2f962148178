//! What a feed is asked for, as a request says it: at the [`native`] door, and at [`couchdb`]'s. Here is what both read
//! alike.

pub mod couchdb;
mod function;
pub mod native;

use std::borrow::Cow;

use actix_web::HttpRequest;
use seqtide::Since;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::sequence::Sequence;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::json;

/// What a client says that it was given last. What is no text is no token either, and is refused like others.
pub fn last_event_id(req: &HttpRequest) -> Option<Cow<'_, str>> {
    req.headers().get("last-event-id").map(|value| String::from_utf8_lossy(value.as_bytes()))
}

/// Reads a token, in double quotes or without.
///
/// # Errors
/// 400 with CouchDB's text.
pub fn parse_since(text: &str) -> Result<Since, ApiError> {
    let malformed = || ApiError::bad_request("Malformed sequence supplied in 'since' parameter.");
    if text == "now" {
        return Ok(Since::Now);
    }
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    Sequence::parse(bare).map(Since::Seq).ok_or_else(malformed)
}

/// Reads a list of at most `most` document ids; those that no document can have are left out.
///
/// # Errors
/// 400 with CouchDB's text; 413 for more of them.
pub fn doc_ids(list: Option<&RawValue>, most: usize) -> Result<Vec<DocId>, ApiError> {
    let not_a_list = || ApiError::bad_request("`doc_ids` filter parameter is not a list of doc ids.");
    let too_many = || ApiError::too_large(format!("`doc_ids` has too many ids: at most {most} are accepted"));
    let ids: Vec<String> = json::elements(list.ok_or_else(not_a_list)?, most, not_a_list, too_many)?;
    Ok(ids.iter().filter_map(|id| DocId::parse(id).ok()).collect())
}
