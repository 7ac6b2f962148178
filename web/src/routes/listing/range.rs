//! The rows of a range of ids, page by page.

use std::ops::Bound;

use seqtide::storage::{Direction, PageLimits, ReadDocs, ReadLocals, Snapshot, StorageError};
use seqtide::{Database, Error, RowShape};

use super::END;
use super::namespace::{IdRange, Namespace};
use super::options::Options;
use super::row::{write_doc, write_local};
use crate::pages::Pages;

/// Where the next page of a listing starts, and what was sent of it.
pub struct Listing {
    database: Database,
    namespace: Namespace,
    options: Options,
    head: Vec<u8>,
    rows: u64,
    done: bool,
}

/// A page of rows.
#[derive(Default)]
struct Page {
    rows: Vec<Vec<u8>>,
    /// The id behind which the next page starts.
    next_after: Option<String>,
}

impl Listing {
    pub fn new(database: Database, namespace: Namespace, options: Options, head: Vec<u8>) -> Listing {
        Listing { database, namespace, options, head, rows: 0, done: false }
    }

    async fn read(&self) -> Result<Page, Error> {
        let Options { range, descending, limit, skip, shape, .. } = &self.options;
        if *limit == 0 {
            return Ok(Page::default());
        }
        let wanted = usize::try_from(limit.saturating_add(*skip)).unwrap_or(usize::MAX);
        let rows_max = wanted.min(PageLimits::default().rows_max);
        let read = Read {
            namespace: self.namespace,
            range: range.clone(),
            direction: if *descending { Direction::Backward } else { Direction::Forward },
            shape: *shape,
            limits: PageLimits { rows_max, ..PageLimits::default() },
        };
        self.database.read(move |snapshot| read.page(snapshot)).await
    }
}

impl Pages for Listing {
    async fn next_page(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.done {
            return Ok(None);
        }
        let page = self.read().await?;
        let mut out = std::mem::take(&mut self.head);
        for row in page.rows {
            if self.options.skip > 0 {
                self.options.skip -= 1;
            } else if self.options.limit > 0 {
                self.options.limit -= 1;
                out.extend_from_slice(if self.rows > 0 { b",\r\n" } else { b"" });
                out.extend_from_slice(&row);
                self.rows += 1;
            }
        }
        match page.next_after.filter(|_| self.options.limit > 0).map(Bound::Excluded) {
            Some(next) if self.options.descending => self.options.range.1 = next,
            Some(next) => self.options.range.0 = next,
            None => {
                self.done = true;
                out.extend_from_slice(END.as_bytes());
            }
        }
        Ok(Some(out))
    }
}

/// A page to read.
struct Read {
    namespace: Namespace,
    range: IdRange,
    direction: Direction,
    shape: RowShape,
    limits: PageLimits,
}

impl Read {
    fn page(self, snapshot: &Snapshot<'_>) -> Result<Page, StorageError> {
        if self.namespace == Namespace::Local { self.locals(snapshot) } else { self.docs(snapshot) }
    }

    fn docs(self, snapshot: &Snapshot<'_>) -> Result<Page, StorageError> {
        let Read { namespace, range, direction, shape, limits } = self;
        let (from, to) = namespace.within(range);
        let page = snapshot.docs(&ReadDocs { from, to, direction, detail: super::options::detail(shape), limits })?;
        let rows = page.docs.iter().map(|doc| row(|out| write_doc(out, doc, shape))).collect();
        Ok(Page { rows, next_after: page.next_after })
    }

    fn locals(self, snapshot: &Snapshot<'_>) -> Result<Page, StorageError> {
        let Read { namespace, range, direction, shape, limits } = self;
        let Some((from, to)) = namespace.names(range) else { return Ok(Page::default()) };
        let page = snapshot.locals(&ReadLocals { from, to, direction, limits })?;
        let rows = page.docs.iter().map(|doc| row(|out| write_local(out, doc, shape))).collect();
        Ok(Page { rows, next_after: page.next_after.map(|name| format!("_local/{name}")) })
    }
}

fn row(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut row = Vec::new();
    write(&mut row);
    row
}
