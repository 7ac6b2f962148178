//! What a design document must look like, so that what it has can be found when it is needed.

use seqtide_storage::Write;
use seqtide_storage::json::{Body, each_member};
use serde_json::value::RawValue;

use crate::error::Error;

/// What is wrong with a design document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` must be {what}")]
pub struct DesignError {
    member: String,
    what: &'static str,
}

/// Checks the members of a design document that are run here, and in what language. One that is malformed would
/// otherwise fail each write and each feed that needs it. Functions are compiled when they are run.
///
/// Source: CouchDB `couch_mrview:validate_ddoc_fields`.
///
/// # Errors
/// [`DesignError`] of the first member that is malformed.
pub fn check_design(design: &Body) -> Result<(), DesignError> {
    let [language, validate_doc_update, filters, views] =
        members(design.as_str(), ["language", "validate_doc_update", "filters", "views"]);
    for (member, value) in [("language", language), ("validate_doc_update", validate_doc_update)] {
        if value.is_some_and(|value| !value.get().starts_with('"')) {
            return Err(malformed(member, "a string"));
        }
    }
    check_each("filters", filters, "a function", |_, filter| is_code(filter))?;
    check_each("views", views, "an object whose `map` is a function", is_view)
}

/// Checks the design documents among writes, as [`check_design`] does.
pub(crate) fn check_designs(writes: &[Write]) -> Result<(), Error> {
    writes.iter().try_for_each(|write| match write {
        Write::Edit(edit) if edit.id().is_design() => {
            check_design(edit.body()).map_err(|source| Error::BadDesign { id: edit.id().clone(), source })
        }
        _ => Ok(()),
    })
}

/// Checks each member of `filters` or `views`.
fn check_each(
    kind: &str,
    functions: Option<&RawValue>,
    what: &'static str,
    is_well: fn(&str, &RawValue) -> bool,
) -> Result<(), DesignError> {
    let Some(functions) = functions else { return Ok(()) };
    let mut wrong = None;
    let look = |name: String, function: &RawValue| {
        if wrong.is_none() && !is_well(&name, function) {
            wrong = Some(name);
        }
    };
    each_member(functions.get(), look).map_err(|_| malformed(kind, "an object"))?;
    wrong.map_or(Ok(()), |name| Err(malformed(&format!("{kind}.{name}"), what)))
}

/// What `lib` has is for the others to require.
fn is_view(name: &str, view: &RawValue) -> bool {
    let [map] = members(view.get(), ["map"]);
    view.get().starts_with('{') && (name == "lib" || map.is_none_or(is_code))
}

/// A function's text, or an object, as another language may have it.
fn is_code(value: &RawValue) -> bool {
    value.get().starts_with(['"', '{'])
}

/// The members of these names, of an object in which none is given twice, as in a [`Body`].
fn members<'a, const N: usize>(object: &'a str, names: [&str; N]) -> [Option<&'a RawValue>; N] {
    let mut found = [None; N];
    let look = |name: String, value| {
        if let Some(at) = names.iter().position(|known| **known == *name) {
            found[at] = Some(value);
        }
    };
    // What is no object has none.
    let _ = each_member(object, look);
    found
}

fn malformed(member: &str, what: &'static str) -> DesignError {
    DesignError { member: member.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(body: &str) -> Option<String> {
        let body = Body::from_stored(body.to_owned().into());
        check_design(&body).err().map(|error| error.to_string())
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
