//! Why a selector or a list of fields is refused.

use seqtide_storage::json::DocumentError;

/// Why a selector or a list of fields is refused. The text is the `reason` that a client reads; arguments in it are
/// JSON, where CouchDB prints Erlang's terms, and are cut short when they are long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Not JSON, or nested beyond the bound.
    #[error(transparent)]
    Json(#[from] DocumentError),
    /// JSON, but no object.
    #[error("Selector error: expected a JSON object")]
    NotAnObject,
    /// A condition without a field where there must be one, or a field with an empty name.
    #[error("One or more conditions is missing a field name.")]
    MissingFieldName,
    /// No such operator; also a `$regex` or `$beginsWith` that is no string.
    #[error("Invalid operator: {name}")]
    InvalidOperator {
        /// The operator, with its `$`.
        name: String,
    },
    /// An operator that CouchDB knows and nobody offers.
    #[error("Unsupported operator: {name}")]
    UnsupportedOperator {
        /// The operator, with its `$`.
        name: String,
    },
    /// The argument is not what the operator takes.
    #[error("Bad argument for operator {operator}: {argument}")]
    BadArgument {
        /// The operator, with its `$`.
        operator: String,
        /// What it was given.
        argument: String,
    },
    /// The regular expression cannot be compiled.
    #[error("Bad argument for operator $regex: {pattern}: {why}")]
    BadPattern {
        /// The expression, as JSON.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// `$text` or `$default` where it may not stand: under a field.
    #[error("Invalid field normalization on selector: {selector}")]
    BadField {
        /// The part that is wrong.
        selector: String,
    },
    /// A path with an empty step, or with too many steps.
    #[error("Invalid field name: {name}")]
    InvalidFieldName {
        /// The path, as it was given.
        name: String,
    },
    /// More bytes, conditions, fields or expressions than one selector may have.
    #[error("Selector error: a selector may have at most {max} {what}")]
    TooMany {
        /// Of what there are too many.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// The list of fields is no list.
    #[error("Selector error: fields must be JSON array")]
    FieldsNotAList,
    /// An element of the list of fields is no string.
    #[error("Invalid JSON for field spec: {spec}")]
    InvalidField {
        /// The element.
        spec: String,
    },
}

/// How much of a client's own text an error repeats.
const QUOTED_CHARS_MAX: usize = 200;

/// A client's text as an error repeats it.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
