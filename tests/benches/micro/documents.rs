//! A document by itself: reading its text, hashing it, its tree and the rows it has, and looking at it for a selector.

use divan::{Bencher, black_box};
use seqtide::storage::codec::change::{self, ChangeRow};
use seqtide::storage::codec::head::{self, DocHead};
use seqtide::storage::codec::{body, keys};
use seqtide::storage::json::{Body, ScanLimits, revision_hash, scan_document};
use seqtide::storage::model::body_place::{BodyKey, BodyPlace};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::storage::model::rev_tree::RevTree;
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{Edit, LeafRev, Previous};
use seqtide::{DocView, Selector};
use seqtide_bench::documents;

const REVS_LIMIT: u32 = 1_000;

/// The text of a document as clients send it.
pub fn text() -> Vec<u8> {
    let mut request = Vec::new();
    documents::write_put("/db", documents::Stamp::of(1), &mut request);
    request.split_off(request.len() - documents::BYTES)
}

/// The same, read.
pub fn scanned() -> Body {
    scan_document(&text(), &ScanLimits::default()).expect("a document").body
}

pub fn id(number: u64) -> DocId {
    DocId::parse(&documents::id(number)).expect("an id")
}

fn rev(generation: u64) -> RevId {
    RevId::parse(&format!("{generation}-{}", documents::id(generation))).expect("a revision")
}

fn place(seq: Sequence) -> BodyPlace {
    BodyPlace::Stored { key: BodyKey { seq, ordinal: 0 }, bytes: documents::BYTES as u32 }
}

/// A tree of one branch with so many revisions.
fn tree(revisions: u64) -> RevTree {
    let mut tree = RevTree::default();
    for generation in 1..=revisions {
        let parent = (generation > 1).then(|| rev(generation - 1));
        let body = place(Sequence::new(0, generation));
        assert!(tree.extend(parent.as_ref(), rev(generation), false, body, REVS_LIMIT), "the parent is a leaf");
    }
    tree
}

#[divan::bench]
fn scan_text(bencher: Bencher) {
    let text = text();
    bencher.bench(|| scan_document(black_box(&text), &ScanLimits::default()).map(|document| document.body));
}

#[divan::bench]
fn hash_revision(bencher: Bencher) {
    let (body, parent) = (scanned(), rev(1));
    bencher.bench(|| revision_hash(black_box(&body), Some(&parent), false));
}

#[divan::bench]
fn make_edit(bencher: Bencher) {
    let (id, body) = (id(1), scanned());
    bencher.bench(|| Edit::interactive(black_box(&id).clone(), None, false, body.clone()));
}

#[divan::bench(args = [1, 10, 26])]
fn extend_tree(bencher: Bencher, revisions: u64) {
    let (tree, parent, next) = (tree(revisions), rev(revisions), rev(revisions + 1));
    let body = place(Sequence::new(0, revisions + 1));
    bencher.bench(|| {
        let mut tree = tree.clone();
        tree.extend(Some(black_box(&parent)), next.clone(), false, body, REVS_LIMIT).then_some(tree)
    });
}

fn document_head(revisions: u64) -> DocHead {
    DocHead { seq: Sequence::new(0, revisions), tree: tree(revisions), next_chunk: 0 }
}

#[divan::bench(args = [1, 10, 26])]
fn encode_head(bencher: Bencher, revisions: u64) {
    let document = document_head(revisions);
    bencher.bench(|| head::encode(black_box(&document)));
}

#[divan::bench(args = [1, 10, 26])]
fn decode_head(bencher: Bencher, revisions: u64) {
    let encoded = head::encode(&document_head(revisions));
    bencher.bench(|| head::decode(black_box(&encoded)));
}

#[divan::bench(args = [1, 10, 26])]
fn decode_head_summary(bencher: Bencher, revisions: u64) {
    let encoded = head::encode(&document_head(revisions));
    bencher.bench(|| head::decode_summary(black_box(&encoded)));
}

fn with_change(bench: impl FnOnce(&ChangeRow)) {
    let (seq, id) = (Sequence::new(0, 1), documents::id(1));
    bench(&ChangeRow {
        seq,
        id: &id,
        rev: rev(1),
        deleted: false,
        branches: 1,
        body: place(seq),
        previous: Previous::Nothing,
    });
}

#[divan::bench]
fn encode_change(bencher: Bencher) {
    with_change(|row| bencher.bench(|| change::encode(black_box(row))));
}

#[divan::bench]
fn decode_change(bencher: Bencher) {
    with_change(|row| {
        let (key, value) = (keys::seq(row.seq), change::encode(row));
        bencher.bench(|| change::decode(black_box(&key), black_box(&value)).map(|row| row.branches));
    });
}

#[divan::bench]
fn encode_body(bencher: Bencher) {
    let (id, text) = (documents::id(1), text());
    bencher.bench(|| body::encode(black_box(&id), black_box(&text)));
}

#[divan::bench]
fn decode_body(bencher: Bencher) {
    let encoded = body::encode(&documents::id(1), &text());
    bencher.bench(|| body::decode(black_box(&encoded)).map(|(id, text)| id.len() + text.len()));
}

#[divan::bench(args = [
    r#"{"type":"order"}"#,
    r#"{"type":"order","state":"paid","total":{"$gt":100}}"#,
    r#"{"customer":{"$in":["customer-04710","customer-04711"]}}"#,
    r#"{"lines":{"$elemMatch":{"sku":"B-12","n":{"$gt":0}}}}"#,
])]
fn match_selector(bencher: Bencher, selector: &str) {
    let selector = Selector::from_json(selector).expect("a selector");
    let (id, leaf, body) = (id(1), LeafRev { rev: rev(1), deleted: false }, scanned());
    assert!(selector.matches(&DocView::new(&id, &leaf, &body)), "it is about these documents");
    bencher.bench(|| selector.matches(black_box(&DocView::new(&id, &leaf, &body))));
}
