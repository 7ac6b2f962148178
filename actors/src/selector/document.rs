//! A document, opened for selectors.

use std::borrow::Cow;
use std::cell::OnceCell;

use seqtide_storage::json::{Body, write_json_string};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::{Change, LeafRev};

use super::json::{Datum, Json};
use super::members::{Members, NotThere, walk};
use super::path::FieldPath;
use crate::documents::json::write_document;

/// What conditions look at: a document, or a value within one.
pub(super) trait Subject {
    /// The value at a path.
    fn find(&self, path: &FieldPath) -> Result<Datum<'_>, NotThere>;
}

/// A revision of a document as selectors see it: `_id`, `_rev`, the body's members, and `_deleted` when it is true.
///
/// One view serves any number of selectors: the first that asks for a member has all members of that object located,
/// in one pass over its text, and the places are kept. That takes up to about 50 bytes of memory a member.
pub struct DocView<'a> {
    id: &'a DocId,
    leaf: &'a LeafRev,
    body: &'a Body,
    members: OnceCell<Members<'a>>,
    /// The document as it is served, for those who compare it whole.
    whole: OnceCell<String>,
}

impl<'a> DocView<'a> {
    /// Opens a document; costs nothing yet.
    pub fn new(id: &'a DocId, leaf: &'a LeafRev, body: &'a Body) -> DocView<'a> {
        DocView { id, leaf, body, members: OnceCell::new(), whole: OnceCell::new() }
    }

    /// The winner of a changed document; `None` when its body is not there.
    pub(crate) fn of_winner(change: &'a Change) -> Option<DocView<'a>> {
        change.body.as_ref().map(|body| DocView::new(&change.id, change.winner(), body))
    }

    /// The JSON text of the value at a path.
    pub(super) fn json(&self, path: &FieldPath) -> Result<Cow<'_, str>, NotThere> {
        let Some((first, rest)) = path.steps().split_first() else {
            return Ok(Cow::Borrowed(self.whole()));
        };
        match self.special(first) {
            Some(_) if !rest.is_empty() => Err(NotThere::Astray),
            Some(Datum::String(text)) => Ok(Cow::Owned(json_string(&text))),
            Some(_) => Ok(Cow::Borrowed("true")),
            None => self.members().find(first, rest).map(|value| Cow::Borrowed(value.0)),
        }
    }

    /// The document as it is served.
    pub(super) fn whole(&self) -> &str {
        self.whole.get_or_init(|| {
            let mut out = Vec::with_capacity(self.body.as_bytes().len() + 128);
            write_document(&mut out, self.id.as_str(), Some(&self.leaf.rev), self.leaf.deleted, self.body, |_| {});
            String::from_utf8(out).unwrap_or_default()
        })
    }

    fn special(&self, name: &str) -> Option<Datum<'_>> {
        match name {
            "_id" => Some(Datum::String(self.id.as_str().into())),
            "_rev" => Some(Datum::String(self.leaf.rev.to_string().into())),
            "_deleted" if self.leaf.deleted => Some(Datum::Bool(true)),
            _ => None,
        }
    }

    fn members(&self) -> &Members<'a> {
        self.members.get_or_init(|| Members::of(Json(self.body.as_str()).entries()))
    }
}

impl Subject for DocView<'_> {
    fn find(&self, path: &FieldPath) -> Result<Datum<'_>, NotThere> {
        let Some((first, rest)) = path.steps().split_first() else {
            return Ok(Json(self.whole()).datum());
        };
        match self.special(first) {
            Some(value) if rest.is_empty() => Ok(value),
            Some(_) => Err(NotThere::Astray),
            None => self.members().find(first, rest).map(Json::datum),
        }
    }
}

/// An element of an array.
impl Subject for Json<'_> {
    fn find(&self, path: &FieldPath) -> Result<Datum<'_>, NotThere> {
        walk(*self, path.steps()).map(Json::datum)
    }
}

/// The name of a member.
impl Subject for str {
    fn find(&self, path: &FieldPath) -> Result<Datum<'_>, NotThere> {
        path.steps().is_empty().then(|| Datum::String(self.into())).ok_or(NotThere::Astray)
    }
}

fn json_string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_json_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}
