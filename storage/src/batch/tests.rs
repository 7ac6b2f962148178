//! What a write may cost, counted: the look-ups of a plan, and the rows that come of it. The ids are those of the
//! costs in CouchDB RFC 003.

use super::*;
use crate::Expected;
use crate::codec::meta::Identity;
use crate::feed_index::tests::FirstByte;
use crate::json::{ScanLimits, scan_document};
use crate::model::idempotency::{Fingerprint, IdempotencyKey};
use crate::model::rev::{RevHash, RevId};
use crate::model::rev_path::RevPath;
use crate::model::sequence::SeqFormat;
use crate::request::RequestKey;
use crate::room::Room;
use crate::snapshot::PageLimits;
use crate::store::{Birth, Store, StoreOptions};
use crate::transactions::TransactionLimits;
use crate::view::reads;

/// What a commit read and wrote.
struct Cost {
    read: Vec<Table>,
    rows: Rows,
    /// What the rows took in memory.
    memory_bytes: usize,
}

impl Cost {
    fn reads(&self, table: Table) -> usize {
        self.read.iter().filter(|read| **read == table).count()
    }

    /// Rows of a table removed, and rows written.
    fn writes(&self, table: Table) -> (usize, usize) {
        let rows: Vec<_> = self.rows.iter().filter(|row| row.table == table).collect();
        let removed = rows.iter().filter(|row| row.value.is_none()).count();
        (removed, rows.len() - removed)
    }
}

fn store(folder: &tempfile::TempDir) -> Store {
    store_with(folder, StoreOptions::default())
}

fn store_with(folder: &tempfile::TempDir, options: StoreOptions) -> Store {
    let options = StoreOptions { map_bytes: 64 << 20, ..options };
    let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
    Store::open(folder.path(), &options, &Birth { identity, start: Sequence::ZERO }).unwrap()
}

/// Writes a request as the store does, and counts.
fn write(store: &Store, request: &Request) -> (RequestOutcome, Cost) {
    let plan = |view: View<'_>| {
        let (planned, read) = reads::during(|| {
            let transactions = Transactions::new(TransactionLimits::default(), 0);
            let moment = Moment::new(1, Times::default());
            let mut batch = Batch::new(view, transactions, store.feed_keys(), moment)?;
            batch.plan(std::slice::from_ref(request))?;
            batch.finish()
        });
        let (rows, mut finished) = planned?;
        let outcome = finished.commit.requests.remove(0);
        let cost = Cost { read, rows: rows.clone(), memory_bytes: rows.memory_bytes() };
        Ok((rows, (outcome, cost)))
    };
    store.base().write(Room::Ordinary, plan, |_| {}).unwrap()
}

fn edit(id: &str, parent: Option<&RevId>, json: &str) -> Request {
    let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
    vec![Write::Edit(Edit::interactive(DocId::parse(id).unwrap(), parent.cloned(), false, body))].into()
}

fn keyed(mut request: Request, key: &str) -> Request {
    let (key, fingerprint) = (IdempotencyKey::new(key).unwrap(), Fingerprint::of_writes(&request.writes));
    request.key = Some(RequestKey { key, fingerprint, made_ids: Vec::new(), at_secs: 100 });
    request
}

fn revs_of(outcome: &RequestOutcome) -> Vec<RevId> {
    let rev_of = |outcome: &Outcome| match outcome {
        Outcome::Written { rev, .. } => rev.clone(),
        other => panic!("not written: {other:?}"),
    };
    outcome.outcomes.iter().map(rev_of).collect()
}

fn rev_of(outcome: &RequestOutcome) -> RevId {
    revs_of(outcome).remove(0)
}

