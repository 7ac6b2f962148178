//! A database by itself: planning on it, commits of a thousand documents, and pages of its changes.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use seqtide::storage::model::sequence::{SeqFormat, Sequence};
use seqtide::storage::{
    Birth, Detail, Direction, Durability, Edit, Identity, PageLimits, ReadChanges, Request, Store, StoreOptions, Write,
};
use tempfile::TempDir;

use crate::documents::{id, scanned};

/// Documents of a commit, and rows of a page.
const MANY: u64 = 1_000;
/// Documents in the database whose pages are read.
const DOCUMENTS: u64 = 100_000;

/// A store that waits for no disk: what is measured is what the processor does.
fn open() -> (TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    let options = StoreOptions { durability: Durability::Relaxed, ..StoreOptions::default() };
    let store = Store::open(folder.path(), &options, &Birth { identity, start: Sequence::ZERO }).expect("a store");
    (folder, store)
}

/// A request for each new document.
fn inserts(from: u64) -> Vec<Request> {
    let body = scanned();
    let edit = |number| Edit::interactive(id(number), None, false, body.clone());
    (from..from + MANY).map(|number| vec![Write::Edit(edit(number))].into()).collect()
}

fn filled() -> (TempDir, Store) {
    let (folder, store) = open();
    for from in (0..DOCUMENTS).step_by(MANY as usize) {
        store.write(&inserts(from)).expect("a commit");
    }
    (folder, store)
}

#[divan::bench]
fn plan_edit(bencher: Bencher) {
    let (_folder, store) = filled();
    let snapshot = store.snapshot().expect("a snapshot");
    let id = id(DOCUMENTS / 2);
    let tree = snapshot.tree(&id).expect("a tree").expect("a document").tree;
    let parent = tree.winner().expect("a winner").rev.clone();
    let edit = Edit::interactive(id.clone(), Some(parent), false, scanned());
    let mut rehearsal = snapshot.rehearse(&id, std::slice::from_ref(&edit)).expect("a rehearsal");
    bencher.bench_local(|| rehearsal.try_edit(black_box(&edit)));
}

/// Plans, rows, and LMDB's part but for the disk's.
#[divan::bench(sample_count = 30, sample_size = 1)]
fn commit_a_thousand_inserts(bencher: Bencher) {
    let (_folder, store) = open();
    let mut from = 0;
    bencher
        .counter(ItemsCount::new(MANY))
        .with_inputs(|| {
            from += MANY;
            inserts(from)
        })
        .bench_local_values(|requests| store.write(&requests).expect("a commit").counters);
}

#[divan::bench(args = [false, true])]
fn page_of_a_thousand_changes(bencher: Bencher, bodies: bool) {
    let (_folder, store) = filled();
    let snapshot = store.snapshot().expect("a snapshot");
    let read = ReadChanges {
        after: Sequence::new(0, DOCUMENTS / 2),
        up_to: Sequence::MAX,
        direction: Direction::Forward,
        detail: Detail { leaves: false, bodies },
        limits: PageLimits { rows_max: MANY as usize, ..PageLimits::default() },
    };
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| {
        let page = snapshot.changes(black_box(&read), &|_| true).expect("a page");
        assert_eq!(page.changes.len() as u64, MANY);
        page
    });
}
