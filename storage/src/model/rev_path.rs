//! A revision with its ancestry, as replication carries it (`_revisions`).

use super::rev::{RevHash, RevId};

/// A path of the tree, newest revision first. Never empty; generations fall by one a step and stay at 1 or above
/// (a lone revision may have generation 0, as CouchDB allows).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevPath {
    start: u64,
    hashes: Vec<RevHash>,
}

impl RevPath {
    /// A path from its newest generation down; `None` when it is empty or would pass the root.
    pub fn new(start: u64, hashes: Vec<RevHash>) -> Option<RevPath> {
        let fits = hashes.len() == 1 || u64::try_from(hashes.len()).is_ok_and(|len| len <= start);
        (fits && !hashes.is_empty()).then_some(RevPath { start, hashes })
    }

    /// A path of one revision whose ancestors are not known.
    pub fn lone(rev: RevId) -> RevPath {
        RevPath { start: rev.generation, hashes: vec![rev.hash] }
    }

    /// The newest revision.
    pub fn rev(&self) -> RevId {
        RevId::new(self.start, self.hashes[0].clone())
    }

    /// All its revisions, newest first.
    pub fn revs(&self) -> impl Iterator<Item = RevId> + '_ {
        (0..).zip(&self.hashes).map(|(steps, hash)| RevId::new(self.start - steps, hash.clone()))
    }

    /// The generation of the newest revision.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The hashes, newest first.
    pub fn hashes(&self) -> &[RevHash] {
        &self.hashes
    }
}
