//! What a design document must look like, so that what it has can be found when it is needed.

use std::collections::HashMap;

use actix_web::http::StatusCode;
use seqtide::storage::json::Document;
use serde_json::value::RawValue;

use crate::error::ApiError;

/// Checks the members that are run here. One that is malformed would otherwise fail each write and each feed that needs it.
/// Functions are compiled when they are run.
///
/// Source: CouchDB `couch_mrview:validate_ddoc_fields`.
///
/// # Errors
/// 400 `invalid_design_doc`.
pub fn check(document: &Document) -> Result<(), ApiError> {
    let Some(design) = std::str::from_utf8(document.body.as_bytes()).ok().and_then(members) else { return Ok(()) };
    if design.get("validate_doc_update").is_some_and(|function| !function.get().starts_with('"')) {
        return Err(malformed("`validate_doc_update` must be a string".to_owned()));
    }
    for kind in ["filters", "views"] {
        let Some(functions) = design.get(kind) else { continue };
        let functions = members(functions.get()).ok_or_else(|| malformed(format!("`{kind}` must be an object")))?;
        for (name, function) in functions {
            let is_view = |view: HashMap<_, &RawValue>| name == "lib" || view.get("map").is_none_or(|map| is_code(map));
            let (is_well, what) = match kind {
                "views" => (members(function.get()).is_some_and(is_view), "an object whose `map` is a function"),
                _ => (is_code(function), "a function"),
            };
            if !is_well {
                return Err(malformed(format!("`{kind}.{name}` must be {what}")));
            }
        }
    }
    Ok(())
}

/// The members of an object, each as its text, however deep they nest.
fn members(object: &str) -> Option<HashMap<String, &RawValue>> {
    serde_json::from_str(object).ok()
}

/// A function's text, or an object, as another language may have it.
fn is_code(value: &RawValue) -> bool {
    value.get().starts_with(['"', '{'])
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
        let deep = format!("{{\"x\":{}1{},\"filters\":1}}", "[".repeat(500), "]".repeat(500));
        assert!(refusal(&deep).is_some(), "whatever else it has");
        for body in [
            "{}",
            r#"{"language":"query","views":{"i":{"map":{"fields":{"a":"asc"}},"reduce":"_count","options":{}}}}"#,
            r#"{"views":{"lib":{"map":5},"v":{"map":"f"}},"filters":{"f":"f"},"validate_doc_update":"f","other":[]}"#,
        ] {
            assert_eq!(refusal(body), None, "{body}");
        }
    }
}
