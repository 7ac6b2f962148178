//! Design documents, as far as functions go.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevId;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Detail, Direction, PageLimits, ReadDocs, Snapshot, StorageError};
use serde_json::value::RawValue;

use super::{FunctionError, NoDesign, NoFunction, raw};
use crate::documents::json::write_document;
use crate::documents::{Extras, NotFound, Which, read_document};

/// The one language there is.
const JAVASCRIPT: &str = "javascript";

/// A revision of a design document. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Design(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: [u8; 16],
    id: DocId,
    key: Arc<str>,
    json: Box<RawValue>,
    language: Option<String>,
}

impl Design {
    /// A revision of a design document of the database with this uuid. After a purge the same revision may come with
    /// another body, at another sequence.
    pub fn new(database: [u8; 16], id: DocId, (rev, seq): (&RevId, Sequence), body: &Body) -> Design {
        let mut json = Vec::new();
        write_document(&mut json, id.as_str(), Some(rev), false, body, |_| {});
        let json = raw(json);
        let language = members(&json).and_then(|mut members| members.remove("language"));
        let language = language.map(|text| serde_json::from_str(text.get()).unwrap_or_else(|_| text.get().to_owned()));
        let key = format!("{:032x} {id} {rev} {}", u128::from_be_bytes(database), seq.to_integer()).into();
        Design(Arc::new(Inner { database, id, key, json, language }))
    }

    /// Tells its database apart.
    pub fn database(&self) -> [u8; 16] {
        self.0.database
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.0.id.as_str()
    }

    /// Tells it apart from every other design document and revision of the engine.
    pub fn key(&self) -> &Arc<str> {
        &self.0.key
    }

    /// The whole document.
    pub fn json(&self) -> &RawValue {
        &self.0.json
    }

    /// Whether there is something at a place, step by step.
    ///
    /// # Errors
    /// [`FunctionError::NoFunction`] with the first step that leads nowhere.
    pub fn must_have(&self, path: &[&str]) -> Result<(), FunctionError> {
        let mut place = self.json().to_owned();
        for step in path {
            let found = members(&place).and_then(|mut members| members.remove(*step));
            place = found.ok_or_else(|| {
                let (design, step) = (self.id().to_owned(), (*step).to_owned());
                FunctionError::NoFunction(NoFunction { design, place: path.join("."), step })
            })?;
        }
        Ok(())
    }

    /// Whether its functions can be run.
    ///
    /// # Errors
    /// [`FunctionError::Language`].
    pub fn must_be_javascript(&self) -> Result<(), FunctionError> {
        match &self.0.language {
            Some(language) if language != JAVASCRIPT => {
                Err(FunctionError::Language { design: self.id().to_owned(), language: language.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Reads a design document, `_design/NAME`.
///
/// # Errors
/// [`StorageError`]; inside, [`FunctionError::NoDesign`].
pub(crate) fn read_design(
    snapshot: &Snapshot<'_>,
    database: [u8; 16],
    name: &str,
) -> Result<Result<Design, FunctionError>, StorageError> {
    let design = format!("_design/{name}");
    let none = |design, why| FunctionError::NoDesign(NoDesign { design, why });
    let Ok(id) = DocId::parse(&design) else { return Ok(Err(none(design, NotFound::Missing))) };
    let found = read_document(snapshot, &id, &Which::Winner, Extras::default())?.map_err(|why| none(design, why));
    Ok(found.map(|found| Design::new(database, id, (&found.rev, found.seq), &found.body)))
}

/// Where the ids of design documents begin.
pub(crate) const DESIGNS_START: Bound<&str> = Bound::Included("_design/");

/// Reads a page of the live design documents, in the order of their ids: those that have this member, and where the
/// next page starts; `None` behind the last.
///
/// # Errors
/// [`StorageError`].
pub(crate) fn design_documents(
    snapshot: &Snapshot<'_>,
    database: [u8; 16],
    member: &str,
    from: Bound<String>,
) -> Result<(Vec<Design>, Option<Bound<String>>), StorageError> {
    let page = snapshot.docs(&ReadDocs {
        from,
        to: Bound::Excluded("_design0".to_owned()),
        direction: Direction::Forward,
        detail: Detail { leaves: false, bodies: true },
        limits: PageLimits::default(),
    })?;
    let mut designs = Vec::new();
    for found in page.docs {
        let Some(body) = &found.body else { continue };
        let design = Design::new(database, found.id.clone(), (&found.winner().rev, found.seq), body);
        designs.extend(Some(design).filter(|design| design.must_have(&[member]).is_ok()));
    }
    Ok((designs, page.next_after.map(Bound::Excluded)))
}

/// The members of an object, each as its text, however deep they nest.
fn members(object: &RawValue) -> Option<HashMap<String, Box<RawValue>>> {
    serde_json::from_str(object.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(body: &str) -> Design {
        let body = Body::from_stored(body.to_owned().into());
        Design::new([0; 16], DocId::parse("_design/d").unwrap(), (&RevId::parse("1-a").unwrap(), Sequence::ZERO), &body)
    }

    #[test]
    fn what_a_design_document_has_is_found_however_it_is_written() {
        let deep = format!(r#"{{"deep":{}1{},"validate\u005fdoc_update":"f"}}"#, "[".repeat(500), "]".repeat(500));
        assert_eq!(design(&deep).must_have(&["validate_doc_update"]), Ok(()));
        let filters = design(r#"{"filters":{"f":"x","a/b":"y"}}"#);
        assert_eq!(filters.must_have(&["filters", "a/b"]), Ok(()));
        let none = |path: &[&str]| filters.must_have(path).unwrap_err();
        for (path, step) in [(&["filters", "g"][..], "g"), (&["filters", "f", "x"], "x"), (&["none", "f"], "none")] {
            let error = none(path);
            assert_eq!(error.to_string(), format!("_design/d has no {}", path.join(".")));
            assert!(matches!(error, FunctionError::NoFunction(NoFunction { step: found, .. }) if found == step));
        }
    }

    #[test]
    fn a_language_that_is_no_text_is_not_javascript() {
        for (language, runs) in [("", true), (r#""language":"javascript""#, true), (r#""language":7"#, false)] {
            assert_eq!(design(&format!("{{{language}}}")).must_be_javascript().is_ok(), runs, "{language}");
        }
    }
}
