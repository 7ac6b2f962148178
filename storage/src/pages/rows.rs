//! Values of nodes, and single rows found from the root down.

use super::file::PageFile;
use super::meta::Meta;
use super::page::{Content, HEADER_BYTES, NO_ROOT, Nodes, Wrong, overflow_pages, read_run_header};
use crate::seal::{self, Seals};
use crate::tables::Table;

/// No tree of LMDB is deeper.
pub(super) const DEPTH_MAX: u16 = 32;

/// A value, and the pages of its own that it lies on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'f> {
    pub bytes: &'f [u8],
    pub run: Option<Run>,
}

/// Overflow pages, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub first: u64,
    /// As many as the value needs.
    pub needed: u64,
    /// As many as there are; more where a shorter value took the place of a longer one.
    pub pages: u64,
}

/// Reads the value of a node.
pub(super) fn read_value<'f>(file: &'f PageFile, content: Content<'f>) -> Result<Value<'f>, Wrong> {
    match content {
        Content::Inline(bytes) => Ok(Value { bytes, run: None }),
        Content::Overflow { page, bytes } => read_run(file, page, bytes),
        Content::Table(_) => Err("a table where a row should be".to_owned()),
    }
}

fn read_run(file: &PageFile, first: u64, bytes: usize) -> Result<Value<'_>, Wrong> {
    let named = |wrong: Wrong| format!("its value on page {first}: {wrong}");
    let needed = overflow_pages(bytes, file.page_bytes());
    let pages = file.page(first).and_then(|header| read_run_header(header, first)).map_err(named)?;
    if pages < needed {
        return Err(named(format!("{pages} pages are too few for {bytes} bytes")));
    }
    let run = file.run(first, needed).map_err(named)?;
    let bytes = run.get(HEADER_BYTES..HEADER_BYTES + bytes).unwrap_or_default();
    Ok(Value { bytes, run: Some(Run { first, needed, pages }) })
}

/// Reads a sealed row's value.
pub(super) fn read_row<'f>(
    file: &'f PageFile,
    table: Table,
    key: &[u8],
    content: Content<'f>,
    seals: Seals,
) -> Result<(&'f [u8], Option<Run>), Wrong> {
    let stored = read_value(file, content)?;
    let value = seal::open(table, key, stored.bytes, seals).map_err(|malformed| malformed.to_string())?;
    Ok((value, stored.run))
}

/// Reads a row of the table `meta` as a commit left it, before anything else of the file is known.
pub(super) fn read_meta_row<'f>(
    file: &'f PageFile,
    commit: &Meta,
    name: &[u8],
    seals: Seals,
) -> Result<Option<&'f [u8]>, Wrong> {
    let Some(Content::Table(record)) = find(file, commit.tables.root, Table::Meta.name().as_bytes())? else {
        return Ok(None);
    };
    let Some(content) = find(file, record.root, name)? else { return Ok(None) };
    read_row(file, Table::Meta, name, content, seals).map(|(value, _)| Some(value))
}

/// Goes down from a root to a key.
fn find<'f>(file: &'f PageFile, root: u64, key: &[u8]) -> Result<Option<Content<'f>>, Wrong> {
    let mut page = root;
    for _ in 0..DEPTH_MAX {
        if page == NO_ROOT {
            return Ok(None);
        }
        let nodes = Nodes::read(file.page(page)?, page)?;
        if nodes.is_leaf {
            return Ok((0..nodes.len).find(|node| nodes.key(*node) == key).map(|node| nodes.content(node)));
        }
        // The first key of a branch stands for everything below the second.
        let behind = (1..nodes.len).find(|node| nodes.key(*node) > key).unwrap_or(nodes.len);
        page = nodes.child(behind - 1);
    }
    Err(format!("the tree at page {root} has no end"))
}
