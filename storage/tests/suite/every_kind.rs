//! A database with documents of every kind: what the tests of damaged and of old files read.

use seqtide_storage::json::{Body, ScanLimits, revision_hash, scan_document};
use seqtide_storage::model::doc_id::{DocId, LocalId};
use seqtide_storage::model::rev::{RevHash, RevId};
use seqtide_storage::model::rev_path::RevPath;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Birth, Edit, Identity, LocalEdit, Request, StorageError, Store, Write};

/// Writes that would make one document, or leave one behind, in the order they are made.
type History = Vec<Write>;

/// The `_local` documents there are.
pub const LOCALS: [&str; 3] = ["_local/checkpoint", "_local/large", "_local/empty"];

/// What such a database is born with.
pub fn birth() -> Birth {
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    Birth { identity, start: Sequence::ZERO }
}

/// Writes the documents into a store, in commits of a few documents each, so that pages are freed and used again.
///
/// # Errors
/// As [`Store::write`].
pub fn write(store: &Store) -> Result<(), StorageError> {
    let mut histories: Vec<_> = histories().into_iter().map(Vec::into_iter).collect();
    store.write(&[vec![Write::RevsLimit(900)].into()])?;
    // Round by round, so that a document's edits lie apart in the feed.
    while !histories.is_empty() {
        let round: Vec<Request> =
            histories.iter_mut().filter_map(Iterator::next).map(|write| vec![write].into()).collect();
        for commit in round.chunks(25) {
            store.write(commit)?;
        }
        histories.retain(|history| history.len() > 0);
    }
    Ok(())
}

/// Every document's id.
pub fn ids() -> Vec<DocId> {
    let mut ids: Vec<DocId> = histories().iter().flatten().filter_map(id_of).collect();
    ids.sort();
    ids.dedup();
    ids
}

fn id_of(write: &Write) -> Option<DocId> {
    match write {
        Write::Edit(edit) => Some(edit.id().clone()),
        _ => None,
    }
}

fn histories() -> Vec<History> {
    let small = (0..160).map(|n| edited(&format!("small-{n:03}"), 1 + n % 3, n % 5 == 4, 40));
    // Long ids make a deep tree of few documents.
    let long = (0..110).map(|n| edited(&format!("long-{n:03}-{}", "x".repeat(420)), 1, false, 30));
    let large = (0..10).map(|n| edited(&format!("large-{n}"), 2, false, 1500 + 2900 * n));
    let deep = (0..2).map(|n| edited(&format!("history-{n}"), 40 + 60 * n, false, 20));
    let conflicts = (0..12).map(|n| forked(&format!("conflict-{n:02}"), 2 + n % 3));
    let many_leaves = [forked("conflict-many", 90)];
    let locals = [local(LOCALS[0], 60), local(LOCALS[1], 7000), local(LOCALS[2], 0)];
    small.chain(long).chain(large).chain(deep).chain(conflicts).chain(many_leaves).chain(locals).collect()
}

/// A document edited so often, its last revision a tombstone or not.
fn edited(id: &str, edits: usize, deleted: bool, body_bytes: usize) -> History {
    let mut parent: Option<RevId> = None;
    let edit = |number: usize| {
        let deleted = deleted && number + 1 == edits;
        let body = if deleted { Body::empty() } else { body(id, number, body_bytes) };
        let generation = parent.as_ref().map_or(1, |parent| parent.generation + 1);
        let rev = RevId::new(generation, revision_hash(&body, parent.as_ref(), deleted));
        Write::Edit(Edit::interactive(doc_id(id), parent.replace(rev), deleted, body))
    };
    (0..edits).map(edit).collect()
}

/// A document with so many leaves, every third of them a tombstone.
fn forked(id: &str, leaves: usize) -> History {
    let hash = |text: String| RevHash::parse(&text).expect("a hash");
    let leaf = |number: usize| {
        let path = RevPath::new(2, vec![hash(format!("{number:032x}")), hash("root".to_owned())]).expect("a path");
        Write::Edit(Edit::replicated(doc_id(id), path, number % 3 == 2, body(id, number, 25)))
    };
    (0..leaves).map(leaf).collect()
}

fn local(id: &str, body_bytes: usize) -> History {
    let id = LocalId::parse(id).expect("a _local id").expect("a name");
    let body = Some(if body_bytes == 0 { Body::empty() } else { body(id.name(), 0, body_bytes) });
    vec![Write::Local(LocalEdit { id, base: None, checked: true, body })]
}

fn doc_id(id: &str) -> DocId {
    DocId::parse(id).expect("a document's id")
}

/// About so many bytes that differ from document to document, from edit to edit, and from place to place.
fn body(id: &str, edit: usize, bytes: usize) -> Body {
    let id = &id[..id.len().min(20)];
    let words: String = (0..).map(|at| format!("{id}.{edit}.{at} ")).take(bytes.div_ceil(id.len() + 6)).collect();
    scan_document(format!("{{\"edit\":{edit},\"text\":\"{words}\"}}").as_bytes(), &ScanLimits::default())
        .expect("JSON")
        .body
}
