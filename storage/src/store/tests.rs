use std::collections::HashSet;
use std::fs;
use std::ops::Bound;
use std::time::{Duration, Instant};

use super::*;
use crate::change::Detail;
use crate::codec::feed_index::IndexKey;
use crate::codec::history;
use crate::codec::meta::{Counters, FORMAT};
use crate::env::{Env, EnvOptions};
use crate::feed_index::ReadKeys;
use crate::json::{Body, ScanLimits, scan_document};
use crate::log::logged::meanwhile;
use crate::model::doc_id::{DocId, LocalId};
use crate::model::idempotency::{Fingerprint, IdempotencyKey};
use crate::model::rev::{RevHash, RevId};
use crate::model::rev_path::RevPath;
use crate::plan::Edit;
use crate::range::Direction;
use crate::request::RequestKey;
use crate::snapshot::{PageLimits, ReadChanges, ReadDocs};
use crate::tables::{META_FEED_INDEX, META_FORMAT, META_LOG, META_REVS_LIMIT};
use crate::view::reads;
use crate::{LocalEdit, Rehearsed, Write, codec::keys};

fn new_store(folder: &Path) -> Store {
    new_store_with(folder, StoreOptions::default())
}

fn new_store_with(folder: &Path, options: StoreOptions) -> Store {
    let options = StoreOptions { map_bytes: 64 << 20, ..options };
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    Store::open(folder, &options, &Birth { identity, start: Sequence::ZERO }).unwrap()
}

fn body(json: &str) -> Body {
    scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body
}

fn doc() -> DocId {
    DocId::stored("a")
}

fn local() -> LocalId {
    LocalId::parse("_local/x").unwrap().unwrap()
}

/// Puts the next revision on the document.
fn edit(store: &Store) -> Result<Commit, StorageError> {
    edit_of(store, doc())
}

fn edit_of(store: &Store, id: DocId) -> Result<Commit, StorageError> {
    let parent = store.snapshot()?.tree(&id)?.map(|found| found.tree.leaves()[0].rev.clone());
    edit_on(store, id, parent)
}

