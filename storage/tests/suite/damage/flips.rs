//! Which bytes are flipped.

use std::fmt;
use std::path::Path;

const PAGE_BYTES: usize = 4096;
const HEADER_BYTES: usize = 16;

/// Flips in each page unless `SEQTIDE_TEST_FLIPS` says otherwise.
const FLIPS: usize = 8;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;

/// A byte of the file, and what it is xored with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flip {
    pub at: usize,
    pub with: u8,
}

impl Flip {
    pub fn page(self) -> u64 {
        (self.at / PAGE_BYTES) as u64
    }

    fn in_page(self) -> usize {
        self.at % PAGE_BYTES
    }

    /// For people.
    pub fn place(self) -> String {
        format!("page {}, byte {} ^ {:#04x} (byte {} of the file)", self.page(), self.in_page(), self.with, self.at)
    }

    pub fn parse(line: &str) -> Flip {
        let (at, with) = line.split_once(' ').expect("two numbers");
        Flip { at: at.parse().expect("a number"), with: with.parse().expect("a byte") }
    }
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.with)
    }
}

/// The sound file.
pub struct Layout(Vec<u8>);

impl Layout {
    pub fn of(file: &Path) -> Layout {
        Layout(std::fs::read(file).unwrap())
    }

    fn page(&self, page: u64) -> &[u8] {
        &self.0[page as usize * PAGE_BYTES..][..PAGE_BYTES]
    }

    fn kind(&self, page: u64) -> u16 {
        u16::from_ne_bytes([self.page(page)[10], self.page(page)[11]])
    }

    fn names_itself(&self, page: u64) -> bool {
        self.page(page)[..8] == page.to_ne_bytes()
    }

    /// Whether a document may be lost with a page: a leaf has its id in a row, or leads to a page that has; a run of
    /// overflow pages is one row's, everything is below a branch, and the list of tables leads everywhere.
    pub fn may_lose(&self, page: u64, id: &str) -> bool {
        if !self.names_itself(page) || self.kind(page) != LEAF {
            return true;
        }
        let holds = |page: u64, what: &str| self.page(page).windows(what.len()).any(|bytes| bytes == what.as_bytes());
        let below = self.overflow_pages_of(page);
        holds(page, id)
            || below.into_iter().any(|run| holds(run, id))
            || (holds(page, "by_seq") && holds(page, "history"))
    }

    /// The first overflow page of each row of a leaf that has one.
    fn overflow_pages_of(&self, page: u64) -> Vec<u64> {
        let bytes = self.page(page);
        let nodes = (HEADER_BYTES..usize::from(self.number(page, 12))).step_by(2);
        let nodes = nodes.map(|offset| usize::from(self.number(page, offset)));
        let on_overflow_pages = nodes.filter(|at| self.number(page, at + 4) == 1);
        let places = on_overflow_pages.map(|at| at + 8 + usize::from(self.number(page, at + 6)));
        places.map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())).collect()
    }

    /// Whether a byte is one that LMDB takes a page's shape from. Two bytes of the header are used by none.
    pub fn is_header(&self, flip: Flip) -> bool {
        let (page, at) = (flip.page(), flip.in_page());
        let end = match self.kind(page) {
            _ if page < 2 || !self.names_itself(page) => 0,
            BRANCH | LEAF => usize::from(self.number(page, 12)),
            OVERFLOW => HEADER_BYTES,
            _ => 0,
        };
        at < end && at != 8 && at != 9
    }

    fn number(&self, page: u64, at: usize) -> u16 {
        u16::from_ne_bytes([self.page(page)[at], self.page(page)[at + 1]])
    }

    /// Places in a page that matter to its shape: its header, the offsets of its first and last node, their headers
    /// and the first bytes of their keys.
    fn shape(&self, page: u64) -> Vec<usize> {
        let header = vec![0, 1, 7, 10, 11, 12, 13, 14, 15];
        if page < 2 {
            return (0..HEADER_BYTES + 136).collect();
        }
        let nodes = match self.kind(page) {
            BRANCH | LEAF if self.names_itself(page) => {
                usize::from(self.number(page, 12)).saturating_sub(HEADER_BYTES) / 2
            }
            _ => 0,
        };
        let mut places = header;
        for node in [0, nodes.saturating_sub(1)].into_iter().filter(|_| nodes > 0) {
            let offset = HEADER_BYTES + 2 * node;
            let at = usize::from(self.number(page, offset));
            places.extend([offset, offset + 1]);
            places.extend((at..at + 10).filter(|at| *at < PAGE_BYTES));
        }
        places
    }
}

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Some flips in each page, more where its shape is, and in all of the meta pages' fields.
pub fn chosen(layout: &Layout) -> Vec<Flip> {
    let mut random = Random(setting("SEQTIDE_TEST_SEED", 1) as u64);
    let in_each_page = setting("SEQTIDE_TEST_FLIPS", FLIPS);
    let mut flips = Vec::new();
    for page in 0..(layout.0.len() / PAGE_BYTES) as u64 {
        let shape = layout.shape(page);
        let mut place = |nth: usize| match nth {
            _ if in_each_page >= PAGE_BYTES => nth,
            _ if nth % 3 == 2 => random.below(PAGE_BYTES),
            _ => shape[random.below(shape.len())],
        };
        let mut places: Vec<usize> = (0..in_each_page.min(PAGE_BYTES)).map(&mut place).collect();
        if page < 2 {
            places.extend(&shape);
        }
        let byte = |at| Flip { at: page as usize * PAGE_BYTES + at, with: 1 + random.below(255) as u8 };
        flips.extend(places.into_iter().map(byte));
    }
    flips
}
