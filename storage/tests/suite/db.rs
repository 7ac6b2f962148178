//! A store in a folder of its own, and short words for what tests write to it and read from it.

use proptest::test_runner::Config as ProptestConfig;
use seqtide_storage::json::{Body, ScanLimits, scan_document};
use seqtide_storage::model::body_place::BodyPlace;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::{RevHash, RevId};
use seqtide_storage::model::rev_path::RevPath;
use seqtide_storage::model::rev_tree::{Leaf, Line, RevTree};
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{
    Birth, Change, Changed, Commit, Counters, Detail, Direction, Edit, Identity, Outcome, PageLimits, ReadChanges,
    Reclaimed, Request, RequestOutcome, Snapshot, StorageError, Store, StoreOptions, Write,
};
use std::time::Duration;
use tempfile::TempDir;

use crate::feed_index::TestKeys;

pub struct Db {
    pub store: Store,
    options: StoreOptions,
    folder: TempDir,
}

/// Fewer cases than is usual, as each makes a database; `PROPTEST_CASES` overrules it.
pub fn cases(few: u32) -> ProptestConfig {
    let given = std::env::var_os("PROPTEST_CASES").is_some();
    if given { ProptestConfig::default() } else { ProptestConfig::with_cases(few) }
}

pub fn small() -> StoreOptions {
    StoreOptions { map_bytes: 64 << 20, feed_keys: &TestKeys, ..StoreOptions::default() }
}

fn open(folder: &TempDir, options: &StoreOptions) -> Store {
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    Store::open(folder.path(), options, &Birth { identity, start: Sequence::ZERO }).unwrap()
}

impl Db {
    pub fn new() -> Db {
        Db::with(small())
    }

    pub fn with_revs_limit(revs_limit: u32) -> Db {
        Db::with(StoreOptions { revs_limit, ..small() })
    }

    pub fn with(options: StoreOptions) -> Db {
        let folder = tempfile::tempdir().unwrap();
        Db { store: open(&folder, &options), options, folder }
    }

    pub fn reopen(self) -> Db {
        let options = self.options;
        self.reopen_with(options)
    }

    pub fn reopen_with(self, options: StoreOptions) -> Db {
        let Db { store, folder, .. } = self;
        store.close().unwrap();
        let store = open(&folder, &options);
        assert_eq!(store.damages(), []);
        Db { store, options, folder }
    }

    pub fn send(&self, requests: &[Request]) -> Commit {
        self.store.write(requests).unwrap()
    }

    /// Writes requests without keys.
    pub fn commit(&self, requests: &[Vec<Write>]) -> Commit {
        self.send(&requests.iter().cloned().map(Request::from).collect::<Vec<_>>())
    }

    /// Writes one request.
    pub fn request(&self, writes: Vec<Write>) -> RequestOutcome {
        self.commit(&[writes]).requests.remove(0)
    }

    pub fn write(&self, write: Write) -> Outcome {
        self.request(vec![write]).outcomes.remove(0)
    }

    /// Writes what must go through; gives the new revision.
    pub fn rev(&self, write: Write) -> RevId {
        match self.write(write) {
            Outcome::Written { rev, .. } => rev,
            other => panic!("not written: {other:?}"),
        }
    }

    /// Sweeps so many bodies.
    pub fn reclaim(&self, rows_max: usize) -> Reclaimed {
        self.store.reclaim(PageLimits { rows_max, ..NO_LIMITS }).unwrap()
    }

    pub fn snapshot(&self) -> Snapshot<'_> {
        self.store.snapshot().unwrap()
    }

    pub fn counters(&self) -> Counters {
        self.snapshot().counters().unwrap()
    }

    /// The whole feed with all it can carry.
    pub fn feed(&self) -> Vec<Change> {
        self.snapshot().changes(&everything(), &|_| true).unwrap().changes
    }

    pub fn tree(&self, doc: &str) -> RevTree {
        self.snapshot().tree(&id(doc)).unwrap().unwrap().tree
    }

    pub fn whole_tree(&self, doc: &str) -> RevTree {
        let snapshot = self.snapshot();
        let tree = snapshot.tree(&id(doc)).unwrap().unwrap().tree;
        snapshot.with_history(&id(doc), &tree).unwrap()
    }

    pub fn ancestors(&self, doc: &str, leaf: &Leaf) -> Result<Line, StorageError> {
        self.snapshot().ancestors(&id(doc), leaf)
    }

    pub fn body_at(&self, place: BodyPlace) -> Option<Body> {
        self.snapshot().body(place).unwrap()
    }
}

pub const NO_LIMITS: PageLimits = PageLimits { rows_max: usize::MAX, bytes_max: usize::MAX, time_max: Duration::MAX };

pub fn everything() -> ReadChanges {
    ReadChanges {
        after: Sequence::ZERO,
        up_to: Sequence::MAX,
        direction: Direction::Forward,
        detail: Detail { leaves: true, bodies: true },
        limits: NO_LIMITS,
    }
}

pub fn id(text: &str) -> DocId {
    DocId::parse(text).unwrap()
}

pub fn rev(text: &str) -> RevId {
    RevId::parse(text).unwrap()
}

pub fn seq(version: u64) -> Sequence {
    Sequence::new(0, version)
}

pub fn body(json: &str) -> Body {
    scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body
}

pub fn create(doc: &str, json: &str) -> Write {
    Write::Edit(Edit::interactive(id(doc), None, false, body(json)))
}

pub fn update(doc: &str, parent: &RevId, json: &str) -> Write {
    Write::Edit(Edit::interactive(id(doc), Some(parent.clone()), false, body(json)))
}

pub fn delete(doc: &str, parent: &RevId) -> Write {
    Write::Edit(Edit::interactive(id(doc), Some(parent.clone()), true, Body::empty()))
}

pub fn path(start: u64, hashes: &[&str]) -> RevPath {
    RevPath::new(start, hashes.iter().map(|hash| RevHash::parse(hash).unwrap()).collect()).unwrap()
}

/// A live replicated revision with its ancestry, newest first.
pub fn push(doc: &str, start: u64, hashes: &[&str], json: &str) -> Write {
    Write::Edit(Edit::replicated(id(doc), path(start, hashes), false, body(json)))
}

pub fn push_deleted(doc: &str, start: u64, hashes: &[&str]) -> Write {
    Write::Edit(Edit::replicated(id(doc), path(start, hashes), true, Body::empty()))
}

pub fn leaves(tree: &RevTree) -> Vec<String> {
    tree.leaves().iter().map(|leaf| leaf.rev.to_string()).collect()
}

pub fn line(leaf: &Leaf) -> Vec<String> {
    leaf.ancestors.recent.iter().map(|ancestor| ancestor.hash.to_string()).collect()
}

/// What feeds show of a commit.
pub fn shown(changes: &[Changed]) -> Vec<Change> {
    changes.iter().cloned().map(Change::from).collect()
}

/// Sequence and id of each row.
pub fn places(changes: &[Change]) -> Vec<(u64, &str)> {
    changes.iter().map(|change| (change.seq.version, change.id.as_str())).collect()
}