fn edit_on(store: &Store, id: DocId, parent: Option<RevId>) -> Result<Commit, StorageError> {
    store.write(&[vec![Write::Edit(Edit::interactive(id, parent, false, body(r#"{"n":1}"#)))].into()])
}

/// A store with a document of 50 revisions and a local document.
fn filled(folder: &Path) -> Store {
    let store = new_store(folder);
    for _ in 0..50 {
        edit(&store).unwrap();
    }
    let edit = LocalEdit { id: local(), base: None, checked: true, body: Some(Body::empty()) };
    store.write(&[vec![Write::Local(edit)].into()]).unwrap();
    store
}

/// Puts a row as it should not be; `None` takes it away.
pub(crate) fn damage(store: &Store, table: Table, key: &[u8], value: Option<&[u8]>) {
    let plan = |_: View<'_>| {
        let mut rows = Rows::default();
        rows.set(table, key, value);
        Ok((rows, ()))
    };
    store.base().write(Room::Ordinary, plan, |()| {}).unwrap();
}

/// Reads, checks and writes everything; gives the errors' texts.
fn complaints(store: &Store) -> Vec<String> {
    let limits = PageLimits::default();
    let detail = Detail { leaves: true, bodies: true };
    let (after, up_to, direction) = (Sequence::ZERO, Sequence::MAX, Direction::Backward);
    let changes = ReadChanges { after, up_to, direction, detail, limits };
    let docs = ReadDocs { from: Bound::Unbounded, to: Bound::Unbounded, direction, detail, limits };
    let results = {
        let read = store.snapshot().unwrap();
        let whole = |tree| read.with_history(&doc(), &tree);
        [
            read.counters().map(drop),
            read.revs_limit().map(drop),
            read.rows_after(Sequence::ZERO).map(drop),
            read.last_row_seq().map(drop),
            read.tree(&doc()).and_then(|found| found.map(|found| whole(found.tree)).transpose()).map(drop),
            read.summary(&doc()).map(drop),
            read.local(&local()).map(drop),
            read.changes(&changes, &|_| true).map(drop),
            read.changes_of_shown(&HashSet::from([doc()]), &changes, |change| Ok(Some(change))).map(drop),
            read.docs(&docs).map(drop),
            read.count_docs(&docs.from, &docs.to, 9).map(drop),
        ]
    };
    // Housekeeping passes damaged rows over; a check names them.
    let found = store.check().unwrap().problems;
    let writes = [store.reclaim(limits).map(drop), edit(store).map(drop), edit_on(store, doc(), None).map(drop)];
    let failed = results.into_iter().chain(writes).filter_map(Result::err).map(|error| error.to_string());
    failed.chain(found).collect()
}

#[test]
fn a_sound_store_has_no_complaints() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(complaints(&filled(folder.path())), Vec::<String>::new());
}

/// A row, what is put there, and what is said of it.
type Case<'a> = (Table, &'a [u8], Option<&'a [u8]>, &'a str);

#[test]
fn damaged_rows_are_errors_that_name_table_and_key() {
    let here = Sequence::new(0, 50);
    let body_key = keys::body(BodyKey { seq: here, ordinal: 0 });
    let chunk_key = keys::history(&doc(), 0);
    let short_chunk = history::encode(&crate::model::rev_tree::Line::default());
    let cases: [Case<'_>; 14] = [
        (Table::Docs, b"a", Some(b""), r#"table docs, key "a""#),
        (Table::Docs, b"a", Some(b"\xff123"), r#"docs, key "a": unknown format tag"#),
        (Table::Docs, b"\xff", Some(b"\x01"), "docs, key ff: text is not UTF-8"),
        (Table::BySeq, &keys::seq(here), Some(b"\x01"), "table by_seq, key 00000000000000003200000000"),
        (Table::BySeq, &keys::seq(here), None, "missing row in table by_seq"),
        (Table::BySeq, b"\xff", Some(b"\x01"), "by_seq, key ff: key is not 13 bytes"),
        (Table::Bodies, &body_key, Some(b"\x01\x01anything"), "a body that is no object"),
        (Table::Bodies, b"\xff", Some(b"\x01\x01a{}"), "table bodies, key ff"),
        (Table::History, &chunk_key, None, "missing row in table history"),
        (Table::History, &chunk_key, Some(&short_chunk), r#"docs, key "a": fewer ancestors"#),
        (Table::History, &chunk_key, Some(b"\x01\xff"), "history, key 6100000000: unknown revision flags"),
        (Table::Local, b"x", Some(b"\x01\xff"), r#"local, key "x""#),
        (Table::Meta, META_COUNTERS, Some(b"\x01"), r#"meta, key "counters""#),
        (Table::Meta, META_REVS_LIMIT, None, r#"missing row in table meta, key "revs_limit""#),
    ];
    for (table, key, value, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let store = filled(folder.path());
        damage(&store, table, key, value);
        let complaints = complaints(&store);
        assert!(complaints.iter().any(|text| text.contains(expected)), "{expected}: {complaints:?}");
    }
}

#[test]
fn a_damaged_count_of_rows_neither_hangs_nor_panics() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    edit(&store).unwrap();
    damage(&store, Table::Blocks, &keys::number(0), None);
    damage(
        &store,
        Table::Meta,
        META_COUNTERS,
        Some(&meta::encode_counters(&Counters {
            update_seq: Sequence::new(0, 5000),
            ..store.snapshot().unwrap().counters().unwrap()
        })),
    );
    store.close().unwrap();
    let store = new_store(folder.path());
    let other = Edit::interactive(DocId::stored("b"), None, false, Body::empty());
    store.write(&[vec![Write::Edit(other)].into()]).unwrap();
    edit(&store).unwrap();
    damage(&store, Table::Blocks, &keys::number(u64::MAX), Some(&meta::encode_number(1)));
    store.close().unwrap();
    let store = new_store(folder.path());
    let before = store.snapshot().unwrap();
    assert_eq!(before.rows_after(Sequence::ZERO).unwrap(), 2);
    // Who sees another state than is summed in memory sums what is stored.
    std::thread::scope(|scope| scope.spawn(|| edit(&store).map(drop)).join().unwrap().unwrap());
    let stored = before.rows_after(Sequence::ZERO).unwrap_err();
    assert!(stored.to_string().contains("table blocks, key ffffffffffffffff"), "{stored}");
}

/// Nothing of the database could be read.
#[test]
fn a_damaged_count_of_rows_costs_no_document() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    edit(&store).unwrap();
    damage(&store, Table::Blocks, &keys::number(0), Some(b"\xff"));
    let reopen = |store: Store| {
        store.close().unwrap();
        let store =
            new_store_with(folder.path(), StoreOptions { verify_at_open_bytes_max: 0, ..StoreOptions::default() });
        assert!(store.snapshot().unwrap().tree(&doc()).unwrap().is_some());
        store
    };
    let store = reopen(store);
    assert_eq!(store.snapshot().unwrap().rows_after(Sequence::ZERO).unwrap(), 1);
    assert!(edit_of(&store, DocId::stored("b")).unwrap_err().is_damage_of(Table::Blocks), "one that needs it");
    // Where they cannot be counted either, that is told to who asks for their number.
    damage(&store, Table::BySeq, b"\xff", Some(b"\x01"));
    let store = reopen(store);
    edit(&store).unwrap();
    assert!(store.snapshot().unwrap().rows_after(Sequence::ZERO).unwrap_err().is_damage_of(Table::BySeq));
}

/// It kept all records behind it for good.
#[test]
fn a_damaged_row_of_the_age_order_keeps_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let transactions = TransactionLimits { count_max: 2, ..TransactionLimits::default() };
    let store = new_store_with(folder.path(), StoreOptions { transactions, ..StoreOptions::default() });
    let send = |name: &str| {
        let edit = Write::Edit(Edit::interactive(DocId::stored(name), None, false, Body::empty()));
        let key = RequestKey {
            key: IdempotencyKey::new(name).unwrap(),
            fingerprint: Fingerprint([0; 16]),
            made_ids: Vec::new(),
            at_secs: 0,
        };
        store.write(&[Request { writes: vec![edit], key: Some(key.clone()) }]).unwrap();
        key
    };
    let keys = ["a", "b", "c"].map(|name| {
        let key = send(name);
        damage(&store, Table::TransactionAges, &keys::number(0), Some(b"\xff"));
        key
    });
    let is_kept = |key: &RequestKey| store.snapshot().unwrap().answer(key).unwrap().is_some();
    assert_eq!(keys.each_ref().map(is_kept), [true, false, true], "the damaged one stays and counts");
}

/// The next one went on in the middle, and took what it came to for all there is.
#[test]
fn a_sweep_after_one_that_failed_begins_at_the_front() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    // Garbage behind it keeps the sweep from being over early.
    edit_of(&store, DocId::stored("a")).unwrap();
    edit_of(&store, DocId::stored("b")).unwrap();
    edit_of(&store, DocId::stored("b")).unwrap();
    let slice = PageLimits { rows_max: 1, ..PageLimits::default() };
    assert_eq!(store.reclaim(slice).unwrap().bytes, 0, "it is needed, until there is a newer one");
    edit_of(&store, DocId::stored("a")).unwrap();
    let counters = || store.snapshot().unwrap().counters().unwrap();
    let sound = meta::encode_counters(&counters());
    damage(&store, Table::Meta, META_COUNTERS, Some(b"\x01"));
    store.reclaim(slice).unwrap_err();
    damage(&store, Table::Meta, META_COUNTERS, Some(&sound));
    while !store.reclaim(slice).unwrap().swept {}
    assert_eq!(counters().garbage_bytes, 0);
}

/// Each of its bodies was passed over without being counted.
#[test]
fn a_slice_ends_among_the_bodies_of_a_damaged_document() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    (0..5).for_each(|_| edit_of(&store, DocId::stored("a")).map(drop).unwrap());
    damage(&store, Table::Docs, b"a", Some(b"\xff"));
    let slice = PageLimits { rows_max: 2, ..PageLimits::default() };
    let examined = [(); 3].map(|()| store.reclaim(slice).unwrap().examined);
    assert_eq!(examined, [2, 2, 1]);
}

/// It was read once a body.
#[test]
fn a_sweep_reads_a_document_of_many_leaves_once() {
    const LEAVES: u32 = 2000;
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    let root = |number: u32| {
        let path = RevPath::new(1, vec![RevHash::Md5(u128::from(number).to_be_bytes())]).unwrap();
        Write::Edit(Edit::replicated(doc(), path, false, body(r#"{"n":1}"#)))
    };
    store.write(&[(0..LEAVES).map(root).collect::<Vec<_>>().into()]).unwrap();
    (0..2).for_each(|_| drop(edit_of(&store, DocId::stored("b")).unwrap()));
    let limits = PageLimits { rows_max: usize::MAX, bytes_max: usize::MAX, time_max: Duration::MAX };
    let (reclaimed, read) = reads::during(|| store.reclaim(limits).unwrap());
    assert_eq!((reclaimed.examined, reclaimed.swept, reclaimed.bytes), (u64::from(LEAVES) + 2, true, 7));
    assert_eq!(read.iter().filter(|table| **table == Table::Docs).count(), 2);
}

/// The time was looked at every 64 bodies, however long their documents took to be read.
#[test]
fn a_sweep_looks_at_the_clock_with_each_document() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    ["a", "b", "c", "c"].into_iter().for_each(|id| drop(edit_of(&store, DocId::stored(id)).unwrap()));
    let slice = PageLimits { time_max: Duration::ZERO, ..PageLimits::default() };
    let examined = [(); 3].map(|()| store.reclaim(slice).unwrap().examined);
    assert_eq!(examined, [1, 1, 1]);
}

/// What did not fit was told as used.
#[test]
fn what_was_not_written_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { map_bytes_max: 16 << 20, durability: Durability::Relaxed, ..StoreOptions::default() };
    let store = new_store_with(folder.path(), options);
    let large = body(&format!(r#"{{"pad":"{}"}}"#, "x".repeat(100_000)));
    for n in 0.. {
        let before = store.gauge().used_bytes;
        let edit = Edit::interactive(DocId::stored(&n.to_string()), None, false, large.clone());
        if let Err(error) = store.write(&[vec![Write::Edit(edit)].into()]) {
            assert!(matches!(error, StorageError::MapFull { .. }), "{error}");
            assert_eq!(store.gauge().used_bytes, before);
            break;
        }
    }
}

#[test]
fn a_newer_format_is_refused_and_the_folder_can_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    damage(&store, Table::Meta, META_FORMAT, Some(&meta::encode_number(FORMAT + 1)));
    let birth = Birth { identity: *store.identity(), start: Sequence::ZERO };
    store.close().unwrap();
    for _ in 0..2 {
        let opened = Store::open(folder.path(), &StoreOptions::default(), &birth).map(drop);
        assert!(matches!(opened, Err(StorageError::NewerFormat { found: 6, known: 5, .. })), "{opened:?}");
    }
    let checked = Store::check_folder(folder.path(), &NoKeys);
    assert!(matches!(checked, Err(StorageError::NewerFormat { found: 6, known: 5, .. })), "{checked:?}");
}

/// Beside a server: one file of the log is read before it is full, the other after it was begun.
#[test]
fn a_log_that_went_on_while_it_was_read_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let [tables, first, second] = ["data.mdb", "log-0", "log-1"].map(|name| folder.path().join(name));
    let store = new_store(folder.path());
    // The first commit goes to LMDB by itself, the second to the log.
    edit(&store).unwrap();
    let before = fs::read(&tables).unwrap();
    edit(&store).unwrap();
    let begun = fs::read(&first).unwrap();
    while !second.exists() {
        edit(&store).unwrap();
    }
    drop(store);
    fs::write(&tables, before).unwrap();
    let [full, next] = [&first, &second].map(|path| fs::read(path).unwrap());
    fs::write(&first, begun).unwrap();
    fs::remove_file(&second).unwrap();
    meanwhile::set(move || {
        fs::write(&first, &full).unwrap();
        fs::write(&second, &next).unwrap();
    });
    let report = Store::check_folder(folder.path(), &NoKeys).unwrap();
    assert!(report.is_clean() && report.docs == 1, "{report:?}");
}

/// Without the row that says how far the tables have come, nothing of the log is laid over them; they are read.
#[test]
fn a_damaged_row_of_how_far_the_tables_have_come_costs_what_is_in_the_log_alone() {
    /// The row's key, and the tag of what is sealed behind it.
    const ROW: &[u8] = b"log\x02";
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path());
    let birth = Birth { identity: *store.identity(), start: Sequence::ZERO };
    store.close().unwrap();
    let file = folder.path().join("data.mdb");
    let sound = fs::read(&file).unwrap();
    let mut flipped = sound.clone();
    for at in (0..sound.len() - ROW.len()).filter(|at| sound[*at..].starts_with(ROW)) {
        flipped[at + ROW.len()] ^= 1;
    }
    assert_ne!(sound, flipped);
    let malformed = |_: View<'_>| {
        let mut rows = Rows::default();
        rows.put(Table::Meta, META_LOG, b"\xff");
        Ok((rows, ()))
    };
    let StoreOptions { map_bytes, map_bytes_max, readers_max, durability, tell, .. } = StoreOptions::default();
    let env = Env::open(folder.path(), EnvOptions { map_bytes, map_bytes_max, readers_max, durability, tell }).unwrap();
    env.write(Room::Reserve, malformed, |()| {}).unwrap();
    env.close();
    for bytes in [fs::read(&file).unwrap(), flipped] {
        fs::write(&file, bytes).unwrap();
        let store = Store::open(folder.path(), &StoreOptions::default(), &birth).unwrap();
        let damages: Vec<String> = store.damages().iter().map(ToString::to_string).collect();
        assert!(damages.iter().any(|damage| damage.contains("the log alone are lost")), "{damages:?}");
        assert!(store.snapshot().unwrap().tree(&doc()).unwrap().is_some());
        assert!(matches!(edit(&store), Err(StorageError::ReadOnly { .. })));
        let report = Store::check_folder(folder.path(), &NoKeys).unwrap();
        assert!(
            report.docs == 1 && report.problems.iter().any(|problem| problem.contains("which records the tables have")),
            "{report:?}"
        );
    }
}

/// Keys that are made in another way.
#[derive(Debug)]
struct OtherKeys;

impl FeedKeys for OtherKeys {
    fn version(&self) -> u64 {
        9
    }

    fn reader(&self, fields: &[&str]) -> ReadKeys {
        NoKeys.reader(fields)
    }
}

/// As on a full disk: what the opening is to write comes before the first write, and nothing is written without it.
#[test]
fn what_cannot_be_written_at_opening_comes_before_the_first_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    store.write(&[vec![Write::FeedIndex(vec!["a".to_owned()])].into()]).unwrap();
    edit(&store).unwrap();
    let birth = Birth { identity: *store.identity(), start: Sequence::ZERO };
    drop(store);
    // No commit fits into this map.
    let full = StoreOptions { map_bytes: 4096, map_bytes_max: 4096, feed_keys: &OtherKeys, ..StoreOptions::default() };
    let store = Store::open(folder.path(), &full, &birth).unwrap();
    assert!(matches!(store.raise_incarnation(3), Err(StorageError::MapFull { .. })));
    assert!(store.snapshot().unwrap().tree(&doc()).unwrap().is_some());
    assert!(matches!(edit(&store), Err(StorageError::MapFull { .. })));
    let base = store.base().read().unwrap().view().feed_index().unwrap().unwrap().keys_version;
    assert_eq!(base, 0, "the index is of the keys it was made with");
    drop(store);

    let room = StoreOptions { map_bytes: 64 << 20, feed_keys: &OtherKeys, ..StoreOptions::default() };
    let store = Store::open(folder.path(), &room, &birth).unwrap();
    assert_eq!(store.base().read().unwrap().view().feed_index().unwrap().unwrap().keys_version, 9);
    store.raise_incarnation(3).unwrap();
    assert_eq!(edit(&store).unwrap().counters.update_seq.incarnation, 3);
}

#[test]
fn what_a_later_commit_makes_up_for_is_given_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = new_store(folder.path());
    store.write(&[vec![Write::FeedIndex(vec!["a".to_owned()])].into()]).unwrap();
    edit(&store).unwrap();
    assert_eq!(store.take_made_up(), None, "the opening has written it");
    let mut given_after = |incarnation| {
        // As if there had been no room for it.
        *store.due.lock() = Some(Due { incarnation });
        store.write(&[vec![Write::RevsLimit(10)].into()]).unwrap();
        let given = store.take_made_up();
        assert_eq!(store.take_made_up(), None);
        store.feed_keys = &OtherKeys;
        given
    };
    let made_up = |incarnation, reindex| Some(MadeUp { update_seq: Sequence::new(incarnation, 1), reindex });
    assert_eq!(given_after(3), made_up(3, false));
    assert_eq!(given_after(4), made_up(4, true));
    assert_eq!(given_after(4), made_up(4, false));
}

#[test]
fn a_commit_is_told_before_the_next_one_is_planned() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    let log = Mutex::new(Vec::new());
    let tell = |event: &'static str| log.lock().push(event);
    let write = || {
        let plan = |_: View<'_>| {
            tell("planned");
            let mut rows = Rows::default();
            rows.put(Table::Meta, *b"any", meta::encode_number(1));
            Ok((rows, ()))
        };
        let committed = |_: &()| {
            // A write that does not wait has the time to be planned in between.
            std::thread::sleep(std::time::Duration::from_millis(2));
            tell("told");
        };
        store.base().write(Room::Ordinary, plan, committed).unwrap();
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| (0..10).for_each(|_| write())))));
    let log = log.into_inner();
    assert!(log.len() == 80 && log.chunks(2).all(|pair| pair == ["planned", "told"]), "{log:?}");
}

