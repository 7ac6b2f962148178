//! The two meta pages, and which of them is the newest commit's.
//!
//! ```text
//! page header 16 · magic 4 · version 4 · address 8 · map 8 · record of the free list 48 · record of the tables 48
//! · last page 8 · transaction 8
//! ```
//!
//! Transaction n writes meta page n mod 2, and LMDB reads the higher one. Nothing protects that number, so each commit
//! also writes it into a sealed row of `meta`, which its meta page leads to.

use super::damage::Damage;
use super::fields::{u16_at, u32_at, u64_at};
use super::file::PageFile;
use super::page::{HEADER_BYTES, TreeRecord};
use super::rows::read_meta_row;
use crate::codec::meta;
use crate::env::MAP_BYTES_MAX;
use crate::seal::Seals;
use crate::tables::{META_COMMIT, META_FORMAT};

const KIND: u16 = 8;
const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
/// Keys of the free list are integers in the machine's byte order.
const FREE_LIST_FLAGS: u16 = 8;
const FIELDS_BYTES: usize = 136;

/// The sizes of pages that LMDB knows, the usual one first.
const PAGE_SIZES: [usize; 5] = [4096, 16384, 8192, 32768, 2048];

/// A meta page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta {
    pub page: u64,
    pub free: TreeRecord,
    pub tables: TreeRecord,
    pub last_page: u64,
    /// What it says.
    transaction: u64,
    /// What is wrong with what must be the same in every file.
    pub problems: Vec<String>,
}

/// The newest commit.
#[derive(Debug, Clone)]
pub(super) struct Newest {
    pub meta: Meta,
    pub damages: Vec<Damage>,
    /// The other meta page is damaged, and nothing else: it is the older commit's, which nobody needs.
    pub older: Option<Older>,
}

/// A damaged meta page of the commit before the newest.
#[derive(Debug, Clone)]
pub(super) struct Older {
    pub page: u64,
    /// The number that the page should have.
    pub transaction: u64,
    pub damage: Damage,
}

impl Meta {
    fn read(bytes: &[u8], page: u64, page_bytes: usize) -> Meta {
        let fields = bytes.get(HEADER_BYTES..).unwrap_or_default();
        let [free, tables] = [24, 72].map(|at| TreeRecord::read(fields.get(at..).unwrap_or_default()));
        let (last_page, transaction) = (u64_at(fields, 120), u64_at(fields, 128));
        let map_bytes = u64_at(fields, 16);
        let map_holds = map_bytes / page_bytes as u64 > last_page;
        let map_sound = map_holds && map_bytes <= MAP_BYTES_MAX as u64 && map_bytes.is_multiple_of(page_bytes as u64);
        let checks = [
            ("number", u64_at(bytes, 0) == page),
            ("kind", u16_at(bytes, 10) == KIND),
            ("magic number", u32_at(fields, 0) == MAGIC),
            ("version", u32_at(fields, 4) == VERSION),
            ("address", u64_at(fields, 8) == 0),
            ("size of the map", map_sound),
            ("size of pages", free.pad as usize == page_bytes),
            ("flags of the free list", free.flags == FREE_LIST_FLAGS),
            ("flags of the list of tables", tables.pad == 0 && tables.flags == 0),
            ("transaction's parity", transaction % 2 == page || transaction == 0),
        ];
        let wrong = checks.into_iter().filter(|(_, sound)| !sound);
        let problems = wrong.map(|(field, _)| format!("the {field} in the meta page is wrong")).collect();
        Meta { page, free, tables, last_page, transaction, problems }
    }

    /// Whether a file has all the pages that the commit knows. What is missing may be free, and is then not missed.
    pub fn is_within(&self, file: &PageFile) -> bool {
        self.last_page < file.pages()
    }

    /// Whether the page says the same when it is read again.
    pub fn is_still_there(&self, file: &PageFile) -> bool {
        file.page(self.page).is_ok_and(|bytes| Meta::read(bytes, self.page, file.page_bytes()) == *self)
    }

    /// A number among the rows of `meta`; `None` when it is not there or cannot be read.
    pub fn number(&self, name: &[u8], file: &PageFile) -> Option<u64> {
        let value = read_meta_row(file, self, name, Seals::Optional).ok().flatten()?;
        meta::decode_number(value).ok()
    }

    /// The number that the commit says it has; `None` when it does not say, as before format 2, or cannot be reached.
    fn commit(&self, file: &PageFile) -> Option<u64> {
        // An older version writes commits without their numbers, and leaves the last one standing.
        self.number(META_FORMAT, file).filter(|format| *format >= 2)?;
        // Pages of an older commit may be used again, by a newer one of the other page's parity.
        self.number(META_COMMIT, file).filter(|number| number % 2 == self.page)
    }
}

/// Finds out how large pages are: meta page 1 begins where page 0 ends.
pub(super) fn page_bytes(file: &PageFile) -> Option<usize> {
    PAGE_SIZES.into_iter().find(|size| {
        let second = file.read::<{ HEADER_BYTES + FIELDS_BYTES }>(*size as u64);
        second.is_some_and(|second| {
            let by_header = u64_at(&second, 0) == 1 && u16_at(&second, 10) == KIND;
            let by_magic = u32_at(&second, HEADER_BYTES) == MAGIC && u32_at(&second, HEADER_BYTES + 4) == VERSION;
            by_header || by_magic
        })
    })
}

/// Finds the newest commit.
///
/// # Errors
/// The damage that leaves it unknown.
pub(super) fn newest(file: &PageFile) -> Result<Newest, Damage> {
    let (first, second) = (numbered(file, 0)?, numbered(file, 1)?);
    // Two of the same number are those of a file nothing was written to; then any sound one will do.
    let rank = |(number, meta): &(u64, Meta)| (*number, meta.problems.is_empty());
    let ((before, older), (number, newest)) =
        if rank(&first) > rank(&second) { (second, first) } else { (first, second) };
    if number - before > 1 {
        let what =
            format!("its commit is {number}, that of the other meta page {before}: which is the newest is unknown");
        return Err(Damage::of_database(newest.page, what));
    }
    let damages = newest.problems.iter().map(|what| Damage::harmless(newest.page, what.as_str())).collect();
    let older = older.problems.first().map(|what| Older {
        page: older.page,
        transaction: number.saturating_sub(1),
        damage: Damage::harmless(older.page, format!("{what}; it is that of the commit before the newest")),
    });
    Ok(Newest { meta: newest, damages, older })
}

/// A meta page, with the number of its commit.
pub(super) fn numbered(file: &PageFile, page: u64) -> Result<(u64, Meta), Damage> {
    let bytes = file.page(page).map_err(|wrong| Damage::of_database(page, wrong))?;
    let mut meta = Meta::read(bytes, page, file.page_bytes());
    let commit = meta.commit(file).unwrap_or(meta.transaction);
    if commit != meta.transaction {
        meta.problems.push(format!("it is of commit {commit}, and says {}", meta.transaction));
    }
    Ok((commit, meta))
}

/// The bytes of a meta page that stands in for a damaged older one: the newest one's, one transaction earlier.
pub(super) fn stand_in(newest: &[u8], older: &Older) -> Vec<u8> {
    let mut bytes = newest.to_vec();
    let transaction_at = HEADER_BYTES + 128;
    for (at, number) in [(0, older.page), (transaction_at, older.transaction)] {
        if let Some(field) = bytes.get_mut(at..at + 8) {
            field.copy_from_slice(&number.to_ne_bytes());
        }
    }
    bytes
}
