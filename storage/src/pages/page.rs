//! A page taken apart: its header, the offsets of its nodes, and the nodes.
//!
//! ```text
//! number 8 · unused 2 · kind 2 · end of the offsets 2 · start of the nodes 2 · offsets 2 each · free · nodes
//! node of a branch:  child's page 6 · length of the key 2 · key
//! node of a leaf:    length of the value 4 · kind 2 · length of the key 2 · key · value
//! ```

use super::fields::{u16_at, u32_at, u64_at};

/// Why something is not believed.
pub(super) type Wrong = String;

pub(super) const HEADER_BYTES: usize = 16;
const NODE_HEADER_BYTES: usize = 8;
/// Pages are at most 32 KiB; nodes start at even places.
const NODE_PLACES_MAX: usize = (32 << 10) / 2;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;

const VALUE_INLINE: u16 = 0;
const VALUE_ON_OVERFLOW_PAGES: u16 = 1;
const VALUE_IS_TABLE: u16 = 2;

/// The root of a tree that has no pages.
pub(super) const NO_ROOT: u64 = u64::MAX;

/// What LMDB keeps of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeRecord {
    /// The size of the file's pages in one record of a meta page, else 0.
    pub pad: u32,
    pub flags: u16,
    pub depth: u16,
    pub branch_pages: u64,
    pub leaf_pages: u64,
    pub overflow_pages: u64,
    pub entries: u64,
    pub root: u64,
}

impl TreeRecord {
    pub const BYTES: usize = 48;

    pub fn read(bytes: &[u8]) -> TreeRecord {
        TreeRecord {
            pad: u32_at(bytes, 0),
            flags: u16_at(bytes, 4),
            depth: u16_at(bytes, 6),
            branch_pages: u64_at(bytes, 8),
            leaf_pages: u64_at(bytes, 16),
            overflow_pages: u64_at(bytes, 24),
            entries: u64_at(bytes, 32),
            root: u64_at(bytes, 40),
        }
    }
}

/// What a node of a leaf has besides its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'p> {
    Inline(&'p [u8]),
    /// On pages of its own, from this one on.
    Overflow {
        page: u64,
        bytes: usize,
    },
    Table(TreeRecord),
}

/// The nodes of a branch or a leaf, each known to lie inside the page and to overlap no other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nodes<'p> {
    bytes: &'p [u8],
    pub is_leaf: bool,
    pub len: usize,
}

impl<'p> Nodes<'p> {
    /// Takes a page apart that should have this number.
    pub fn read(bytes: &'p [u8], number: u64) -> Result<Nodes<'p>, Wrong> {
        check_number(bytes, number)?;
        let is_leaf = match u16_at(bytes, 10) {
            BRANCH => false,
            LEAF => true,
            other => return Err(format!("its kind {other:#x} is neither a branch nor a leaf")),
        };
        let (lower, upper) = (usize::from(u16_at(bytes, 12)), usize::from(u16_at(bytes, 14)));
        if lower <= HEADER_BYTES || !lower.is_multiple_of(2) || lower > upper || upper > bytes.len() {
            return Err(format!("its bounds {lower} and {upper} make no sense"));
        }
        let nodes = Nodes { bytes, is_leaf, len: (lower - HEADER_BYTES) / 2 };
        nodes.check_places(upper)?;
        Ok(nodes)
    }

    /// The nodes fill the page from `upper` to its end, each beginning where another ends: LMDB keeps them so. Their
    /// lengths add up to that part only if none is missing, twice there or overlapping.
    fn check_places(&self, upper: usize) -> Result<(), Wrong> {
        let (mut starts, mut ends) = (Places::default(), Places::default());
        let mut filled = upper;
        for node in 0..self.len {
            let (at, bytes) = (self.at(node), self.node_bytes(node)?);
            let end = at + bytes;
            if at < upper || !at.is_multiple_of(2) || end > self.bytes.len().min(NODE_PLACES_MAX * 2) {
                return Err(format!("node {node} lies outside of the nodes' part of the page"));
            }
            starts.add(at);
            ends.add(end);
            filled += bytes;
        }
        // Behind the last one the page ends.
        starts.add(self.bytes.len());
        if let Some(end) = ends.first_that_is_not_among(&starts) {
            return Err(format!("a node ends at byte {end}, where no other begins"));
        }
        if filled != self.bytes.len() || !starts.has(upper) {
            return Err("its nodes do not fill their part of the page".to_owned());
        }
        Ok(())
    }

    fn at(&self, node: usize) -> usize {
        usize::from(u16_at(self.bytes, HEADER_BYTES + 2 * node))
    }

    fn key_bytes(&self, node: usize) -> usize {
        usize::from(u16_at(self.bytes, self.at(node) + 6))
    }

    /// The length of a node, padded to an even number.
    fn node_bytes(&self, node: usize) -> Result<usize, Wrong> {
        let value = match (self.is_leaf, self.flags(node)) {
            (false, _) => 0,
            (true, VALUE_INLINE) => self.value_bytes(node),
            (true, VALUE_ON_OVERFLOW_PAGES) => size_of::<u64>(),
            (true, VALUE_IS_TABLE) if self.value_bytes(node) == TreeRecord::BYTES => TreeRecord::BYTES,
            _ => return Err(format!("node {node} is of no kind that there is")),
        };
        Ok((NODE_HEADER_BYTES + self.key_bytes(node) + value).next_multiple_of(2))
    }

    fn flags(&self, node: usize) -> u16 {
        u16_at(self.bytes, self.at(node) + 4)
    }

    fn value_bytes(&self, node: usize) -> usize {
        u32_at(self.bytes, self.at(node)) as usize
    }

    pub fn key(&self, node: usize) -> &'p [u8] {
        let at = self.at(node) + NODE_HEADER_BYTES;
        self.bytes.get(at..at + self.key_bytes(node)).unwrap_or_default()
    }

