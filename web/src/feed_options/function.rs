//! Functions of design documents as filters, as a client names them.

use seqtide::{Database, FilterFunction};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::query::{Query, decode};

/// Options that say where a feed is and how it runs, not what it shows: a filter function does not see them, so feeds
/// that differ in nothing else ask it the same.
const NOT_ASKED: [&str; 7] = ["feed", "heartbeat", "last-event-id", "limit", "seq_interval", "since", "timeout"];

/// A function that a feed was asked for with, not looked up yet.
#[derive(Debug)]
pub enum AskedFunction {
    /// `filters.NAME`.
    Filter {
        /// The design document, without `_design/`.
        design: String,
        /// The function's name.
        name: String,
        /// What it sees as `req.query`, an object.
        query: Box<RawValue>,
    },
    /// `views.VIEW.map`.
    View {
        /// The design document, without `_design/`.
        design: String,
        /// The view's name.
        view: String,
    },
}

/// How the names of a design document and of a function in it are written.
#[derive(Debug, Clone, Copy)]
pub enum Names {
    /// As they are: neither has a slash.
    Plain,
    /// Escaped as parts of a URL are, whatever the whole has been before: either may have a slash.
    ///
    /// Source: CouchDB `couch_changes:configure_filter`, `parse_view_param`.
    Escaped,
}

impl AskedFunction {
    /// Reads `design/filter`.
    ///
    /// # Errors
    /// 400 with CouchDB's text.
    pub fn filter(text: &str, names: Names, query: Box<RawValue>) -> Result<AskedFunction, ApiError> {
        let (design, name) = names.read(text, "`filter` must be of the form `designname/filtername`")?;
        Ok(AskedFunction::Filter { design, name, query })
    }

    /// Reads `design/view`.
    ///
    /// # Errors
    /// 400 with CouchDB's text.
    pub fn view(text: Option<&str>, names: Names) -> Result<AskedFunction, ApiError> {
        let text = text.filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| ApiError::bad_request("`view` filter parameter is not provided."))?;
        let (design, view) = names.read(text, "`view` must be of the form `designname/viewname`")?;
        Ok(AskedFunction::View { design, view })
    }

    /// Looks the function up.
    ///
    /// # Errors
    /// Those of [`Database::filter_function`].
    pub async fn find(&self, database: &Database) -> Result<FilterFunction, seqtide::Error> {
        match self {
            AskedFunction::Filter { design, name, query } => database.filter_function(design, name, query).await,
            AskedFunction::View { design, view } => database.view_function(design, view).await,
        }
    }
}

/// What a filter function sees as `req.query` of a request: every value is text, as in CouchDB.
pub fn query_object(query: &Query) -> Box<RawValue> {
    let asked = query.clone().into_pairs().into_iter();
    let asked = asked.filter(|(key, _)| !NOT_ASKED.contains(&key.to_ascii_lowercase().as_str()));
    let object: Map<String, Value> = asked.map(|(key, value)| (key, Value::from(value))).collect();
    serde_json::value::to_raw_value(&object).unwrap_or_default()
}

impl Names {
    /// The two names in a text; `not_two` is said of one that has not two.
    fn read(self, text: &str, not_two: &'static str) -> Result<(String, String), ApiError> {
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        match (parts.as_slice(), self) {
            ([design, name], Names::Plain) => Ok((design.to_string(), name.to_string())),
            ([design, name], Names::Escaped) => Ok((decode(design)?.into_owned(), decode(name)?.into_owned())),
            _ => Err(ApiError::bad_request(not_two)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_two_names() {
        for text in ["a", "a/b/c", "/", ""] {
            for names in [Names::Plain, Names::Escaped] {
                assert!(AskedFunction::filter(text, names, Box::default()).is_err(), "{text}");
                assert!(AskedFunction::view(Some(text), names).is_err(), "{text}");
            }
        }
        let names = |names| match AskedFunction::view(Some("/a%2f+/b%25"), names).unwrap() {
            AskedFunction::View { design, view } => (design, view),
            other => panic!("{other:?}"),
        };
        assert_eq!(names(Names::Plain), ("a%2f+".to_owned(), "b%25".to_owned()));
        assert_eq!(names(Names::Escaped), ("a/ ".to_owned(), "b%".to_owned()));
    }

    #[test]
    fn a_filter_sees_what_was_asked_and_not_where_the_feed_is() {
        let query = Query::parse("filter=a/b&since=7&Owner=x%20y&Since=9&owner=z&heartbeat=10").unwrap();
        assert_eq!(query_object(&query).get(), r#"{"Owner":"x y","filter":"a/b","owner":"z"}"#);
    }
}
