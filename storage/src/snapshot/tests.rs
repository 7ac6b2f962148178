//! Rows of `by_seq` after the histories of the "Anatomy of the CouchDB changes feed". The ids are those of the vectors
//! for CouchDB RFC 003, whose commits are changed documents here.

use super::*;
use crate::Identity;
use crate::codec::meta::Counters;
use crate::model::rev::RevHash;
use crate::model::rev_path::RevPath;
use crate::model::sequence::SeqFormat;
use crate::plan::Edit;
use crate::store::{Birth, Store, StoreOptions};
use crate::view::reads;
use crate::write::Write;

struct Db {
    store: Store,
    _folder: tempfile::TempDir,
}

/// A row: version, id, winner, whether that is a tombstone, number of leaves.
type RowText = (u64, String, String, bool, u32);

fn row(version: u64, id: &str, rev: &str, deleted: bool, branches: u32) -> RowText {
    (version, id.to_owned(), rev.to_owned(), deleted, branches)
}

impl Db {
    fn starting_at(start: Sequence) -> Db {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { map_bytes: 64 << 20, ..StoreOptions::default() };
        let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Versionstamp };
        let store = Store::open(folder.path(), &options, &Birth { identity, start }).unwrap();
        Db { store, _folder: folder }
    }

    fn new() -> Db {
        Db::starting_at(Sequence::ZERO)
    }

    /// Pushes a revision with its ancestry, newest first; `-` in front makes it a tombstone.
    fn push(&self, id: &str, hashes: &str) -> Counters {
        let (deleted, hashes) = hashes.strip_prefix('-').map_or((false, hashes), |hashes| (true, hashes));
        let hashes: Vec<_> = hashes.split(' ').map(|hash| RevHash::parse(hash).unwrap()).collect();
        let path = RevPath::new(hashes.len() as u64, hashes).unwrap();
        let edit = Edit::replicated(DocId::parse(id).unwrap(), path, deleted, Body::empty());
        self.store.write(&[vec![Write::Edit(edit)].into()]).unwrap().counters
    }

    fn history_2(&self) {
        for (id, hashes) in [("a", "a"), ("a", "aa a"), ("b", "b"), ("a", "-aaa a")] {
            self.push(id, hashes);
        }
    }

    fn rows(&self) -> Vec<RowText> {
        let snapshot = self.store.snapshot().unwrap();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let rows = snapshot.view().range(Table::BySeq, all, Direction::Forward).unwrap();
        let text = |found: Result<(&[u8], &[u8]), StorageError>| {
            let (key, value) = found.unwrap();
            let ChangeRow { seq, id, rev, deleted, branches, .. } = change::decode(key, value).unwrap();
            row(seq.version, id, &rev.to_string(), deleted, branches)
        };
        rows.map(text).collect()
    }
}

fn versionstamp(seq: Sequence) -> String {
    SeqFormat::Versionstamp.plain(seq).to_string()
}

#[test]
fn f01_the_first_write_of_a_database() {
    assert_eq!(versionstamp(Db::new().push("a", "a").update_seq), "00000000000000000100000000");
}

#[test]
fn f02_the_documents_of_one_request_follow_each_other() {
    let db = Db::new();
    db.push("first", "a");
    let push = |id: &str| {
        let path = RevPath::new(1, vec![RevHash::parse("a").unwrap()]).unwrap();
        Write::Edit(Edit::replicated(DocId::parse(id).unwrap(), path, false, Body::empty()))
    };
    let commit = db.store.write(&[vec![push("z"), push("x"), push("y")].into()]).unwrap();
    let tokens: Vec<_> = commit.changes.iter().map(|change| versionstamp(change.seq)).collect();
    let versions = ["0000000000000002", "0000000000000003", "0000000000000004"];
    assert_eq!(tokens, versions.map(|version| format!("00{version}00000000")));
    assert!(tokens.is_sorted() && tokens.iter().all(|token| token.len() == 26));
    assert_eq!(commit.changes.iter().map(|change| change.id.as_str()).collect::<Vec<_>>(), ["z", "x", "y"]);
}

