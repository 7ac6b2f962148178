//! The query string of a request.

use std::borrow::Cow;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::error::ApiError;

/// The query string, decoded. A repeated key takes its last value, and keys are case-insensitive, as in CouchDB's
/// `parse_changes_query`.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Decodes `a=b&c=d`; `+` is a space.
    ///
    /// # Errors
    /// 400 when it does not decode to UTF-8.
    pub fn parse(text: &str) -> Result<Query, ApiError> {
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(key)?.into_owned(), decode(value)?.into_owned()));
        }
        Ok(Query { pairs })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rfind(|(known, _)| known.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
    }

    /// The value of whichever of the keys, in lower case, stands last.
    pub fn last_of(&self, keys: &[&str]) -> Option<&str> {
        let asked = |known: &str| keys.contains(&known.to_ascii_lowercase().as_str());
        self.pairs.iter().rfind(|(known, _)| asked(known)).map(|(_, value)| value.as_str())
    }

    /// Whether a key has the exact value `true`; any other is silently off, as in CouchDB.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    /// The value of a key as a number.
    ///
    /// # Errors
    /// 400 `query_parse_error`.
    pub fn integer<T: FromStr>(&self, key: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| query_parse_error(text))
    }

    /// All keys, in lower case.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        self.pairs.iter().map(|(key, _)| key.to_ascii_lowercase())
    }

    /// All keys and values, as they were given.
    pub fn into_pairs(self) -> Vec<(String, String)> {
        self.pairs
    }

    /// Whether no key was given.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// CouchDB's answer to what is no number.
pub fn query_parse_error(text: &str) -> ApiError {
    bad_option(format!("Invalid value for integer: {text:?}"))
}

/// 400 `query_parse_error`: an option of the query makes no sense.
pub fn bad_option(reason: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::new(actix_web::http::StatusCode::BAD_REQUEST, "query_parse_error", reason)
}

/// Decodes percent escapes, and `+` to a space, in a part of a path or query.
///
/// # Errors
/// 400 when the bytes are not UTF-8.
pub fn decode(text: &str) -> Result<Cow<'_, str>, ApiError> {
    let no_text = |_| ApiError::bad_request("the URL does not decode to UTF-8");
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map_err(no_text)?;
        return Ok(Cow::Owned(decoded.into_owned()));
    }
    percent_decode_str(text).decode_utf8().map_err(no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_repeated_keys_counts_in_any_case() {
        let query = Query::parse("since=3&LIMIT=1&since=0&x&y=a%2Bb+c").unwrap();
        assert_eq!((query.get("since"), query.get("limit"), query.get("x")), (Some("0"), Some("1"), Some("")));
        assert_eq!(query.get("y"), Some("a+b c"));
        assert_eq!(query.last_of(&["limit", "since"]), Some("0"));
        assert!(Query::parse("").unwrap().is_empty());
        assert!(Query::parse("a=%ff").is_err());
    }

    #[test]
    fn only_true_turns_a_flag_on() {
        let query = Query::parse("a=true&b=yes&c=1&d=True").unwrap();
        assert_eq!(["a", "b", "c", "d", "e"].map(|key| query.flag(key)), [true, false, false, false, false]);
    }
}
