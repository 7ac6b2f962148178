//! Paths to fields: `address.city`, `lines.0.price`, `a\.b`.

use std::fmt;
use std::sync::Arc;

use super::error::{SelectorError, quoted};
use super::limits::NESTING_MAX;
use super::order::Order;

/// A path to a field: names of members and places in arrays, from the outside to the inside. Cloning shares it, and
/// what leads on from it shares its steps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Arc<[Arc<str>]>);

impl FieldPath {
    /// Reads a path as selectors and lists of fields spell it: steps between dots; `\.` is a dot in a name, and other
    /// backslashes count for nothing.
    ///
    /// # Errors
    /// [`SelectorError::InvalidFieldName`] when a step is empty, or there are more than 100.
    ///
    /// Source: CouchDB's `mango_util:parse_field`.
    pub fn parse(text: &str) -> Result<FieldPath, SelectorError> {
        FieldPath::whole().join(text)
    }

    /// The path without steps: the whole document or element.
    pub(super) fn whole() -> FieldPath {
        FieldPath([].into())
    }

    /// This path with further steps, spelled as in [`FieldPath::parse`].
    pub(super) fn join(&self, text: &str) -> Result<FieldPath, SelectorError> {
        let mut steps = self.0.to_vec();
        let mut step = String::new();
        let mut escaped = false;
        for character in text.chars() {
            match character {
                '.' if !escaped => steps.push(std::mem::take(&mut step).into()),
                '\\' => {}
                other => step.push(other),
            }
            escaped = character == '\\';
        }
        steps.push(step.into());
        if steps.iter().any(|step| step.is_empty()) || steps.len() > NESTING_MAX {
            return Err(SelectorError::InvalidFieldName { name: quoted(text) });
        }
        Ok(FieldPath(steps.into()))
    }

    pub(super) fn steps(&self) -> &[Arc<str>] {
        &self.0
    }

    /// How values found there are compared. Source: CouchDB's `mango_selector:match`, clause on `_id`.
    pub(super) fn order(&self) -> Order {
        match &*self.0 {
            [only] if **only == *"_id" => Order::Bytes,
            _ => Order::Collated,
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<String> = self.0.iter().map(|step| step.replace('.', "\\.")).collect();
        f.write_str(&steps.join("."))
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}
