//! A tree of pages, gone through from its root: every page fits its place, or is reported.

use std::cmp::Ordering;

use super::accounts::Accounts;
use super::file::PageFile;
use super::page::{Content, NO_ROOT, Nodes, TreeRecord, Wrong};
use super::rows::{DEPTH_MAX, read_row, read_value};
use crate::seal::Seals;
use crate::tables::Table;

/// What a tree holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    FreeList,
    TableList,
    Table(Table, Seals),
}

impl Owner {
    /// The order of the tree's keys.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let number = |key: &[u8]| key.try_into().map(u64::from_ne_bytes).unwrap_or(0);
        match self {
            Owner::FreeList => number(a).cmp(&number(b)),
            Owner::TableList | Owner::Table(..) => a.cmp(b),
        }
    }
}

/// Where a page stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'f> {
    pub owner: Owner,
    /// The lowest key there can be, and the first one there cannot be.
    pub bounds: (Option<&'f [u8]>, Option<&'f [u8]>),
    /// For pages of a value: its key, and its length.
    pub value: Option<(&'f [u8], usize)>,
}

impl<'f> Place<'f> {
    pub fn root(owner: Owner) -> Place<'f> {
        Place { owner, bounds: (None, None), value: None }
    }

    /// Whether a key can stand here.
    pub fn holds(&self, key: &[u8]) -> bool {
        let (lower, upper) = self.bounds;
        let compare = |a, b| self.owner.compare(a, b);
        lower.is_none_or(|lower| compare(lower, key).is_le()) && upper.is_none_or(|upper| compare(key, upper).is_lt())
    }

    /// The place below a branch's node.
    fn below(&self, branch: &Nodes<'f>, node: usize) -> Place<'f> {
        // The first key of a branch is never looked at: it stands for everything below the second.
        let lower = if node == 0 { self.bounds.0 } else { Some(branch.key(node)) };
        let upper = if node + 1 < branch.len { Some(branch.key(node + 1)) } else { self.bounds.1 };
        Place { bounds: (lower, upper), ..*self }
    }

    /// Takes a page apart that stands here.
    pub fn read(&self, file: &'f PageFile, page: u64) -> Result<Nodes<'f>, Wrong> {
        let nodes = Nodes::read(file.page(page)?, page)?;
        if nodes.is_leaf {
            self.check_leaf(file, &nodes)?;
        } else {
            let separators = 1..nodes.len;
            let ordered =
                separators.clone().skip(1).all(|node| self.owner.compare(nodes.key(node - 1), nodes.key(node)).is_lt());
            if !ordered || !separators.into_iter().all(|node| self.holds(nodes.key(node))) {
                return Err("its keys are not those of its place".to_owned());
            }
        }
        Ok(nodes)
    }

    /// Of a page that stands here, at least one row belongs here.
    fn check_leaf(&self, file: &'f PageFile, nodes: &Nodes<'f>) -> Result<(), Wrong> {
        let first = match self.check_row(file, nodes, 0) {
            Ok(()) => return Ok(()),
            Err(wrong) => wrong,
        };
        let fits = (1..nodes.len).any(|node| self.check_row(file, nodes, node).is_ok());
        if fits { Ok(()) } else { Err(format!("no row of it belongs there, the first because {first}")) }
    }

    fn check_row(&self, file: &'f PageFile, nodes: &Nodes<'f>, node: usize) -> Result<(), Wrong> {
        let (key, content) = (nodes.key(node), nodes.content(node));
        match (self.owner, content) {
            _ if !self.holds(key) => Err("its key is not one of its place".to_owned()),
            (Owner::Table(table, seals), _) => read_row(file, table, key, content, seals).map(drop),
            (Owner::TableList, Content::Table(_)) => Ok(()),
            (Owner::FreeList, _) if key.len() == size_of::<u64>() => Ok(()),
            _ => Err("it is of another kind".to_owned()),
        }
    }

    /// Whether another page could stand here as well.
    pub fn fits(&self, file: &'f PageFile, page: u64) -> bool {
        let Some((key, bytes)) = self.value else { return self.read(file, page).is_ok() };
        let content = Content::Overflow { page, bytes };
        match self.owner {
            Owner::Table(table, seals) => read_row(file, table, key, content, seals).is_ok(),
            _ => read_value(file, content).is_ok(),
        }
    }
}

/// What a tree turns out to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub branch_pages: u64,
    pub leaf_pages: u64,
    pub overflow_pages: u64,
    pub entries: u64,
    pub depth: u16,
}

impl Counts {
    /// What the record of a tree says otherwise.
    pub fn differ(&self, record: &TreeRecord) -> Option<String> {
        let said = [
            ("branches", record.branch_pages, self.branch_pages),
            ("leaves", record.leaf_pages, self.leaf_pages),
            ("overflow pages", record.overflow_pages, self.overflow_pages),
            ("entries", record.entries, self.entries),
            ("levels", record.depth.into(), self.depth.into()),
        ];
        let (what, says, has) = said.into_iter().find(|(_, says, has)| says != has)?;
        Some(format!("{says} {what} are recorded, there are {has}"))
    }
}

/// Takes what a tree holds, in the order of its keys.
pub(super) trait Sink<'f> {
    /// A leaf that fits its place; gives how many pages its values have of their own.
    fn leaf(&mut self, accounts: &mut Accounts<'f>, place: &Place<'f>, page: u64, nodes: &Nodes<'f>) -> u64;

    /// A page that does not fit, with everything below it.
    fn lost(&mut self, page: u64, why: Wrong);
}

/// Goes through a tree.
pub(super) fn go_through<'f>(
    file: &'f PageFile,
    accounts: &mut Accounts<'f>,
    owner: Owner,
    root: u64,
    sink: &mut impl Sink<'f>,
) -> Counts {
    let mut walk = TreeWalk { file, accounts, counts: Counts::default(), sink };
    if root != NO_ROOT {
        walk.page(root, &Place::root(owner), 1);
    }
    walk.counts
}

struct TreeWalk<'w, 'f, S> {
    file: &'f PageFile,
    accounts: &'w mut Accounts<'f>,
    counts: Counts,
    sink: &'w mut S,
}

impl<'f, S: Sink<'f>> TreeWalk<'_, 'f, S> {
    fn page(&mut self, page: u64, place: &Place<'f>, level: u16) {
        match self.enter(page, place, level) {
            Err(why) => self.sink.lost(page, why),
            Ok(nodes) if nodes.is_leaf => {
                self.counts.leaf_pages += 1;
                self.counts.entries += nodes.len as u64;
                self.counts.overflow_pages += self.sink.leaf(self.accounts, place, page, &nodes);
            }
            Ok(nodes) => {
                self.counts.branch_pages += 1;
                for node in 0..nodes.len {
                    self.page(nodes.child(node), &place.below(&nodes, node), level + 1);
                }
            }
        }
    }

    fn enter(&mut self, page: u64, place: &Place<'f>, level: u16) -> Result<Nodes<'f>, Wrong> {
        let nodes = place.read(self.file, page)?;
        if nodes.is_leaf && self.counts.depth != 0 && self.counts.depth != level {
            return Err(format!("a leaf on level {level} of a tree of {}", self.counts.depth));
        }
        if level == DEPTH_MAX {
            return Err(format!("a tree of more than {DEPTH_MAX} levels"));
        }
        self.accounts.claim(page, place)?;
        if nodes.is_leaf {
            self.counts.depth = level;
        }
        Ok(nodes)
    }
}