#[test]
fn f03_tokens_sort_as_text_past_a_byte_s_end() {
    let db = Db::starting_at(Sequence::new(0, 254));
    let tokens = ["a", "b"].map(|id| versionstamp(db.push(id, "a").update_seq));
    assert_eq!(tokens, ["0000000000000000ff00000000", "00000000000000010000000000"]);
    assert!(tokens.is_sorted());
}

#[test]
fn f04_a_later_incarnation_sorts_above_every_earlier_token() {
    let token = versionstamp(Db::starting_at(Sequence::new(1, 0)).push("a", "a").update_seq);
    assert_eq!(token, "01000000000000000100000000");
    assert!(token > versionstamp(Sequence::new(0, u64::MAX)));
}

#[test]
fn f05_an_update_leaves_no_row_behind() {
    let db = Db::new();
    for (id, hashes) in [("a", "a"), ("b", "b"), ("a", "aa a")] {
        db.push(id, hashes);
    }
    assert_eq!(db.rows(), [row(2, "b", "1-b", false, 1), row(3, "a", "2-aa", false, 1)]);
}

#[test]
fn f06_a_losing_tombstone_moves_the_row_and_only_its_tree_is_read_for_all_leaves() {
    let db = Db::new();
    db.history_2();
    assert_eq!(db.rows(), [row(3, "b", "1-b", false, 1), row(4, "a", "2-aa", false, 2)]);

    let snapshot = db.store.snapshot().unwrap();
    let page = |leaves| {
        let read = ReadChanges {
            after: Sequence::ZERO,
            up_to: Sequence::MAX,
            direction: Direction::Forward,
            detail: Detail { leaves, bodies: false },
            limits: PageLimits::default(),
        };
        reads::during(|| snapshot.changes(&read, &|_| true).unwrap().changes)
    };
    assert_eq!(page(false).1, [Table::BySeq], "the winners stand in the rows");
    let (changes, read) = page(true);
    assert_eq!(read, [Table::BySeq, Table::Docs], "one tree, that of the document with two leaves");
    let leaves: Vec<_> = changes[1].leaves.iter().map(|leaf| (leaf.rev.to_string(), leaf.deleted)).collect();
    assert_eq!(leaves, [("2-aa".to_owned(), false), ("2-aaa".to_owned(), true)]);
}

#[test]
fn f07_a_document_of_tombstones_has_one_row() {
    let db = Db::new();
    for hashes in ["a", "b a", "c a", "-d a", "-e c a", "-f b a"] {
        db.push("c", hashes);
    }
    assert_eq!(db.rows(), [row(6, "c", "3-f", true, 3)]);
}

#[test]
fn f08_a_leaf_pushed_again_takes_no_sequence() {
    let db = Db::new();
    db.history_2();
    let before = (db.rows(), db.store.snapshot().unwrap().counters().unwrap());
    assert_eq!(db.push("a", "-aaa a").update_seq, Sequence::new(0, 4));
    assert_eq!((db.rows(), db.store.snapshot().unwrap().counters().unwrap()), before);
}

#[test]
fn a_range_that_ends_where_it_begins_or_before_has_no_rows() {
    let db = Db::new();
    for id in ["a", "b", "c"] {
        db.push(id, "a");
    }
    let snapshot = db.store.snapshot().unwrap();
    let ids = |from, to, direction| {
        let rows = snapshot.view().range(Table::Docs, (from, to), direction).unwrap();
        rows.map(|row| row.unwrap().0).collect::<Vec<_>>()
    };
    let (a, b, nothing) = (&b"a"[..], &b"b"[..], &b""[..]);
    for direction in [Direction::Forward, Direction::Backward] {
        for (from, to) in [
            (Bound::Included(b), Bound::Included(a)),
            (Bound::Excluded(b), Bound::Excluded(a)),
            (Bound::Excluded(a), Bound::Included(a)),
            (Bound::Included(a), Bound::Excluded(a)),
            (Bound::Unbounded, Bound::Included(nothing)),
        ] {
            assert!(ids(from, to, direction).is_empty(), "{from:?} {to:?} {direction:?}");
        }
        assert_eq!(ids(Bound::Included(a), Bound::Included(a), direction), [a]);
        assert_eq!(ids(Bound::Included(nothing), Bound::Unbounded, direction).len(), 3);
    }
}
