use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use seqtide_storage::json::{Body, ScanLimits, scan_document};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::{Birth, Edit, Identity, StoreOptions, Write};

use super::committer::CommitterPool;
use super::load::Load;
use super::queue::COMMIT_MAX;
use super::*;
use crate::feed::EndReason;

const LIMITS: WriterLimits = WriterLimits {
    queue_edits_max: 100,
    queue_bytes_max: 1 << 20,
    reclaim: ReclaimPolicy { garbage_percent: 100, floor_bytes: u64::MAX },
};

/// A writer over a new store, whose commits are written by a pool.
struct Bench {
    _folder: tempfile::TempDir,
    store: Arc<Store>,
    live: Arc<Live>,
    sweeping: Arc<Sweeping>,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: Default::default() };
        let options = StoreOptions { map_bytes: 64 << 20, ..StoreOptions::default() };
        let store = Store::open(folder.path(), &options, &Birth { identity, start: Sequence::ZERO }).unwrap();
        let live = Arc::new(Live::new(Sequence::ZERO, store.seq_format(), 1 << 20, || {}));
        Bench { _folder: folder, store: Arc::new(store), live, sweeping: Arc::default() }
    }

    fn writer(&self, pool: &CommitterPool) -> Writer {
        let (store, live, sweeping) = (Arc::clone(&self.store), Arc::clone(&self.live), Arc::clone(&self.sweeping));
        let background = Background { sweeping, indexing: Arc::default() };
        Writer::new(store, live, background, pool.assign(), LIMITS)
    }
}

fn put(id: &str, json: &str) -> Submit {
    let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
    Submit { request: vec![Write::Edit(Edit::interactive(DocId::parse(id).unwrap(), None, false, body))].into() }
}

fn enqueue(writer: &mut Writer, request: Request) -> Result<oneshot::Receiver<Result<Written, Error>>, Error> {
    let (asker, answered) = Asker::waiting();
    writer.enqueue(request, asker).map(|()| answered)
}

/// Trips over a document called `wire`, after it was written and before anybody is told.
fn tripping(store: &Store, requests: &[Request]) -> Result<Commit, StorageError> {
    let wire = |write: &Write| matches!(write, Write::Edit(edit) if edit.id().as_str() == "wire");
    assert!(!requests.iter().flat_map(|request| &request.writes).any(wire), "over the wire");
    store.write(requests)
}

#[test]
fn a_panic_while_writing_fails_its_batch_and_the_writer_goes_on() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let pool = CommitterPool::start_with(1, 1, tripping).unwrap();
        let writer = bench.writer(&pool).start();
        let failed = writer.send(put("wire", "{}")).await.unwrap().unwrap_err();
        assert!(failed.to_string().contains("over the wire"), "{failed}");
        assert_eq!(writer.send(put("a", "{}")).await.unwrap().unwrap().seq, Sequence::new(0, 1));
        assert_eq!(bench.live.newest(), Sequence::new(0, 1));
    });
}

/// Asks until it is so.
async fn eventually(so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "it never came to that");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Closed by a test for as long as no commit is to end.
static GATE_CLOSED: AtomicBool = AtomicBool::new(false);

fn waiting_at_the_gate(store: &Store, requests: &[Request]) -> Result<Commit, StorageError> {
    while GATE_CLOSED.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    store.write(requests)
}

#[test]
fn a_sweep_that_waits_behind_a_commit_is_seen_and_frees_all_garbage_then() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let pool = CommitterPool::start_with(1, 1, waiting_at_the_gate).unwrap();
        let writer = bench.writer(&pool).start();
        let made = writer.send(put("a", "{\"n\":1}")).await.unwrap().unwrap();
        let Outcome::Written { rev, .. } = &made.outcomes[0] else { panic!("{made:?}") };
        GATE_CLOSED.store(true, Ordering::Relaxed);
        let edit = Edit::interactive(DocId::parse("a").unwrap(), Some(rev.clone()), true, Body::empty());
        let written = writer.send(Submit { request: vec![Write::Edit(edit)].into() });
        writer.send(ReclaimNow).await.unwrap();
        let seen = bench.sweeping.now();
        GATE_CLOSED.store(false, Ordering::Relaxed);
        assert_eq!(seen.expect("whoever asks waits for no commit").bodies_examined, 0);
        written.await.unwrap().unwrap();
        eventually(|| bench.sweeping.now().is_none()).await;
        assert_eq!(bench.store.snapshot().unwrap().counters().unwrap().garbage_bytes, 0);
    });
}

#[test]
fn a_purge_that_leaves_bodies_behind_is_followed_by_a_sweep() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let pool = CommitterPool::start(1, 1, || {}).unwrap();
        let writer = bench.writer(&pool).start();
        let id = DocId::parse("a").unwrap();
        let mut writes = vec![Write::RevsLimit(1)];
        let mut leaf = None;
        for n in 0..3 {
            let body = scan_document(format!("{{\"n\":{n}}}").as_bytes(), &ScanLimits::default()).unwrap().body;
            writes.push(Write::Edit(Edit::interactive(id.clone(), leaf.take(), false, body)));
            let written = writer.send(Submit { request: std::mem::take(&mut writes).into() }).await.unwrap().unwrap();
            let Some(Outcome::Written { rev, .. }) = written.outcomes.into_iter().next_back() else { panic!("{n}") };
            leaf = Some(rev);
        }
        let purge = Write::Purge { id, revs: leaf.into_iter().collect() };
        writer.send(Submit { request: vec![purge].into() }).await.unwrap().unwrap();
        eventually(|| bench.store.check().unwrap().bodies == 0).await;
    });
}

