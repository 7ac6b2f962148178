//! What a design document must look like, so that what it has can be found when it is needed.

use actix_web::http::StatusCode;
use seqtide::storage::json::Document;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::json::each_member;

/// Checks the members that are run here, and in what language. One that is malformed would otherwise fail each write and each feed that needs it.
/// Functions are compiled when they are run.
///
/// Source: CouchDB `couch_mrview:validate_ddoc_fields`.
///
/// # Errors
/// 400 `invalid_design_doc`.
pub fn check(document: &Document) -> Result<(), ApiError> {
    let Ok(design) = std::str::from_utf8(document.body.as_bytes()) else { return Ok(()) };
    each_member(design, ApiError::not_json, |name, value| match name.as_str() {
        "validate_doc_update" | "language" if !value.get().starts_with('"') => {
            Err(malformed(format!("`{name}` must be a string")))
        }
        "filters" => check_each("filters", value, "a function", |_, filter| is_code(filter)),
        "views" => check_each("views", value, "an object whose `map` is a function", is_view),
        _ => Ok(()),
    })
}

/// Checks each member of `filters` or `views`.
fn check_each(
    kind: &str,
    functions: &RawValue,
    what: &str,
    is_well: fn(&str, &RawValue) -> bool,
) -> Result<(), ApiError> {
    let no_object = || malformed(format!("`{kind}` must be an object"));
    each_member(functions.get(), no_object, |name, function| {
        if is_well(&name, function) { Ok(()) } else { Err(malformed(format!("`{kind}.{name}` must be {what}"))) }
    })
}

/// What `lib` has is for the others to require.
fn is_view(name: &str, view: &RawValue) -> bool {
    let mut maps = true;
    let is_object = each_member(view.get(), ApiError::not_json, |member, value| {
        maps &= member != "map" || is_code(value);
        Ok(())
    });
    is_object.is_ok() && (maps || name == "lib")
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
            (r#"{"language":5,"validate_doc_update":"f"}"#, "`language` must be a string"),
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
