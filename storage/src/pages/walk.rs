//! The walk: everything that the newest commit reaches is looked at once.

use std::collections::HashSet;
use std::ops::Bound;

use super::accounts::{Accounts, Conflict};
use super::damage::{At, Damage, Lost};
use super::file::PageFile;
use super::free_list;
use super::map::{Gap, SoundLeaf, TableMap};
use super::meta::Meta;
use super::page::{Content, Nodes, TreeRecord, Wrong};
use super::rows::read_row;
use super::tree::{Owner, Place, Sink, go_through};
use crate::at_once::at_once;
use crate::seal::Seals;
use crate::tables::Table;

/// LMDB's longest key.
const KEY_BYTES_MAX: usize = 511;

/// What a walk found.
#[derive(Debug)]
pub(super) struct Walked {
    /// By [`Table`].
    pub tables: Vec<TableMap>,
    pub damages: Vec<Damage>,
}

/// Walks through a commit.
pub(super) fn walk(file: &PageFile, meta: &Meta, seals: Seals) -> Walked {
    let mut trusted = HashSet::new();
    loop {
        let (walked, in_order) = walk_trusting(file, meta, seals, &trusted);
        if in_order.is_empty() {
            return walked;
        }
        trusted.extend(in_order);
    }
}

/// Walks through a commit, taking some pages for used though they are listed as free. Gives those that are to be
/// trusted so as well: a page that is both belongs where it was reached when no page is left over that could have been
/// there instead; then the list of free pages is damaged. Else the way to it may be, and it is an old state.
fn walk_trusting(file: &PageFile, meta: &Meta, seals: Seals, trusted: &HashSet<u64>) -> (Walked, Vec<u64>) {
    let mut accounts = Accounts::new(file.pages(), trusted);
    let mut damages = free_list::enter(file, &mut accounts, meta);
    let list = table_list(file, &mut accounts, meta, &mut damages);
    let tables = walk_tables(file, &mut accounts, &list, seals, &mut damages);
    for run in accounts.claim_spares() {
        damages.push(Damage::harmless(run.first, format!("it says that its value has {} pages", run.pages)));
    }
    for page in accounts.used_and_free() {
        damages.push(Damage::harmless(page, "it is in use and listed as free"));
    }
    damages.extend(check_last_page(file, &accounts, meta));
    let left_over: Vec<u64> = accounts.unaccounted().collect();
    let could_be_another = |conflict: &Conflict<'_>| left_over.iter().any(|page| conflict.place.fits(file, *page));
    let in_order = accounts.conflicts.iter().filter(|conflict| !could_be_another(conflict)).map(|found| found.page);
    (Walked { tables, damages }, in_order.collect())
}

/// Walks through all tables: by two threads, each with about half of the pages. Who finds something wrong has to know
/// what all tables before have, so that then one walks through all of them.
fn walk_tables<'f>(
    file: &'f PageFile,
    accounts: &mut Accounts<'f>,
    list: &TableList,
    seals: Seals,
    damages: &mut Vec<Damage>,
) -> Vec<TableMap> {
    let walk_these = |tables: &[Table], accounts: &mut Accounts<'f>, damages: &mut Vec<Damage>| -> Vec<TableMap> {
        let of_table = |table: &Table| match list.of(*table) {
            Listed::Record(page, record) => walk_table(file, accounts, *table, seals, (page, &record), damages),
            Listed::Nowhere => TableMap::default(),
            Listed::Lost => TableMap { leaves: Vec::new(), gaps: vec![Gap::whole(0)] },
        };
        tables.iter().map(of_table).collect()
    };
    let (some, others) = Table::ALL.split_at(list.middle());
    let by_itself = |tables: &[Table]| {
        let (mut accounts, mut damages) = (accounts.clone(), Vec::new());
        let maps = walk_these(tables, &mut accounts, &mut damages);
        damages.is_empty().then_some((maps, accounts))
    };
    if let (Some((some, of_some)), Some((others, of_others))) = at_once(|| by_itself(some), || by_itself(others))
        && let Some(both) = accounts.and_both(of_some, of_others)
    {
        *accounts = both;
        return some.into_iter().chain(others).collect();
    }
    walk_these(&Table::ALL, accounts, damages)
}

