//! A filter that is a function of a design document.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use seqtide_storage::json::Body;
use seqtide_storage::{Change, LeafRev};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, MutexGuard};

use super::protocol::Call;
use super::{Design, FunctionError};
use crate::documents::json::write_document;
use crate::fingerprint::Fingerprint;

/// A function of one revision of a design document, as a filter: `filters.NAME(doc, req)`, or the map function of a
/// view, which passes a document it emits something for. Cheap to clone. Got by
/// [`Database::filter_function`](crate::Database::filter_function) and
/// [`Database::view_function`](crate::Database::view_function).
#[derive(Debug, Clone)]
pub struct FilterFunction(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    design: Design,
    what: What,
    /// Of what it is told apart by.
    fingerprint: Fingerprint,
    /// Held by the feed that asks about what many wait for.
    turn: Mutex<()>,
}

#[derive(Debug)]
enum What {
    Filter { name: String, req: Box<RawValue> },
    Map { view: String },
}

/// Functions are equal that give the same verdicts: of the same revision, asked the same.
impl PartialEq for FilterFunction {
    fn eq(&self, other: &FilterFunction) -> bool {
        self.0.fingerprint == other.0.fingerprint
    }
}

impl Eq for FilterFunction {}

impl Hash for FilterFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.fingerprint.hash(state);
    }
}

impl FilterFunction {
    /// `filters.NAME`, called with each document and with a request whose `query` is this JSON object.
    ///
    /// # Errors
    /// [`FunctionError::NoFunction`], [`FunctionError::Language`].
    pub(crate) fn filter(design: Design, name: &str, query: &RawValue) -> Result<FilterFunction, FunctionError> {
        design.must_have(&["filters", name])?;
        design.must_be_javascript()?;
        let req = format!(r#"{{"query":{query}}}"#);
        let req = RawValue::from_string(req).unwrap_or_default();
        Ok(FilterFunction::new(design, What::Filter { name: name.to_owned(), req }))
    }

    /// `views.NAME.map`.
    ///
    /// # Errors
    /// [`FunctionError::NoFunction`], [`FunctionError::Language`].
    pub(crate) fn map(design: Design, view: &str) -> Result<FilterFunction, FunctionError> {
        design.must_have(&["views", view])?;
        design.must_have(&["views", view, "map"])?;
        design.must_be_javascript()?;
        Ok(FilterFunction::new(design, What::Map { view: view.to_owned() }))
    }

    fn new(design: Design, what: What) -> FilterFunction {
        let fingerprint = Fingerprint::of(&identity(&design, &what));
        FilterFunction(Arc::new(Inner { design, what, fingerprint, turn: Mutex::default() }))
    }

    /// Stands for it and all that are equal to it.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
    }

    pub(crate) fn design(&self) -> &Design {
        &self.0.design
    }

    /// Waits until no other feed that shares this asks, and keeps others from asking.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.turn.lock().await
    }

    pub(crate) fn call(&self, docs: Vec<Box<RawValue>>) -> Call {
        match &self.0.what {
            What::Filter { name, req } => Call::Filter { name: name.clone(), req: req.clone(), docs },
            What::Map { view } => Call::Map { name: view.clone(), docs },
        }
    }
}

/// What a function is told apart by.
fn identity<'a>(design: &'a Design, what: &'a What) -> (&'a str, bool, &'a str, &'a str) {
    match what {
        What::Filter { name, req } => (design.key(), false, name, req.get()),
        What::Map { view } => (design.key(), true, view, ""),
    }
}

/// Its name in a feed's options.
impl fmt::Display for FilterFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { design, what, .. } = &*self.0;
        let (option, name) = match what {
            What::Filter { name, .. } => ("filter", name),
            What::Map { view } => ("view", view),
        };
        let design = design.id().trim_start_matches("_design/");
        write!(f, "{option}: {design}/{name}")
    }
}

/// A revision as a function is given it.
pub(crate) fn document(change: &Change, leaf: &LeafRev, body: &Body) -> Box<RawValue> {
    let mut json = Vec::with_capacity(body.as_bytes().len() + 128);
    write_document(&mut json, change.id.as_str(), Some(&leaf.rev), leaf.deleted, body, |_| {});
    raw(json)
}

/// JSON that was written here.
pub(crate) fn raw(json: Vec<u8>) -> Box<RawValue> {
    String::from_utf8(json).ok().and_then(|json| RawValue::from_string(json).ok()).unwrap_or_default()
}