static COMMITS: AtomicUsize = AtomicUsize::new(0);

fn counting(store: &Store, requests: &[Request]) -> Result<Commit, StorageError> {
    COMMITS.fetch_add(1, Ordering::Relaxed);
    store.write(requests)
}

#[test]
fn a_hundred_writers_of_one_document_each_share_commits() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let pool = CommitterPool::start_with(1, 1, counting).unwrap();
        let writer = bench.writer(&pool).start();
        let written = join_all((0..100).map(|n| writer.send(put(&format!("d{n}"), "{}")))).await;
        let mut seqs: Vec<u64> = written.into_iter().map(|written| written.unwrap().unwrap().seq.version).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (1..=100).collect::<Vec<_>>());
        let commits = COMMITS.load(Ordering::Relaxed);
        assert!((1..=25).contains(&commits), "{commits} commits");
    });
}

#[test]
fn a_writer_without_its_committer_answers_and_finishes() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let pool = CommitterPool::start_with(1, 1, |_: &Store, _: &[Request]| panic!("never")).unwrap();
        let mut writer = bench.writer(&pool);
        writer.committer = Committer::without_thread();
        // More than one commit takes: what the first leaves must not be left waiting.
        let waiting: Vec<_> = (0..3).map(|_| enqueue(&mut writer, Request::default()).unwrap()).collect();
        writer.queue.jobs.iter_mut().for_each(|job| job.load = COMMIT_MAX);
        writer.queue.load = Load { edits: 3 * COMMIT_MAX.edits, bytes: 3 * COMMIT_MAX.bytes };
        let writer = writer.start();
        writer.send(Finish).await.unwrap();
        for answer in waiting {
            assert!(matches!(answer.await.unwrap(), Err(Error::Stopped)));
        }
        let mut ended = bench.live.ended();
        assert_eq!(*ended.wait_for(Option::is_some).await.unwrap(), Some(EndReason::Shutdown), "no feed waits in vain");
    });
}

#[test]
fn what_nobody_waits_for_is_written_before_the_writer_finishes() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let pool = CommitterPool::start(1, 1, || {}).unwrap();
        let writer = bench.writer(&pool).start();
        for n in 0..10 {
            let Submit { mut request } = put(&format!("d{n}"), "{}");
            writer.send(Enqueue { write: request.writes.pop().unwrap() }).await.unwrap().unwrap();
        }
        writer.send(Finish).await.unwrap();
        assert_eq!(bench.store.snapshot().unwrap().counters().unwrap().docs, 10);
        let Submit { mut request } = put("late", "{}");
        assert!(writer.send(Enqueue { write: request.writes.pop().unwrap() }).await.is_err(), "it has stopped");
    });
}

#[test]
fn the_queue_is_bounded_in_edits_in_bytes_and_in_empty_requests() {
    let bench = Bench::new();
    let pool = CommitterPool::start(1, 1, || {}).unwrap();
    let full = |answer: Result<_, Error>| matches!(answer, Err(Error::WriteQueueFull { edits_max: 100, .. }));
    let mut writer = bench.writer(&pool);
    let _waiting: Vec<_> = (0..100).map(|_| enqueue(&mut writer, Request::default()).unwrap()).collect();
    assert!(full(enqueue(&mut writer, Request::default())));
    let mut writer = bench.writer(&pool);
    let large = format!(r#"{{"pad": "{}"}}"#, "x".repeat(1 << 20));
    let _waiting = enqueue(&mut writer, put("a", &large).request).unwrap();
    assert!(full(enqueue(&mut writer, put("b", "{}").request)));
    let gone = Asker::gone(&put("b", "{}").request.writes[0]);
    assert!(matches!(writer.enqueue(Request::default(), gone), Err(Error::WriteQueueFull { .. })), "waited for or not");
}

/// Comes upon a damaged row when the document `wire` is written.
fn damaged(store: &Store, requests: &[Request]) -> Result<Commit, StorageError> {
    let wire = |write: &Write| matches!(write, Write::Edit(edit) if edit.id().as_str() == "wire");
    if requests.iter().flat_map(|request| &request.writes).any(wire) {
        return Err(StorageError::Missing { table: "docs", key: "wire".to_owned() });
    }
    store.write(requests)
}

#[test]
fn a_damaged_row_fails_the_request_that_needs_it_and_not_those_in_its_commit() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let pool = CommitterPool::start_with(1, 1, damaged).unwrap();
        let mut writer = bench.writer(&pool);
        let ids = ["a", "wire", "b", "c"];
        // All of them wait when the first commit is shipped.
        let waiting: Vec<_> = ids.iter().map(|id| enqueue(&mut writer, put(id, "{}").request).unwrap()).collect();
        let writer = writer.start();
        writer.send(Finish).await.unwrap();
        let mut seqs = Vec::new();
        for (id, answer) in ids.iter().zip(waiting) {
            match answer.await.unwrap() {
                Ok(written) => seqs.push((*id, written.seq.version)),
                Err(error) => assert!(*id == "wire" && error.to_string().contains("missing row"), "{id}: {error}"),
            }
        }
        assert_eq!(seqs, [("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(bench.live.newest(), Sequence::new(0, 3));
    });
}
