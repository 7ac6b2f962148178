//! `_local` documents in the order of their names, a page at a time.

use std::ops::Bound;

use super::{Budget, PageLimits, Snapshot};
use crate::codec::{as_text, local};
use crate::error::StorageError;
use crate::json::Body;
use crate::range::Direction;
use crate::tables::Table;

/// A stretch of `_local` documents, by their names: what follows `_local/` in their ids.
#[derive(Debug, Clone)]
pub struct ReadLocals {
    /// The lowest name.
    pub from: Bound<String>,
    /// The highest name.
    pub to: Bound<String>,
    /// From which end.
    pub direction: Direction,
    /// What ends the page.
    pub limits: PageLimits,
}

/// A `_local` document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDoc {
    /// What follows `_local/` in its id.
    pub name: String,
    /// The number n of its revision `0-n`.
    pub revision: u64,
    /// Its body.
    pub body: Body,
}

/// A page of `_local` documents.
#[derive(Debug)]
pub struct LocalsPage {
    /// The documents, in the order read.
    pub docs: Vec<LocalDoc>,
    /// Where the next page starts: behind this name. `None` when the stretch is read to its end.
    pub next_after: Option<String>,
}

impl Snapshot<'_> {
    /// Reads a page of `_local` documents in the order of their names.
    pub fn locals(&self, read: &ReadLocals) -> Result<LocalsPage, StorageError> {
        let mut page = LocalsPage { docs: Vec::new(), next_after: None };
        let mut budget = Budget::new(read.limits);
        let range = (read.from.as_ref().map(String::as_bytes), read.to.as_ref().map(String::as_bytes));
        for row in self.view().range(Table::Local, range, read.direction)? {
            if budget.spent() {
                page.next_after = page.docs.last().map(|doc| doc.name.clone());
                break;
            }
            let (key, value) = row?;
            let damaged = |what| StorageError::damaged(Table::Local, key, what);
            let name = as_text(key).map_err(damaged)?.to_owned();
            let (revision, json) = local::decode(value).map_err(damaged)?;
            budget.charge_row(name.len() + json.len());
            page.docs.push(LocalDoc { name, revision, body: Body::from_stored(bytes::Bytes::copy_from_slice(json)) });
        }
        Ok(page)
    }
}
