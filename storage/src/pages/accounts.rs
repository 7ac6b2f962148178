//! Which pages are in use, and by whom: each but the meta pages is in use once, or free.

use std::collections::HashSet;

use super::page::Wrong;
use super::rows::Run;
use super::tree::Place;

/// A page that is reached although it is free: one of the two is damaged.
#[derive(Debug, Clone)]
pub(super) struct Conflict<'f> {
    pub page: u64,
    pub place: Place<'f>,
}

#[derive(Clone)]
pub(super) struct Accounts<'f> {
    /// Pages of the file.
    pages: u64,
    used: Bits,
    free: Bits,
    /// Free pages that are in use all the same.
    trusted: &'f HashSet<u64>,
    pub conflicts: Vec<Conflict<'f>>,
    /// Pages at the end of runs that their values do not need.
    spare: Vec<Run>,
    pub last_used: u64,
    pub last_free: u64,
}

impl<'f> Accounts<'f> {
    pub fn new(pages: u64, trusted: &'f HashSet<u64>) -> Accounts<'f> {
        let (used, free, conflicts, spare) = (Bits::default(), Bits::default(), Vec::new(), Vec::new());
        Accounts { pages, used, free, trusted, conflicts, spare, last_used: 1, last_free: 1 }
    }

    /// Takes a page into use.
    pub fn claim(&mut self, page: u64, place: &Place<'f>) -> Result<(), Wrong> {
        self.check(page)?;
        if self.free.has(page) && !self.trusted.contains(&page) {
            self.conflicts.push(Conflict { page, place: *place });
            return Err(format!("page {page} is free"));
        }
        self.used.set(page);
        self.last_used = self.last_used.max(page);
        Ok(())
    }

    fn check(&self, page: u64) -> Result<(), Wrong> {
        match page {
            0 | 1 => Err(format!("page {page} is a meta page")),
            _ if page >= self.pages => Err(format!("page {page} lies outside of the file's {} pages", self.pages)),
            _ if self.used.has(page) => Err(format!("page {page} is in use elsewhere")),
            _ => Ok(()),
        }
    }

    /// Takes the pages that a value needs into use, all or none.
    pub fn claim_run(&mut self, run: Run, place: &Place<'f>) -> Result<(), Wrong> {
        (run.first..run.first + run.needed).try_for_each(|page| self.check(page))?;
        (run.first..run.first + run.needed).try_for_each(|page| self.claim(page, place))?;
        if run.pages > run.needed {
            self.spare.push(run);
        }
        Ok(())
    }

    /// Takes spare pages into use, once all others are; gives the runs to which they cannot belong.
    pub fn claim_spares(&mut self) -> Vec<Run> {
        let mut wrong = std::mem::take(&mut self.spare);
        wrong.retain(|run| {
            let (from, to) = (run.first + run.needed, run.first.saturating_add(run.pages));
            let theirs = to <= self.pages && (from..to).all(|page| !self.used.has(page) && !self.free.has(page));
            if theirs {
                (from..to).for_each(|page| self.used.set(page));
                self.last_used = self.last_used.max(to - 1);
            }
            !theirs
        });
        wrong
    }

    /// Enters a page as free.
    pub fn set_free(&mut self, page: u64) -> Result<(), Wrong> {
        if page < 2 || self.used.has(page) || self.free.has(page) {
            return Err(format!("page {page} is listed as free, but is not"));
        }
        self.last_free = self.last_free.max(page);
        // The file may end before the pages that are free at its end.
        if page < self.pages {
            self.free.set(page);
        }
        Ok(())
    }

    /// What these and two others have that went on from these; `None` where a page is in use in both of them.
    pub fn and_both(&self, one: Accounts<'f>, other: Accounts<'f>) -> Option<Accounts<'f>> {
        let (mut both, mut conflicts, mut spare) = (one.used, one.conflicts, one.spare);
        both.add(&other.used, &self.used).then_some(())?;
        conflicts.extend(other.conflicts.into_iter().skip(self.conflicts.len()));
        spare.extend(other.spare.into_iter().skip(self.spare.len()));
        let last_used = one.last_used.max(other.last_used);
        Some(Accounts { used: both, conflicts, spare, last_used, ..one })
    }

    /// Free pages that are in use all the same.
    pub fn used_and_free(&self) -> impl Iterator<Item = u64> + '_ {
        self.trusted.iter().copied().filter(|page| self.used.has(*page))
    }

    /// Pages that nothing names.
    pub fn unaccounted(&self) -> impl Iterator<Item = u64> + '_ {
        (2..self.pages).filter(|page| !self.used.has(*page) && !self.free.has(*page))
    }
}

/// A set of page numbers of a file.
#[derive(Debug, Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn has(&self, page: u64) -> bool {
        self.0.get(page as usize / 64).is_some_and(|word| word & 1 << (page % 64) != 0)
    }

    /// Adds what another has. Gives whether they had nothing in common but these.
    fn add(&mut self, other: &Bits, common: &Bits) -> bool {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        let words = self.0.iter_mut().zip(&other.0).enumerate();
        words.fold(true, |disjoint, (at, (word, other))| {
            let both = *word & other & !common.0.get(at).copied().unwrap_or(0);
            *word |= other;
            disjoint && both == 0
        })
    }

    fn set(&mut self, page: u64) {
        let word = page as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (page % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tree::Owner;

    /// Those pages in use that these go on with.
    fn with<'f>(accounts: &Accounts<'f>, pages: &[u64]) -> Accounts<'f> {
        let mut with = accounts.clone();
        pages.iter().for_each(|page| with.claim(*page, &Place::root(Owner::TableList)).unwrap());
        with
    }

    #[test]
    fn two_walks_have_together_what_each_of_them_has_unless_both_have_a_page() {
        let trusted = HashSet::new();
        let mut before = with(&Accounts::new(300, &trusted), &[2, 130]);
        before.set_free(3).unwrap();
        let spare = |first| Run { first, needed: 1, pages: 2 };
        before.claim_run(spare(10), &Place::root(Owner::TableList)).unwrap();
        let (mut one, mut other) = (with(&before, &[4, 200]), with(&before, &[5, 131]));
        one.claim_run(spare(20), &Place::root(Owner::TableList)).unwrap();
        other.claim_run(spare(30), &Place::root(Owner::TableList)).unwrap();
        for (one, other) in [(&one, &other), (&other, &one)] {
            let both = before.and_both(one.clone(), other.clone()).unwrap();
            let in_use: Vec<u64> = (0..300).filter(|page| both.used.has(*page)).collect();
            assert_eq!(in_use, [2, 4, 5, 10, 20, 30, 130, 131, 200]);
            assert_eq!((both.last_used, both.last_free, both.spare.len()), (200, 3, 3));
            assert!(both.free.has(3));
        }
        for page in [4, 200] {
            assert!(before.and_both(one.clone(), with(&other, &[page])).is_none());
            assert!(before.and_both(with(&other, &[page]), one.clone()).is_none());
        }
    }
}