#[test]
fn a_damaged_definition_of_the_feed_s_index_costs_the_index_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    let index = |store: &Store| store.write(&[vec![Write::FeedIndex(vec!["a".to_owned()])].into()]).unwrap();
    index(&store);
    edit(&store).unwrap();
    damage(&store, Table::Meta, META_FEED_INDEX, Some(b"\xff"));
    damage(&store, Table::FeedIndex, &IndexKey { field: 7, key: 1, seq: Sequence::ZERO }.to_bytes(), Some(b"\x01"));
    store.close().unwrap();
    let store = new_store(folder.path());
    let status = |store: &Store| store.snapshot().unwrap().feed_index().unwrap();
    assert_eq!((status(&store).fields.len(), status(&store).untended), (0, true));
    index(&store);
    let found = store.base().read().unwrap().view().feed_index().unwrap().unwrap();
    assert_eq!(found.fields[0].number, 8, "no row of before is taken for one of its own");
    while status(&store).untended {
        store.tend_feed_index(PageLimits::default()).unwrap();
    }
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn many_edits_of_one_document_do_not_each_take_the_time_of_all_its_leaves() {
    /// Loose: what looks at all leaves for each leaf that there is takes minutes here.
    const DEADLINE: Duration = Duration::from_secs(20);
    const PATHS: u32 = 3000;
    let hash = |number: u32| RevHash::Md5(u128::from(number).to_be_bytes());
    let folder = tempfile::tempdir().unwrap();
    let store = new_store(folder.path());
    let started = Instant::now();
    let write = |edits: &dyn Fn(u32) -> Edit| {
        store.write(&[(0..PATHS).map(edits).map(Write::Edit).collect::<Vec<_>>().into()]).unwrap();
        store.snapshot().unwrap().tree(&doc()).unwrap().unwrap().tree.leaves().len() as u32
    };
    // Paths as hashes, newest first.
    let push = |path_of: &dyn Fn(u32) -> Vec<RevHash>| {
        let path_of = |n| RevPath::new(path_of(n).len() as u64, path_of(n)).unwrap();
        write(&|n| Edit::replicated(doc(), path_of(n), false, body(r#"{"n":1}"#)))
    };
    assert_eq!(push(&|n| vec![hash(n)]), PATHS, "roots");
    edit(&store).unwrap();
    assert_eq!(
        push(&|n| vec![hash(PATHS + n), hash(n)]),
        PATHS + 1,
        "each goes on, and the winner has gone on already"
    );
    assert_eq!(push(&|n| vec![hash(2 * PATHS + n), hash(0)]), 2 * PATHS + 1, "branches of one root");
    assert_eq!(push(&|n| vec![hash(2 * PATHS + n), hash(0)]), 2 * PATHS + 1, "known");
    let branch = |n| Some(RevId::new(2, hash(2 * PATHS + n)));
    assert_eq!(write(&|n| Edit::interactive(doc(), branch(n), true, body("{}"))), 2 * PATHS + 1, "deleted");
    // Who is asked before anything is written may refuse all of them, or none.
    let root = |n| Edit::replicated(doc(), RevPath::new(1, vec![hash(n)]).unwrap(), false, body("{}"));
    let roots: Vec<Edit> = (3 * PATHS..4 * PATHS).map(root).collect();
    for makes in [false, true] {
        let mut rehearsal = store.snapshot().unwrap().rehearse(&doc(), &roots).unwrap();
        for edit in &roots {
            assert_eq!(rehearsal.try_edit(edit), Rehearsed::NewRev { base: None });
            if makes {
                rehearsal.make(edit);
            }
        }
    }
    assert!(started.elapsed() < DEADLINE);
    assert_eq!(complaints(&store), Vec::<String>::new());
}