/// The last page is in use or free, and so is what lies behind the end of the file.
fn check_last_page(file: &PageFile, accounts: &Accounts<'_>, meta: &Meta) -> Option<Damage> {
    let last = accounts.last_used.max(accounts.last_free);
    let beyond = !meta.is_within(file) && meta.last_page > last;
    let wrong = meta.last_page < last || beyond;
    wrong.then(|| {
        Damage::harmless(meta.page, format!("it says that page {} is the last, which is {last}", meta.last_page))
    })
}

/// The records of the tables.
#[derive(Default)]
struct TableList {
    /// Each with the page it stands on.
    found: Vec<(Table, u64, TreeRecord)>,
    /// Where the list is damaged and how: what is not found may have been there.
    wrong: Option<(u64, Wrong)>,
    last: Option<Vec<u8>>,
}

enum Listed {
    Record(u64, TreeRecord),
    /// The file is older than the table.
    Nowhere,
    Lost,
}

impl TableList {
    fn of(&self, table: Table) -> Listed {
        match self.found.iter().find(|(found, ..)| *found == table) {
            Some((_, page, record)) => Listed::Record(*page, *record),
            None if self.wrong.is_none() => Listed::Nowhere,
            None => Listed::Lost,
        }
    }

    /// Behind how many tables about half of all pages lie, as their records say.
    fn middle(&self) -> usize {
        let pages = Table::ALL.map(|table| match self.of(table) {
            Listed::Record(_, record) => record.leaf_pages.saturating_add(record.overflow_pages),
            Listed::Nowhere | Listed::Lost => 0,
        });
        let sum = |pages: &[u64]| pages.iter().fold(0_u64, |sum, pages| sum.saturating_add(*pages));
        (0..pages.len()).min_by_key(|at| sum(&pages[..*at]).abs_diff(sum(&pages[*at..]))).unwrap_or(0)
    }

    fn row(&mut self, nodes: &Nodes<'_>, node: usize, page: u64) -> Result<(), Wrong> {
        let name = nodes.key(node);
        let Content::Table(record) = nodes.content(node) else { return Err("a row in the list of tables".to_owned()) };
        let table = Table::ALL.into_iter().find(|table| table.name().as_bytes() == name);
        let table = table.ok_or_else(|| format!("no table is called {:?}", String::from_utf8_lossy(name)))?;
        if self.last.as_ref().is_some_and(|last| last.as_slice() >= name) {
            return Err(format!("table {} is out of order", table.name()));
        }
        self.last = Some(name.to_vec());
        self.found.push((table, page, record));
        Ok(())
    }
}

impl<'f> Sink<'f> for TableList {
    fn leaf(&mut self, _: &mut Accounts<'f>, _: &Place<'f>, page: u64, nodes: &Nodes<'f>) -> u64 {
        for node in 0..nodes.len {
            if let Err(wrong) = self.row(nodes, node, page) {
                self.lost(page, wrong);
            }
        }
        0
    }

    fn lost(&mut self, page: u64, why: Wrong) {
        self.wrong.get_or_insert((page, why));
    }
}

/// Reads the list of tables. What is wrong with it comes first among the damages, where lost tables look for it.
fn table_list<'f>(
    file: &'f PageFile,
    accounts: &mut Accounts<'f>,
    meta: &Meta,
    damages: &mut Vec<Damage>,
) -> TableList {
    let mut list = TableList::default();
    let counts = go_through(file, accounts, Owner::TableList, meta.tables.root, &mut list);
    match &list.wrong {
        Some((page, why)) => {
            let missing = Table::ALL.into_iter().filter(|table| !list.found.iter().any(|(found, ..)| found == table));
            let lost = Lost::Tables(missing.collect());
            damages.insert(0, Damage { at: At::Page(*page), what: format!("in the list of tables: {why}"), lost });
        }
        None => {
            damages.extend(
                counts
                    .differ(&meta.tables)
                    .map(|what| Damage::harmless(meta.page, format!("of the list of tables, {what}"))),
            );
        }
    }
    list
}

