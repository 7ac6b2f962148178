//! The list of free pages: a tree of transactions' numbers, each with the pages that transaction freed.
//!
//! A row is how many pages, then their numbers, falling. Rows have no checksum; but a page is in use or free, so most
//! of what goes wrong here shows when pages are counted.

use super::accounts::Accounts;
use super::damage::Damage;
use super::fields::u64_at;
use super::file::PageFile;
use super::meta::Meta;
use super::page::{Nodes, Wrong};
use super::rows::read_value;
use super::tree::{Owner, Place, Sink, go_through};

/// Enters the free pages; gives what is wrong with the list, which costs no row.
pub(super) fn enter<'f>(file: &'f PageFile, accounts: &mut Accounts<'f>, meta: &Meta) -> Vec<Damage> {
    let mut list = FreeList { file, last_page: meta.last_page, last: None, pages: Vec::new(), damages: Vec::new() };
    let counts = go_through(file, accounts, Owner::FreeList, meta.free.root, &mut list);
    let FreeList { pages, mut damages, .. } = list;
    // Pages of the list itself are in use by now.
    for (of, page) in pages {
        if let Err(wrong) = accounts.set_free(page) {
            damages.push(Damage::harmless(of, wrong));
        }
    }
    if damages.is_empty()
        && let Some(what) = counts.differ(&meta.free)
    {
        damages.push(Damage::harmless(meta.page, format!("of the free list, {what}")));
    }
    damages
}

struct FreeList<'f> {
    file: &'f PageFile,
    last_page: u64,
    last: Option<u64>,
    /// Each with the page that lists it.
    pages: Vec<(u64, u64)>,
    damages: Vec<Damage>,
}

impl<'f> FreeList<'f> {
    /// Takes a row; gives the pages its value has of its own.
    fn row(
        &mut self,
        accounts: &mut Accounts<'f>,
        place: &Place<'f>,
        page: u64,
        nodes: &Nodes<'f>,
        node: usize,
    ) -> Result<u64, Wrong> {
        let key = nodes.key(node);
        let number = key.try_into().map(u64::from_ne_bytes).map_err(|_| "a key that is no number".to_owned())?;
        if !place.holds(key) || self.last.is_some_and(|last| last >= number) {
            return Err(format!("the list of transaction {number} is out of order"));
        }
        self.last = Some(number);
        let value = read_value(self.file, nodes.content(node))?;
        if let Some(run) = value.run {
            accounts.claim_run(run, &Place { value: Some((key, value.bytes.len())), ..*place })?;
        }
        let listed = u64_at(value.bytes, 0);
        if (value.bytes.len() / size_of::<u64>()) as u64 <= listed {
            return Err(format!("the list of transaction {number} has no room for {listed} pages"));
        }
        let mut before = self.last_page + 1;
        for at in 1..=listed as usize {
            let free = u64_at(value.bytes, at * size_of::<u64>());
            if free >= before {
                return Err(format!("the list of transaction {number} is out of order at page {free}"));
            }
            before = free;
            self.pages.push((page, free));
        }
        Ok(value.run.map_or(0, |run| run.pages))
    }
}

impl<'f> Sink<'f> for FreeList<'f> {
    fn leaf(&mut self, accounts: &mut Accounts<'f>, place: &Place<'f>, page: u64, nodes: &Nodes<'f>) -> u64 {
        let mut own_pages = 0;
        for node in 0..nodes.len {
            match self.row(accounts, place, page, nodes, node) {
                Ok(pages) => own_pages += pages,
                Err(wrong) => self.damages.push(Damage::harmless(page, wrong)),
            }
        }
        own_pages
    }

    fn lost(&mut self, page: u64, why: Wrong) {
        self.damages.push(Damage::harmless(page, format!("in the free list: {why}")));
    }
}
