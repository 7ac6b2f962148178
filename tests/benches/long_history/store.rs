//! Through `Store::write`, in group commits of several sizes: planning, rows and LMDB, without HTTP or actors.

use std::time::Instant;

use rand::seq::SliceRandom;
use seqtide_storage::json::{Body, ScanLimits, scan_document};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::{RevHash, RevId};
use seqtide_storage::model::rev_path::RevPath;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Birth, Edit, Identity, Outcome, Store, StoreOptions, Write};
use tempfile::TempDir;

use crate::comparison::{self, Comparison, Kind, Turn};
use crate::{DOCUMENTS, LONG, UPDATED_HERE, staggered};

/// Documents a commit holds, at most a quarter of those that there are, so that they are no neighbours; and documents
/// written a turn: fewer where each waits for the disk alone, more where they are fast.
const GROUPS: [(usize, usize); 4] = [(1, 250), (16, 1000), (64, 4000), (1000, 4000)];

/// A document, and the revision it is at.
type Doc = (DocId, Option<RevId>);

pub fn compare() -> Vec<Comparison> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut bench = Bench { store: open(&folder), ids: 0 };
    let mut long = bench.long_histories();
    let comparisons = GROUPS.map(|(group, documents)| {
        let mut fresh = Vec::new();
        comparison::compare(format!("store, {group} a commit"), |Turn { kind, renews_fresh }| {
            if renews_fresh {
                fresh = bench.new_docs(DOCUMENTS);
                bench.write(&mut fresh, 1000);
            }
            match kind {
                Kind::Insert => {
                    let mut new = bench.new_docs(documents);
                    bench.write(&mut new, group)
                }
                Kind::Fresh => bench.write(any(&mut fresh, documents), group),
                Kind::Long => bench.write(any(&mut long, documents), group),
            }
        })
    });
    bench.assert_long(&long);
    comparisons.into()
}

/// Some of the documents, at random.
fn any(docs: &mut [Doc], documents: usize) -> &mut [Doc] {
    docs.partial_shuffle(&mut rand::rng(), documents).0
}

fn open(folder: &TempDir) -> Store {
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    let birth = Birth { identity, start: Sequence::ZERO };
    Store::open(folder.path(), &StoreOptions::default(), &birth).expect("a store")
}

struct Bench {
    store: Store,
    ids: u64,
}

impl Bench {
    fn new_docs(&mut self, documents: usize) -> Vec<Doc> {
        let mut new = || {
            self.ids += 1;
            (DocId::parse(&format!("document-{:08}", self.ids)).expect("an id"), None)
        };
        (0..documents).map(|_| new()).collect()
    }

    /// Documents with 1,000 revisions; those made by updates first.
    fn long_histories(&mut self) -> Vec<Doc> {
        let mut docs = self.new_docs(DOCUMENTS);
        let (updated, replicated) = docs.split_at_mut(UPDATED_HERE);
        for _ in 0..LONG {
            self.write(updated, UPDATED_HERE);
        }
        for docs in replicated.chunks_mut(50) {
            let edit = |(id, _): &Doc| Edit::replicated(id.clone(), long_path(), false, body(0));
            self.commit(docs, docs.iter().map(edit).collect());
        }
        for later in staggered() {
            self.write(&mut docs[later], 1000);
        }
        self.assert_long(&docs);
        docs
    }

    fn assert_long(&self, docs: &[Doc]) {
        let snapshot = self.store.snapshot().expect("a snapshot");
        for (id, _) in docs {
            let found = snapshot.tree(id).expect("no error").expect("the document");
            assert_eq!(found.tree.winner().map(|leaf| leaf.branch_len() as u64), Some(LONG), "{id}");
        }
    }

    /// Writes a revision of each document, so many a commit; documents a second.
    fn write(&self, docs: &mut [Doc], group: usize) -> f64 {
        let edit = |(id, rev): &Doc| {
            let generation = rev.as_ref().map_or(0, |rev| rev.generation);
            Edit::interactive(id.clone(), rev.clone(), false, body(generation))
        };
        let edits: Vec<Vec<Edit>> = docs.chunks(group).map(|docs| docs.iter().map(edit).collect()).collect();
        let started = Instant::now();
        for (docs, edits) in docs.chunks_mut(group).zip(edits) {
            self.commit(docs, edits);
        }
        docs.len() as f64 / started.elapsed().as_secs_f64()
    }

    fn commit(&self, docs: &mut [Doc], edits: Vec<Edit>) {
        let requests: Vec<_> = edits.into_iter().map(|edit| vec![Write::Edit(edit)].into()).collect();
        let commit = self.store.write(&requests).expect("a commit");
        for ((id, at), done) in docs.iter_mut().zip(commit.requests) {
            match done.outcomes.as_slice() {
                [Outcome::Written { rev, .. }] => *at = Some(rev.clone()),
                other => panic!("{id}: {other:?}"),
            }
        }
    }
}

fn long_path() -> RevPath {
    let hashes = (0..LONG).map(|_| RevHash::Md5(rand::random())).collect();
    RevPath::new(LONG, hashes).expect("a path to the root")
}

/// About 200 bytes.
fn body(generation: u64) -> Body {
    let text = format!(r#"{{"generation":{generation},"text":"{}"}}"#, "x".repeat(170));
    scan_document(text.as_bytes(), &ScanLimits::default()).expect("a document").body
}
