//! Which fields of a document are shown: `fields` beside a selector.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::compile::compacted;
use super::cost::ALLOCATION_BYTES;
use super::document::DocView;
use super::error::{SelectorError, quoted};
use super::json::{Datum, Json};
use super::limits::FIELDS_MAX;
use super::memory::InMemory;
use super::path::FieldPath;

/// The fields of a document that are shown.
///
/// Source: CouchDB's `mango_fields`. An empty list shows all; a path that leads nowhere shows nothing.
#[derive(Debug, Clone)]
pub struct Fields {
    shown: Shown,
    _memory: InMemory,
}

/// What is shown of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Shown {
    /// All of the value at this path.
    Whole(FieldPath),
    /// An object of some of its members, or elements under their place as a name.
    Parts(Vec<(Box<str>, Shown)>),
}

impl Fields {
    /// Reads a JSON list of paths.
    ///
    /// # Errors
    /// [`SelectorError`]; its text is the `reason` that CouchDB gives.
    pub fn from_json(text: &str) -> Result<Fields, SelectorError> {
        let text = compacted(text)?;
        let Datum::Array(list) = Json(&text).datum() else {
            return Err(SelectorError::FieldsNotAList);
        };
        let mut shown = Shown::Parts(Vec::new());
        for (place, element) in list.enumerate() {
            let Datum::String(name) = element.datum() else {
                return Err(SelectorError::InvalidField { spec: quoted(element.0) });
            };
            if place == FIELDS_MAX {
                return Err(SelectorError::TooMany { what: "fields", max: FIELDS_MAX });
            }
            let path = FieldPath::parse(&name)?;
            shown.add(&path, path.steps());
        }
        let shown = match shown {
            Shown::Parts(parts) if parts.is_empty() => Shown::Whole(FieldPath::whole()),
            some => some,
        };
        let _memory = InMemory::of(shown.memory_bytes());
        Ok(Fields { shown, _memory })
    }

    /// The JSON text of an object with what is shown of a document.
    pub fn project(&self, document: &DocView<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.shown.write(document, &mut out) {
            out.extend_from_slice(b"{}");
        }
        out
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Fields) -> bool {
        self.shown == other.shown
    }
}

impl Eq for Fields {}

impl Hash for Fields {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shown.hash(state);
    }
}

impl Shown {
    /// Adds the value at a path, whose last steps lead there from here.
    fn add(&mut self, path: &FieldPath, steps: &[Arc<str>]) {
        let Shown::Parts(parts) = self else {
            return;
        };
        let Some((step, rest)) = steps.split_first() else {
            *self = Shown::Whole(path.clone());
            return;
        };
        let known = parts.iter().position(|(name, _)| **name == **step).unwrap_or_else(|| {
            parts.push(((**step).into(), Shown::Parts(Vec::new())));
            parts.len() - 1
        });
        parts[known].1.add(path, rest);
    }

    /// About how much memory it takes, in bytes.
    fn memory_bytes(&self) -> usize {
        /// A step in its path, and the counts beside its name.
        const STEP_BYTES: usize = size_of::<Arc<str>>() + size_of::<[usize; 2]>();
        match self {
            Shown::Whole(path) => path.steps().iter().map(|name| ALLOCATION_BYTES + STEP_BYTES + name.len()).sum(),
            Shown::Parts(parts) => {
                let each = |(name, shown): &(Box<str>, Shown)| ALLOCATION_BYTES + name.len() + shown.memory_bytes();
                parts.capacity() * size_of::<(Box<str>, Shown)>() + parts.iter().map(each).sum::<usize>()
            }
        }
    }

    /// Writes what there is; tells whether there is something.
    fn write(&self, document: &DocView<'_>, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        match self {
            Shown::Whole(path) => {
                let Ok(value) = document.json(path) else {
                    return false;
                };
                out.extend_from_slice(value.as_bytes());
                return true;
            }
            Shown::Parts(parts) => {
                out.push(b'{');
                for (name, shown) in parts {
                    let before = out.len();
                    seqtide_storage::json::write_json_string(out, name);
                    out.push(b':');
                    match shown.write(document, out) {
                        true => out.push(b','),
                        false => out.truncate(before),
                    }
                }
            }
        }
        let found = out.pop() == Some(b',');
        match found {
            true => out.push(b'}'),
            false => out.truncate(start),
        }
        found
    }
}