#[test]
fn f09_an_insert_reads_nothing_of_by_seq_removes_nothing_and_writes_one_row() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    for id in ["a", "b"] {
        let (_, cost) = write(&store, &edit(id, None, r#"{"n":1}"#));
        assert_eq!((cost.reads(Table::BySeq), cost.writes(Table::BySeq)), (0, (0, 1)), "{id}");
        assert_eq!((cost.reads(Table::Docs), cost.writes(Table::Docs)), (1, (0, 1)), "{id}");
        assert_eq!((cost.reads(Table::Bodies), cost.writes(Table::Bodies)), (0, (0, 1)), "{id}");
        assert_eq!((cost.reads(Table::History), cost.writes(Table::History)), (0, (0, 0)), "{id}");
    }
}

#[test]
fn f10_an_update_reads_nothing_of_by_seq_removes_one_row_and_writes_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let mut rev = rev_of(&write(&store, &edit("a", None, "{}")).0);
    for n in 0..10 {
        let (outcome, cost) = write(&store, &edit("a", Some(&rev), &format!(r#"{{"n":{n}}}"#)));
        rev = rev_of(&outcome);
        assert_eq!((cost.reads(Table::BySeq), cost.writes(Table::BySeq)), (0, (1, 1)));
        assert_eq!((cost.reads(Table::Bodies), cost.writes(Table::Bodies)), (0, (0, 1)), "no old body is looked at");
    }
}

#[test]
fn a_long_history_is_read_only_where_the_revision_that_an_edit_makes_may_lie_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let line = |start: u64, revs: u64, name: &str| {
        let hashes = (0..revs).map(|n| RevId::parse(&format!("1-{name}{n}")).unwrap().hash).collect();
        let path = RevPath::new(start, hashes).unwrap();
        Request::from(vec![Write::Edit(Edit::replicated(DocId::stored("a"), path, false, Body::empty()))])
    };
    write(&store, &line(80, 40, "l"));
    write(&store, &line(40, 40, "s"));
    write(&store, &line(39, 39, "t"));
    let history_read = |parent: &str| {
        let (outcome, cost) = write(&store, &edit("a", Some(&RevId::parse(parent).unwrap()), "{}"));
        (outcome.outcomes[0].is_change(), cost.reads(Table::History) > 0)
    };
    assert_eq!(history_read("70-l10"), (false, false), "what is no leaf is a conflict whatever lies there");
    assert_eq!(history_read("80-l0"), (true, false), "it comes above all there is");
    assert_eq!(history_read("39-t0"), (true, false), "what is below the oldest of a branch is none of its revisions");
    assert_eq!(history_read("40-s0"), (true, true), "41 is the oldest of the other branch");
}

/// Otherwise they are copied as they grow, and take up to twice as much until they are in LMDB.
#[test]
fn a_commit_makes_as_much_room_as_its_rows_need() {
    let json = format!(r#"{{"text":"{}"}}"#, "x".repeat(190));
    let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
    let branch = |name: u128, revs: u64| {
        let hashes = (0..revs).map(|n| RevHash::Md5((name << 64 | u128::from(n)).to_be_bytes())).collect();
        RevPath::new(revs, hashes).unwrap()
    };
    for (docs, revs, branches) in [(1, 1, 1), (64, 1, 1), (64, 1000, 1), (16, 40, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let ids: Vec<_> = (0..docs).map(|n| DocId::stored(&format!("document-{n:016}"))).collect();
        let write_all = |what: &str, edit: &dyn Fn(usize, &DocId) -> Edit| -> Vec<RevId> {
            let edits = ids.iter().enumerate().map(|(n, id)| Write::Edit(edit(n, id)));
            let (outcome, cost) = write(&store, &edits.collect::<Vec<_>>().into());
            let (needed, made) = (cost.rows.record_bytes(), cost.memory_bytes);
            let case = format!("{what}, {docs} documents, {revs} revisions, {branches} branches");
            assert!(made <= needed * 5 / 4, "{case}: {made} for {needed} bytes");
            revs_of(&outcome)
        };
        let mut at = Vec::new();
        for name in 0..branches {
            let edit = |_, id: &DocId| Edit::replicated(id.clone(), branch(name, revs), false, body.clone());
            at = write_all("a branch", &edit);
        }
        // Until what was there before has gone to a chunk, and what came since too.
        for _ in 0..60 {
            let edit = |n, id: &DocId| Edit::interactive(id.clone(), Some(RevId::clone(&at[n])), false, body.clone());
            at = write_all("an update", &edit);
        }
    }
}

#[test]
fn a_write_without_a_key_does_not_touch_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let (_, cost) = write(&store, &edit("a", None, "{}"));
    for table in [Table::Transactions, Table::TransactionAges] {
        assert_eq!((cost.reads(table), cost.writes(table)), (0, (0, 0)));
    }
}

#[test]
fn a_key_costs_three_look_ups_and_two_rows_and_a_replay_one_look_up_and_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    for n in 0..100 {
        let request = keyed(edit(&format!("d{n}"), None, "{}"), &format!("k{n}"));
        let (_, cost) = write(&store, &request);
        assert_eq!((cost.reads(Table::Transactions), cost.writes(Table::Transactions)), (2, (0, 1)));
        assert_eq!((cost.reads(Table::TransactionAges), cost.writes(Table::TransactionAges)), (1, (0, 1)));
        let (_, cost) = write(&store, &request);
        assert_eq!((cost.reads(Table::Transactions), cost.rows.len()), (1, 0), "a replay writes nothing at all");
        assert_eq!(cost.reads(Table::Docs), 0, "nor does it look at documents");
    }
}

/// Each walked over all that LMDB had not yet taken out.
#[test]
fn a_commit_at_a_bound_does_not_pass_over_what_those_before_it_removed() {
    let folder = tempfile::tempdir().unwrap();
    let transactions = TransactionLimits { count_max: 10, ..TransactionLimits::default() };
    let store = store_with(&folder, StoreOptions { transactions, ..StoreOptions::default() });
    let passed_over = |n| {
        let request = keyed(edit(&format!("d{n}"), None, "{}"), &format!("k{n}"));
        reads::passed_over_during(|| drop(store.write(&[request]).unwrap()))
    };
    let most = (0..300).map(passed_over).max();
    assert_eq!(most, Some(0));
    assert_eq!(store.check().unwrap().transactions, 10);
}

/// Each slice began at the first of them anew.
#[test]
fn a_slice_that_removes_an_index_does_not_pass_over_what_those_before_it_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_with(&folder, StoreOptions { feed_keys: &FirstByte, ..StoreOptions::default() });
    let index_of = |fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        store.write(&[vec![Write::FeedIndex(fields)].into()]).unwrap();
    };
    let tend = |rows_max| store.tend_feed_index(PageLimits { rows_max, ..PageLimits::default() }).unwrap();
    index_of(&["a", "b"]);
    assert!(tend(1).done);
    (0..100).for_each(|n| drop(store.write(&[edit(&format!("d{n}"), None, r#"{"a":1,"b":1}"#)]).unwrap()));
    index_of(&["a"]);
    let passed_over = (0..10).map(|_| reads::passed_over_during(|| assert!(!tend(5).done))).max();
    assert_eq!(passed_over, Some(0));
    // What is given up meanwhile lies before what was removed.
    index_of(&[]);
    while !tend(5).done {}
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn an_edit_that_expects_its_document_elsewhere_keeps_its_request_from_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let edit_at = |id: &str, json: &str, at| {
        let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
        Write::Edit(Edit::interactive(DocId::parse(id).unwrap(), None, false, body).expecting(Expected::At(at)))
    };
    let (never, first) = (Sequence::ZERO, Sequence::ZERO.next());
    let both = Request::from(vec![edit_at("a", "{}", never), edit_at("b", "{}", never)]);
    let twice = Request::from(vec![edit_at("a", "{}", never), edit_at("a", "{}", never)]);
    let commit = store.write(&[twice, both.clone()]).unwrap();
    let attempts: Vec<_> = commit.requests.iter().map(|request| (request.attempt, request.outcomes.len())).collect();
    assert_eq!(attempts, [(Attempt::First, 2), (Attempt::Moved, 0)], "what a request does itself moves nothing");
    assert_eq!(commit.changes.len(), 1);
    let moved = store.write(&[keyed(both, "k")]).unwrap();
    assert_eq!((moved.requests[0].attempt, moved.changes.len()), (Attempt::Moved, 0));
    let again = keyed(vec![edit_at("a", "{}", first), edit_at("b", "{}", never)].into(), "k");
    let written = store.write(&[again]).unwrap();
    assert_eq!(written.requests[0].attempt, Attempt::First, "a request that moved leaves its key free");
    assert_eq!(written.requests[0].outcomes.len(), 2);
}

/// What was decided of an edit stood whatever had become of its document, and the rest of its request was written.
#[test]
fn what_was_decided_of_a_document_that_has_moved_keeps_its_request_from_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let id = |id| DocId::parse(id).unwrap();
    let edit = |of| Write::Edit(Edit::interactive(id(of), None, false, Body::empty()));
    let decided = |at| Write::Decided { outcome: Outcome::Conflict, expected: Some((id("a"), at)) };
    let request = |at| [vec![edit("b"), decided(at)].into()];
    store.write(&[vec![edit("a")].into()]).unwrap();
    let moved = store.write(&request(Sequence::ZERO)).unwrap();
    assert_eq!((moved.requests[0].attempt, moved.changes.len()), (Attempt::Moved, 0));
    let as_expected = store.write(&request(Sequence::ZERO.next())).unwrap();
    assert_eq!((as_expected.requests[0].attempt, as_expected.changes.len()), (Attempt::First, 1));
    assert_eq!(as_expected.requests[0].outcomes[1], Outcome::Conflict);
}

#[test]
fn an_edit_that_expects_its_base_stays_good_while_other_branches_come() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let branch = |hash: &str, base: Option<&str>| {
        let hashes = [hash, "a"].map(|hash| RevId::parse(&format!("1-{hash}")).unwrap().hash);
        let path = RevPath::new(2, hashes.to_vec()).unwrap();
        let expected = Expected::Base(base.map(|rev| RevId::parse(rev).unwrap()));
        Request::from(vec![Write::Edit(
            Edit::replicated(DocId::stored("d"), path, false, Body::empty()).expecting(expected),
        )])
    };
    let requests = [branch("b", None), branch("c", None), branch("d", Some("1-a"))];
    let commit = store.write(&requests).unwrap();
    let attempts: Vec<Attempt> = commit.requests.iter().map(|request| request.attempt).collect();
    assert_eq!(attempts, [Attempt::First, Attempt::First, Attempt::Moved]);
    assert_eq!(commit.changes[0].tree.leaves().len(), 2);
}
