//! `_revisions`: a revision's ancestry, as replication writes it into a document.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{DocumentError, string};
use crate::model::rev::{RevError, RevHash};
use crate::model::rev_path::RevPath;

#[derive(Deserialize)]
struct Revisions<'a> {
    #[serde(borrow)]
    start: Option<&'a RawValue>,
    #[serde(borrow)]
    ids: Option<&'a RawValue>,
}

/// Reads the compacted text of a `_revisions` object with at most so many ids. Other members than `start` and `ids` are
/// ignored.
pub(super) fn parse(object: &str, ids_max: usize) -> Result<RevPath, DocumentError> {
    let bad = |_| DocumentError::BadSpecialMember { name: "_revisions".into() };
    let Revisions { start, ids } = serde_json::from_str(object).map_err(bad)?;
    let start = start.map(RawValue::get).filter(|text| is_integer(text));
    let start = start.ok_or(DocumentError::RevisionsStartNotInteger)?;
    let ids = ids.map(RawValue::get).filter(|text| text.starts_with('['));
    let hashes = hashes(ids.ok_or(DocumentError::RevisionsIdsNotArray)?, ids_max)?;
    if hashes.is_empty() {
        return Err(DocumentError::RevisionsIdsEmpty);
    }
    start.parse().ok().and_then(|start| RevPath::new(start, hashes)).ok_or(DocumentError::RevisionsStartOutOfRange)
}

/// The text is a JSON value, so only its characters are to be looked at.
fn is_integer(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}

/// The ids of a list, which is looked at one by one: a hash in memory may be ten times its text.
fn hashes(list: &str, most: usize) -> Result<Vec<RevHash>, DocumentError> {
    let mut hashes = Vec::new();
    let mut rest = list.strip_prefix('[').unwrap_or_default();
    // Behind an id is a comma, or the list's end; that alone is left of an empty list.
    while rest.len() > 1 {
        if hashes.len() == most {
            return Err(DocumentError::TooMany { what: "revisions", max: most });
        }
        let id = rest.starts_with('"').then(|| string::scan(rest.as_bytes(), 0)).flatten();
        let (id, behind) = rest.split_at(id.ok_or(DocumentError::RevisionsIdNotString)?.end);
        hashes.push(hash(id)?);
        rest = &behind[1..];
    }
    Ok(hashes)
}

fn hash(value: &str) -> Result<RevHash, DocumentError> {
    let text: Cow<'_, str> = string::value_as_string(value).ok_or(DocumentError::RevisionsIdNotString)?;
    RevHash::parse(&text).map_err(|error| match error {
        RevError::Format => DocumentError::RevisionsIdNotHex,
        RevError::TooLong => DocumentError::RevisionsIdTooLong,
    })
}
