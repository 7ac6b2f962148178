//! The options of a listing.

use std::ops::Bound;

use seqtide::RowShape;
use seqtide::storage::Detail;
use serde_json::value::RawValue;

use super::namespace::IdRange;
use crate::error::ApiError;
use crate::json::{self, Members};
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
    /// Of one listing, which names `keys_max` documents at most: the query wins over the body.
    pub fn parse(query: &Query, body: &[u8], keys_max: usize) -> Result<Options, ApiError> {
        let body = if body.is_empty() { Members::default() } else { Members::of_options(body, json::BODY)? };
        Given { query, body, body_wins: false, keys_max, keys_left: keys_max }.options()
    }

    /// Of each of `queries`, which name `keys_max` documents at most in all: what one says itself wins over the query,
    /// which is for all of them.
    pub fn parse_queries(query: &Query, body: &[u8], keys_max: usize) -> Result<Vec<Options>, ApiError> {
        let queries = Members::of_options(body, json::BODY)?.get("queries");
        let queries = queries.ok_or_else(|| ApiError::bad_request("POST body must include `queries` parameter."))?;
        let no_list = || ApiError::bad_request("`queries` parameter must be an array.");
        let too_many = || ApiError::too_large(format!("`queries` has too many queries: at most {QUERIES_MAX}"));
        let queries: Vec<&RawValue> = json::elements(queries, QUERIES_MAX, no_list, too_many)?;
        let mut keys_left = keys_max;
        let parse = |one: &RawValue| {
            let body = Members::of_options(one.get().as_bytes(), "each of `queries` must be a JSON object")?;
            let options = Given { query, body, body_wins: true, keys_max, keys_left }.options()?;
            keys_left -= options.keys.as_ref().map_or(0, Vec::len);
            Ok(options)
        };
        queries.into_iter().map(parse).collect()
    }
}

/// Options from two places.
struct Given<'a> {
    query: &'a Query,
    body: Members<'a>,
    body_wins: bool,
    /// Documents that a request may name.
    keys_max: usize,
    /// How many of them this listing may.
    keys_left: usize,
}

/// An option as it was given.
enum Found<'a> {
    Text(&'a str),
    Json(&'a RawValue),
}

impl<'a> Given<'a> {
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
        let inclusive = self.flag_or("inclusive_end", true)?;
        let start = self.end_of_range(&["startkey", "start_key"], &["startkey_docid", "start_key_doc_id"])?;
        let end = self.end_of_range(&["endkey", "end_key"], &["endkey_docid", "end_key_doc_id"])?;
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let end = end.map_or(Bound::Unbounded, if inclusive { Bound::Included } else { Bound::Excluded });
        Ok(if descending { (end, start) } else { (start, end) })
    }

    fn find(&self, names: &[&str]) -> Option<Found<'a>> {
        let in_query = self.query.last_of(names).map(Found::Text);
        let in_body = names.iter().find_map(|name| self.body.get(name)).map(Found::Json);
        if self.body_wins { in_body.or(in_query) } else { in_query.or(in_body) }
    }

    /// An option's value; in the query it is JSON.
    fn json(&self, names: &[&str]) -> Result<Option<&'a RawValue>, ApiError> {
        match self.find(names) {
            Some(Found::Text(text)) => serde_json::from_str(text).map(Some).map_err(|_| ApiError::not_json()),
            Some(Found::Json(value)) => Ok(Some(value)),
            None => Ok(None),
        }
    }

    /// An option's value where text and JSON mean the same.
    fn plain(&self, names: &[&str]) -> Option<String> {
        self.find(names).map(|found| match found {
            Found::Text(text) => text.to_owned(),
            Found::Json(value) => serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned()),
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
        self.json(names)?.map(place).transpose()
    }

    /// A key of its own, or the one key that is both ends, or else a document's id, which in the query is no JSON.
    fn end_of_range(&self, keys: &[&str], ids: &[&str]) -> Result<Option<String>, ApiError> {
        Ok(self.key(keys)?.or(self.key(&["key"])?).or_else(|| self.plain(ids)))
    }

    fn keys(&self) -> Result<Option<Vec<String>>, ApiError> {
        let Some(keys) = self.json(&["keys"])? else { return Ok(None) };
        if !keys.get().starts_with('[') {
            return Err(ApiError::bad_request("`keys` parameter must be an array."));
        }
        let no_ids = || ApiError::bad_request("`keys` must be document ids, each a string");
        let keys_max = self.keys_max;
        let too_many =
            || ApiError::too_large(format!("`keys` has too many documents: at most {keys_max} are accepted"));
        json::elements(keys, self.keys_left, no_ids, too_many).map(Some)
    }
}

/// A key's place among document ids, which are strings: null, booleans and numbers sort below all of them, arrays and
/// objects above.
fn place(key: &RawValue) -> Result<String, ApiError> {
    match key.get().as_bytes() {
        [b'"', ..] => serde_json::from_str(key.get()).map_err(|_| ApiError::not_json()),
        // No id is above the last code point, repeated for as long as an id may be.
        [b'[' | b'{', ..] => Ok("\u{10FFFF}".repeat(128)),
        _ => Ok(String::new()),
    }
}
