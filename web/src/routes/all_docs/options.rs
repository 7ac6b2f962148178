//! The options of `_all_docs`.

use std::ops::Bound;

use seqtide::RowShape;
use seqtide::storage::Detail;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::query::{Query, query_parse_error};

/// What is asked of `_all_docs`, from the query and, for a POST, from the body.
#[derive(Debug)]
pub struct Options {
    pub keys: Option<Vec<String>>,
    pub from: Bound<String>,
    pub to: Bound<String>,
    pub descending: bool,
    pub limit: u64,
    pub skip: u64,
    pub shape: RowShape,
    pub update_seq: bool,
}

impl Options {
    pub fn parse(query: &Query, body: &[u8]) -> Result<Options, ApiError> {
        let given = Given { query, body: parse_object(body)? };
        let descending = given.flag("descending")?;
        let start = given.key(&["startkey", "start_key"])?;
        let end = given.key(&["endkey", "end_key"])?;
        let inclusive = given.json("inclusive_end")?.is_none_or(|value| value != Value::Bool(false));
        let key = given.key(&["key"])?;
        let end = match end {
            Some(key) if !inclusive => key.exclusive(),
            Some(key) => key.inclusive(),
            None => Bound::Unbounded,
        };
        let start = start.map_or(Bound::Unbounded, |key| key.inclusive());
        let (mut from, mut to) = if descending { (end, start) } else { (start, end) };
        if let Some(key) = key {
            (from, to) = (key.clone().inclusive(), key.inclusive());
        }
        Ok(Options {
            keys: given.keys()?,
            from,
            to,
            descending,
            limit: given.number("limit")?.unwrap_or(u64::MAX),
            skip: given.number("skip")?.unwrap_or(0),
            shape: RowShape {
                all_leaves: false,
                doc: given.flag("include_docs")?,
                conflicts: given.flag("conflicts")?,
            },
            update_seq: given.flag("update_seq")?,
        })
    }

    pub fn detail(&self) -> Detail {
        Detail { leaves: self.shape.doc && self.shape.conflicts, bodies: self.shape.doc }
    }

    /// Whether the listing starts at the first document.
    pub fn starts_at_an_end(&self) -> bool {
        matches!(if self.descending { &self.to } else { &self.from }, Bound::Unbounded)
    }
}

fn parse_object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body).map_err(|_| ApiError::not_json())? {
        Value::Object(members) => Ok(members),
        _ => Err(ApiError::bad_request("Request body must be a JSON object")),
    }
}

/// Options from two places; the query wins.
struct Given<'a> {
    query: &'a Query,
    body: Map<String, Value>,
}

impl Given<'_> {
    /// An option's value; in the query it is JSON.
    fn json(&self, name: &str) -> Result<Option<Value>, ApiError> {
        match self.query.get(name) {
            Some(text) => serde_json::from_str(text).map(Some).map_err(|_| ApiError::not_json()),
            None => Ok(self.body.get(name).cloned()),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, ApiError> {
        let in_body = || self.body.get(name) == Some(&Value::Bool(true));
        Ok(self.query.get(name).map_or_else(in_body, |value| value == "true"))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        if self.query.get(name).is_some() {
            return self.query.integer(name);
        }
        let Some(value) = self.body.get(name) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| query_parse_error(&value.to_string()))
    }

    fn key(&self, names: &[&str]) -> Result<Option<Key>, ApiError> {
        for name in names {
            if let Some(value) = self.json(name)? {
                return Ok(Some(Key::of(value)));
            }
        }
        Ok(None)
    }

    fn keys(&self) -> Result<Option<Vec<String>>, ApiError> {
        let Some(keys) = self.json("keys")? else { return Ok(None) };
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

/// A place among document ids. Ids are strings: null, booleans and numbers sort below all of them, arrays and
/// objects above.
#[derive(Debug, Clone)]
enum Key {
    Below,
    Id(String),
    Above,
}

impl Key {
    fn of(value: Value) -> Key {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Key::Below,
            Value::String(id) => Key::Id(id),
            Value::Array(_) | Value::Object(_) => Key::Above,
        }
    }

    fn inclusive(self) -> Bound<String> {
        match self {
            Key::Below => Bound::Included(String::new()),
            Key::Id(id) => Bound::Included(id),
            // No id is above the last code point, repeated for as long as an id may be.
            Key::Above => Bound::Included("\u{10FFFF}".repeat(128)),
        }
    }

    fn exclusive(self) -> Bound<String> {
        match self.inclusive() {
            Bound::Included(id) => Bound::Excluded(id),
            other => other,
        }
    }
}
