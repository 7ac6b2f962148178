//! What a design document must look like, so that what it has can be found when it is needed.

use actix_web::http::StatusCode;
use seqtide::storage::json::Document;
use serde_json::{Map, Value};

use crate::error::ApiError;

/// Checks the members that are run here. One that is malformed would otherwise fail each write and each feed that needs it.
/// Functions are compiled when they are run.
///
/// Source: CouchDB `couch_mrview:validate_ddoc_fields`.
///
/// # Errors
/// 400 `invalid_design_doc`.
pub fn check(document: &Document) -> Result<(), ApiError> {
    let Ok(members) = serde_json::from_slice::<Map<String, Value>>(document.body.as_bytes()) else { return Ok(()) };
    if members.get("validate_doc_update").is_some_and(|function| !function.is_string()) {
        return Err(malformed("`validate_doc_update` must be a string".to_owned()));
    }
    for filters in ["filters", "views"] {
        let Some(functions) = members.get(filters) else { continue };
        let functions = functions.as_object().ok_or_else(|| malformed(format!("`{filters}` must be an object")))?;
        for (name, function) in functions {
            let is_well = match filters {
                "views" => {
                    function.as_object().is_some_and(|view| name == "lib" || view.get("map").is_none_or(is_code))
                }
                _ => is_code(function),
            };
            if !is_well {
                let what = if filters == "views" { "an object whose `map` is a function" } else { "a function" };
                return Err(malformed(format!("`{filters}.{name}` must be {what}")));
            }
        }
    }
    Ok(())
}

/// A function's text, or an object, as another language may have it.
fn is_code(value: &Value) -> bool {
    value.is_string() || value.is_object()
}

fn malformed(reason: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_design_doc", reason)
}

#[cfg(test)]
mod tests {
    use seqtide::storage::json::Body;

    use super::*;

    fn refusal(body: &str) -> Option<String> {
        let document = Document::new(None, false, Body::from_stored(body.to_owned().into()));
        check(&document).err().map(|error| error.reason().to_owned())
    }

    #[test]
    fn what_cannot_be_run_is_named() {
        for (body, expected) in [
            (r#"{"validate_doc_update":7}"#, "`validate_doc_update` must be a string"),
            (r#"{"validate_doc_update":null}"#, "`validate_doc_update` must be a string"),
            (r#"{"filters":"f"}"#, "`filters` must be an object"),
            (r#"{"filters":{"f":5}}"#, "`filters.f` must be a function"),
            (r#"{"views":5}"#, "`views` must be an object"),
            (r#"{"views":{"v":"f"}}"#, "`views.v` must be an object whose `map` is a function"),
            (r#"{"views":{"v":{"map":[]}}}"#, "`views.v` must be an object whose `map` is a function"),
        ] {
            assert_eq!(refusal(body).as_deref(), Some(expected), "{body}");
        }
        for body in [
            "{}",
            r#"{"language":"query","views":{"i":{"map":{"fields":{"a":"asc"}},"reduce":"_count","options":{}}}}"#,
            r#"{"views":{"lib":{"map":5},"v":{"map":"f"}},"filters":{"f":"f"},"validate_doc_update":"f","other":[]}"#,
        ] {
            assert_eq!(refusal(body), None, "{body}");
        }
    }
}