    /// The page below a node of a branch.
    pub fn child(&self, node: usize) -> u64 {
        u64::from(u32_at(self.bytes, self.at(node))) | u64::from(self.flags(node)) << 32
    }

    /// What a node of a leaf has.
    pub fn content(&self, node: usize) -> Content<'p> {
        let at = self.at(node) + NODE_HEADER_BYTES + self.key_bytes(node);
        let bytes = self.value_bytes(node);
        match self.flags(node) {
            VALUE_ON_OVERFLOW_PAGES => Content::Overflow { page: u64_at(self.bytes, at), bytes },
            VALUE_IS_TABLE => Content::Table(TreeRecord::read(self.bytes.get(at..).unwrap_or_default())),
            _ => Content::Inline(self.bytes.get(at..at + bytes).unwrap_or_default()),
        }
    }
}

/// A set of places in a page, each an even number of bytes; the page's end may be one of them.
struct Places([u64; NODE_PLACES_MAX / 64 + 1]);

impl Default for Places {
    fn default() -> Places {
        Places([0; NODE_PLACES_MAX / 64 + 1])
    }
}

impl Places {
    fn add(&mut self, place: usize) {
        self.0[place / 128] |= 1 << (place / 2 % 64);
    }

    fn has(&self, place: usize) -> bool {
        self.0[place / 128] & 1 << (place / 2 % 64) != 0
    }

    fn first_that_is_not_among(&self, others: &Places) -> Option<usize> {
        let words = self.0.iter().zip(&others.0).map(|(word, other)| word & !other);
        let (at, left) = words.enumerate().find(|(_, left)| *left != 0)?;
        Some(at * 128 + left.trailing_zeros() as usize * 2)
    }
}

fn check_number(bytes: &[u8], number: u64) -> Result<(), Wrong> {
    let says = u64_at(bytes, 0);
    if says == number { Ok(()) } else { Err(format!("it says that it is page {says}")) }
}

/// How many pages a value of so many bytes takes.
pub(super) fn overflow_pages(bytes: usize, page_bytes: usize) -> u64 {
    (HEADER_BYTES + bytes).div_ceil(page_bytes) as u64
}

/// The pages that the first page of a run says it has.
pub(super) fn read_run_header(bytes: &[u8], number: u64) -> Result<u64, Wrong> {
    check_number(bytes, number)?;
    match u16_at(bytes, 10) {
        OVERFLOW => Ok(u64::from(u32_at(bytes, 12))),
        other => Err(format!("its kind {other:#x} is not that of overflow pages")),
    }
}