fn walk_table<'f>(
    file: &'f PageFile,
    accounts: &mut Accounts<'f>,
    table: Table,
    seals: Seals,
    (listed_on, record): (u64, &TreeRecord),
    damages: &mut Vec<Damage>,
) -> TableMap {
    let before = damages.len();
    let mut walk = TableWalk { file, table, seals, map: TableMap::default(), last: None, open: false, damages };
    let counts = go_through(file, accounts, Owner::Table(table, seals), record.root, &mut walk);
    let TableWalk { map, damages, .. } = walk;
    if damages.len() == before {
        let differ =
            if record.flags == 0 && record.pad == 0 { counts.differ(record) } else { Some("flags".to_owned()) };
        damages.extend(differ.map(|what| Damage::harmless(listed_on, format!("of table {}, {what}", table.name()))));
    }
    map
}

struct TableWalk<'w, 'f> {
    file: &'f PageFile,
    table: Table,
    seals: Seals,
    map: TableMap,
    /// The last sound key.
    last: Option<&'f [u8]>,
    /// Whether a gap is open: nothing sound has come since.
    open: bool,
    damages: &'w mut Vec<Damage>,
}

impl<'f> TableWalk<'_, 'f> {
    fn row(
        &mut self,
        accounts: &mut Accounts<'f>,
        place: &Place<'f>,
        key: &'f [u8],
        content: Content<'f>,
    ) -> Result<u64, Wrong> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(format!("a key of {} bytes", key.len()));
        }
        let (_, run) = read_row(self.file, self.table, key, content, self.seals)?;
        if !place.holds(key) || self.last.is_some_and(|last| last >= key) {
            return Err("its key is not one of its place".to_owned());
        }
        if let (Some(run), Content::Overflow { bytes, .. }) = (run, content) {
            accounts.claim_run(run, &Place { value: Some((key, bytes)), ..*place })?;
        }
        Ok(run.map_or(0, |run| run.pages))
    }

    fn sound(&mut self, key: &'f [u8]) {
        self.last = Some(key);
        if !std::mem::take(&mut self.open) {
            return;
        }
        let Some(gap) = self.map.gaps.last_mut() else { return };
        gap.before = Bound::Excluded(key.to_vec());
        if let Some(Damage { lost: Lost::Keys { before, .. }, .. }) = self.damages.get_mut(gap.damage) {
            before.clone_from(&gap.before);
        }
    }

    /// What cannot be read lies behind the last sound key. Of damages side by side the first is named.
    fn lose(&mut self, page: u64, what: String) {
        if std::mem::replace(&mut self.open, true) {
            return;
        }
        let after = self.last.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
        let lost = Lost::Keys { table: self.table, after: after.clone(), before: Bound::Unbounded };
        self.map.gaps.push(Gap { after, before: Bound::Unbounded, damage: self.damages.len() });
        self.damages.push(Damage { at: At::Page(page), what, lost });
    }
}

impl<'f> Sink<'f> for TableWalk<'_, 'f> {
    fn leaf(&mut self, accounts: &mut Accounts<'f>, place: &Place<'f>, page: u64, nodes: &Nodes<'f>) -> u64 {
        let (mut own_pages, mut sound) = (0, Vec::with_capacity(nodes.len));
        for node in 0..nodes.len {
            let key = nodes.key(node);
            match self.row(accounts, place, key, nodes.content(node)) {
                Ok(pages) => {
                    own_pages += pages;
                    sound.push(node as u16);
                    self.sound(key);
                }
                Err(wrong) => self.lose(page, format!("its row {node}: {wrong}")),
            }
        }
        if let Some(first) = sound.first() {
            let first = nodes.key(usize::from(*first)).into();
            let nodes = (sound.len() < nodes.len).then(|| sound.into_boxed_slice());
            self.map.leaves.push(SoundLeaf { page, first, nodes });
        }
        own_pages
    }

    fn lost(&mut self, page: u64, why: Wrong) {
        self.lose(page, why);
    }
}
