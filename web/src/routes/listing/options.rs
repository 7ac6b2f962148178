//! The options of a listing.

use std::ops::Bound;

use seqtide::RowShape;
use seqtide::storage::Detail;
use serde_json::{Map, Value};

use super::namespace::IdRange;
use crate::error::ApiError;
use crate::query::{Query, bad_option, query_parse_error};

/// Most listings in one request.
const QUERIES_MAX: usize = 1000;

/// What is asked of a listing, from the query and, for a POST, from the body.
///
/// Source: CouchDB `couch_mrview_http:parse_param`, `couch_mrview_util:validate_args`.
#[derive(Debug)]
pub struct Options {
    pub keys: Option<Vec<String>>,
    pub range: IdRange,
    pub descending: bool,
    pub limit: u64,
    pub skip: u64,
    pub shape: RowShape,
    pub update_seq: bool,
}

/// What rows of a shape need of a document.
pub fn detail(shape: RowShape) -> Detail {
    Detail { leaves: shape.doc && shape.conflicts, bodies: shape.doc }
}

impl Options {
    /// Of one listing: the query wins over the body.
    pub fn parse(query: &Query, body: &[u8]) -> Result<Options, ApiError> {
        let body = if body.is_empty() { Map::new() } else { parse_object(body)? };
        Given { query, body: &body, body_wins: false }.options()
    }

    /// Of each of `queries`: what one says itself wins over the query, which is for all of them.
    pub fn parse_queries(query: &Query, body: &[u8]) -> Result<Vec<Options>, ApiError> {
        let queries = match parse_object(body)?.remove("queries") {
            Some(Value::Array(queries)) => queries,
            Some(_) => return Err(ApiError::bad_request("`queries` parameter must be an array.")),
            None => return Err(ApiError::bad_request("POST body must include `queries` parameter.")),
        };
        if queries.len() > QUERIES_MAX {
            return Err(ApiError::too_large(format!("`queries` has too many queries: at most {QUERIES_MAX}")));
        }
        let parse = |one: &Value| match one {
            Value::Object(body) => Given { query, body, body_wins: true }.options(),
            _ => Err(ApiError::bad_request("each of `queries` must be a JSON object")),
        };
        queries.iter().map(parse).collect()
    }
}

fn parse_object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice(body).map_err(|_| ApiError::not_json())? {
        Value::Object(members) => Ok(members),
        _ => Err(ApiError::bad_request("Request body must be a JSON object")),
    }
}

/// Options from two places.
struct Given<'a> {
    query: &'a Query,
    body: &'a Map<String, Value>,
    body_wins: bool,
}

/// An option as it was given.
enum Found<'a> {
    Text(&'a str),
    Json(&'a Value),
}

impl Given<'_> {
    fn options(&self) -> Result<Options, ApiError> {
        let descending = self.flag("descending")?;
        let keys = self.keys()?;
        let range = self.range(descending)?;
        let unbounded = range == (Bound::Unbounded, Bound::Unbounded);
        if keys.as_ref().is_some_and(|keys| !keys.is_empty()) && !unbounded {
            return Err(bad_option("`keys` is incompatible with `key`, `start_key` and `end_key`"));
        }
        // Of attachments, which no document has yet.
        self.flag("attachments")?;
        self.flag("att_encoding_info")?;
        Ok(Options {
            keys,
            range,
            descending,
            limit: self.number("limit")?.unwrap_or(u64::MAX),
            skip: self.number("skip")?.unwrap_or(0),
            shape: RowShape { all_leaves: false, doc: self.flag("include_docs")?, conflicts: self.flag("conflicts")? },
            update_seq: self.flag("update_seq")?,
        })
    }

    /// The ids from the lowest to the highest: a descending listing starts at the highest.
    fn range(&self, descending: bool) -> Result<IdRange, ApiError> {
        if let Some(key) = self.key(&["key"])? {
            return Ok((Bound::Included(key.clone()), Bound::Included(key)));
        }
        let inclusive = self.flag_or("inclusive_end", true)?;
        let start = self.key_or_id(&["startkey", "start_key"], &["startkey_docid", "start_key_doc_id"])?;
        let end = self.key_or_id(&["endkey", "end_key"], &["endkey_docid", "end_key_doc_id"])?;
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let end = end.map_or(Bound::Unbounded, if inclusive { Bound::Included } else { Bound::Excluded });
        Ok(if descending { (end, start) } else { (start, end) })
    }

    fn find(&self, names: &[&str]) -> Option<Found<'_>> {
        let in_query = self.query.last_of(names).map(Found::Text);
        let in_body = names.iter().find_map(|name| self.body.get(*name)).map(Found::Json);
        if self.body_wins { in_body.or(in_query) } else { in_query.or(in_body) }
    }

    /// An option's value; in the query it is JSON.
    fn json(&self, names: &[&str]) -> Result<Option<Value>, ApiError> {
        match self.find(names) {
            Some(Found::Text(text)) => serde_json::from_str(text).map(Some).map_err(|_| ApiError::not_json()),
            Some(Found::Json(value)) => Ok(Some(value.clone())),
            None => Ok(None),
        }
    }

    /// An option's value where text and JSON mean the same.
    fn plain(&self, names: &[&str]) -> Option<String> {
        self.find(names).map(|found| match found {
            Found::Text(text) => text.to_owned(),
            Found::Json(Value::String(text)) => text.clone(),
            Found::Json(value) => value.to_string(),
        })
    }

    fn flag(&self, name: &str) -> Result<bool, ApiError> {
        self.flag_or(name, false)
    }

    fn flag_or(&self, name: &str, default: bool) -> Result<bool, ApiError> {
        let Some(text) = self.plain(&[name]) else { return Ok(default) };
        let refuse = || bad_option(format!("Invalid boolean parameter: {text:?}"));
        text.to_ascii_lowercase().parse().map_err(|_| refuse())
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.plain(&[name]) else { return Ok(None) };
        let number: i128 = text.parse().map_err(|_| query_parse_error(&text))?;
        if number < 0 {
            return Err(bad_option(format!("Invalid value for positive integer: {text:?}")));
        }
        Ok(Some(u64::try_from(number).unwrap_or(u64::MAX)))
    }

    fn key(&self, names: &[&str]) -> Result<Option<String>, ApiError> {
        Ok(self.json(names)?.map(place))
    }

    /// A key, or else a document's id, which in the query is no JSON.
    fn key_or_id(&self, keys: &[&str], ids: &[&str]) -> Result<Option<String>, ApiError> {
        Ok(self.key(keys)?.or_else(|| self.plain(ids)))
    }

    fn keys(&self) -> Result<Option<Vec<String>>, ApiError> {
        let Some(keys) = self.json(&["keys"])? else { return Ok(None) };
        let Value::Array(keys) = keys else {
            return Err(ApiError::bad_request("`keys` parameter must be an array."));
        };
        let text = |key: Value| match key {
            Value::String(text) => Ok(text),
            other => Err(ApiError::bad_request(format!("`keys` must be document ids, not {other}"))),
        };
        keys.into_iter().map(text).collect::<Result<_, _>>().map(Some)
    }
}

/// A key's place among document ids, which are strings: null, booleans and numbers sort below all of them, arrays and
/// objects above.
fn place(key: Value) -> String {
    match key {
        Value::String(id) => id,
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
        // No id is above the last code point, repeated for as long as an id may be.
        Value::Array(_) | Value::Object(_) => "\u{10FFFF}".repeat(128),
    }
}
