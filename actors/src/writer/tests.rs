use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use ::metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use actix::Addr;
use futures_util::future::join_all;
use seqtide_storage::json::{Body, ScanLimits, scan_document};
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::rev::RevHash;
use seqtide_storage::model::rev_path::RevPath;
use seqtide_storage::{Birth, Edit, Identity, StoreOptions, Write};

use super::asker::{Answer, Unattended};
use super::queue::{COMMIT_MAX, Pushed};
use super::*;
use crate::end_reason::EndReason;

const LIMITS: WriterLimits = WriterLimits {
    queue_edits_max: 100,
    queue_bytes_max: 1 << 20,
    reclaim: ReclaimPolicy { garbage_percent: 100, floor_bytes: u64::MAX },
};

/// A store with what its writer shares with others.
struct Bench {
    _folder: tempfile::TempDir,
    store: Arc<Store>,
    live: Arc<Live>,
    sweeping: Arc<Sweeping>,
    queue: Arc<Queue>,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(LIMITS)
    }

    fn with(limits: WriterLimits) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: Default::default() };
        let options = StoreOptions { map_bytes: 64 << 20, ..StoreOptions::default() };
        let store = Store::open(folder.path(), &options, &Birth { identity, start: Sequence::ZERO }).unwrap();
        let live = Arc::new(Live::new(Sequence::ZERO, store.seq_format(), 1 << 20, Duration::ZERO, || {}));
        let (sweeping, queue) = (Arc::default(), Arc::new(Queue::new(limits)));
        Bench { _folder: folder, store: Arc::new(store), live, sweeping, queue }
    }

    fn writer(
        &self,
        write: impl Fn(&Store, &[Request]) -> Result<Commit, StorageError> + Send + Sync + 'static,
    ) -> Addr<Writer> {
        let (store, live, sweeping) = (Arc::clone(&self.store), Arc::clone(&self.live), Arc::clone(&self.sweeping));
        let background = Background { sweeping, indexing: Arc::default() };
        Writer::new(store, live, background, Arc::clone(&self.queue), LIMITS.reclaim, Arc::new(write)).start()
    }

    /// Queues a request, of which its writer is not told.
    fn queue(&self, request: Request) -> Result<oneshot::Receiver<Answer>, Error> {
        self.queue_as(Load::of(&request), request)
    }

    /// The same, whatever the request weighs.
    fn queue_as(&self, load: Load, request: Request) -> Result<oneshot::Receiver<Answer>, Error> {
        let (asker, answered) = Asker::waiting();
        self.queue.push(load, || Job { request, asker })?;
        Ok(answered)
    }

    async fn submit(&self, writer: &Addr<Writer>, request: Request) -> Result<Written, Error> {
        let (asker, answered) = Asker::waiting();
        if self.queue.push(Load::of(&request), || Job { request, asker })? == Pushed::First {
            writer.do_send(LookAround);
        }
        answered.await.unwrap().result
    }
}

fn put(id: &str, json: &str) -> Request {
    let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
    vec![Write::Edit(Edit::interactive(DocId::parse(id).unwrap(), None, false, body))].into()
}

/// What a small document weighs.
const LIGHT: Load = Load { edits: 1, bytes: 2 };

/// A write that nobody waits for.
fn unattended(id: &str) -> Job {
    let request = put(id, "{}");
    let asker = Asker::gone(Unattended::new(&DbName::parse("db").unwrap(), &request.writes[0]));
    Job { request, asker }
}

fn writes(requests: &[Request], id: &str) -> bool {
    let is_it = |write: &Write| matches!(write, Write::Edit(edit) if edit.id().as_str() == id);
    requests.iter().flat_map(|request| &request.writes).any(is_it)
}

/// Trips over a document called `wire`, after it was written and before anybody is told.
fn tripping(store: &Store, requests: &[Request]) -> Result<Commit, StorageError> {
    assert!(!writes(requests, "wire"), "over the wire");
    store.write(requests)
}

#[test]
fn a_panic_while_writing_fails_its_batch_and_the_writer_goes_on() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let writer = bench.writer(tripping);
        let failed = bench.submit(&writer, put("wire", "{}")).await.unwrap_err();
        assert!(failed.to_string().contains("over the wire"), "{failed}");
        assert_eq!(bench.submit(&writer, put("a", "{}")).await.unwrap().seq, Sequence::new(0, 1));
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

#[test]
fn a_sweep_is_seen_at_once_and_frees_all_garbage_when_its_turn_comes() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let writer = bench.writer(Store::write);
        let made = bench.submit(&writer, put("a", "{\"n\":1}")).await.unwrap();
        let Outcome::Written { rev, .. } = &made.outcomes[0] else { panic!("{made:?}") };
        let edit = Edit::interactive(DocId::parse("a").unwrap(), Some(rev.clone()), true, Body::empty());
        bench.sweeping.start_whole();
        let written = bench.queue(vec![Write::Edit(edit)].into()).unwrap();
        writer.do_send(LookAround);
        assert_eq!(bench.sweeping.now().expect("whoever asks waits for nothing").bodies_examined, 0);
        written.await.unwrap().result.unwrap();
        eventually(|| bench.sweeping.now().is_none()).await;
        assert_eq!(bench.store.snapshot().unwrap().counters().unwrap().garbage_bytes, 0);
    });
}

/// A map that is full, with a reserve that a few deletions fit into.
fn crowded(store: &Store, requests: &[Request]) -> Result<Commit, StorageError> {
    if requests.len() > 50 && requests.iter().all(Request::makes_room) {
        return Err(StorageError::MapFull { map_bytes_max: 1 });
    }
    store.write(requests)
}

#[test]
fn many_deletions_at_once_fit_into_the_reserve_a_few_at_a_time() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let writer = bench.writer(crowded);
        let mut deletions = Vec::new();
        for n in 0..90 {
            let id = format!("d{n}");
            let made = bench.submit(&writer, put(&id, "{}")).await.unwrap();
            let Outcome::Written { rev, .. } = &made.outcomes[0] else { panic!("{made:?}") };
            let deletion = Edit::interactive(DocId::parse(&id).unwrap(), Some(rev.clone()), true, Body::empty());
            deletions.push(bench.submit(&writer, vec![Write::Edit(deletion)].into()));
        }
        for deleted in join_all(deletions).await {
            deleted.expect("it makes room");
        }
    });
}

#[test]
fn a_purge_that_leaves_bodies_behind_is_followed_by_a_sweep() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let writer = bench.writer(Store::write);
        let id = DocId::parse("a").unwrap();
        let mut writes = vec![Write::RevsLimit(1)];
        let mut leaf = None;
        for n in 0..3 {
            let body = scan_document(format!("{{\"n\":{n}}}").as_bytes(), &ScanLimits::default()).unwrap().body;
            writes.push(Write::Edit(Edit::interactive(id.clone(), leaf.take(), false, body)));
            let written = bench.submit(&writer, std::mem::take(&mut writes).into()).await.unwrap();
            let Some(Outcome::Written { rev, .. }) = written.outcomes.into_iter().next_back() else { panic!("{n}") };
            leaf = Some(rev);
        }
        let purge = Write::Purge { id, revs: leaf.into_iter().collect() };
        bench.submit(&writer, vec![purge].into()).await.unwrap();
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
        let writer = bench.writer(counting);
        let written = join_all((0..100).map(|n| bench.submit(&writer, put(&format!("d{n}"), "{}")))).await;
        let mut seqs: Vec<u64> = written.into_iter().map(|written| written.unwrap().seq.version).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (1..=100).collect::<Vec<_>>());
        let commits = COMMITS.load(Ordering::Relaxed);
        assert!((1..=25).contains(&commits), "{commits} commits");
    });
}

#[test]
fn what_is_more_than_a_commit_takes_is_written_before_the_writer_finishes() {
    actix::System::new().block_on(async {
        let bench = Bench::with(WriterLimits { queue_edits_max: usize::MAX, queue_bytes_max: usize::MAX, ..LIMITS });
        let writer = bench.writer(Store::write);
        let queue = |n| bench.queue_as(COMMIT_MAX, put(&format!("d{n}"), "{}")).unwrap();
        let waiting: Vec<_> = (0..3).map(queue).collect();
        writer.send(Finish).await.unwrap();
        for (n, answer) in (1..).zip(waiting) {
            assert_eq!(answer.await.unwrap().result.unwrap().seq, Sequence::new(0, n));
        }
        assert_eq!(bench.queue.load(), Load::default());
        assert_eq!(*bench.live.ended().borrow(), None, "who had it finish says why");
    });
}

#[test]
fn a_writer_that_nobody_had_finish_ends_the_feeds_when_it_is_gone() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        drop(bench.writer(Store::write));
        let mut ended = bench.live.ended();
        assert_eq!(*ended.wait_for(Option::is_some).await.unwrap(), Some(EndReason::Shutdown));
    });
}

#[test]
fn what_nobody_waits_for_is_written_before_the_writer_finishes() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let writer = bench.writer(Store::write);
        for n in 0..10 {
            bench.queue.push(LIGHT, || unattended(&format!("d{n}"))).unwrap();
        }
        writer.send(Finish).await.unwrap();
        assert_eq!(bench.store.snapshot().unwrap().counters().unwrap().docs, 10);
        assert_eq!(bench.queue.push(LIGHT, || unattended("late")).unwrap(), Pushed::Closed);
        assert!(bench.queue.is_empty(), "it has stopped");
    });
}

#[test]
fn the_queue_is_bounded_in_edits_in_bytes_and_in_empty_requests() {
    let full = |answer: Result<_, Error>| matches!(answer, Err(Error::WriteQueueFull { edits_max: 100, .. }));
    let bench = Bench::new();
    for _ in 0..100 {
        bench.queue(Request::default()).unwrap();
    }
    assert!(full(bench.queue(Request::default())));
    assert_eq!(bench.queue.take().len(), 100);
    bench.queue(Request::default()).expect("they wait no more");
    let bench = Bench::new();
    let large = format!(r#"{{"pad": "{}"}}"#, "x".repeat(1 << 20));
    bench.queue(put("a", &large)).unwrap();
    assert!(full(bench.queue(put("b", "{}"))));
}

/// Comes upon a damaged row when the document `wire` is written.
fn damaged(store: &Store, requests: &[Request]) -> Result<Commit, StorageError> {
    if writes(requests, "wire") {
        return Err(StorageError::Missing { table: "docs", key: "wire".to_owned() });
    }
    store.write(requests)
}

#[test]
fn a_damaged_row_fails_the_request_that_needs_it_and_not_those_in_its_commit() {
    actix::System::new().block_on(async {
        let bench = Bench::new();
        let writer = bench.writer(damaged);
        let ids = ["a", "wire", "b", "c"];
        let waiting: Vec<_> = ids.iter().map(|id| bench.queue(put(id, "{}")).unwrap()).collect();
        writer.send(Finish).await.unwrap();
        let mut seqs = Vec::new();
        for (id, answer) in ids.iter().zip(waiting) {
            match answer.await.unwrap().result {
                Ok(written) => seqs.push((*id, written.seq.version)),
                Err(error) => assert!(*id == "wire" && error.to_string().contains("missing row"), "{id}: {error}"),
            }
        }
        assert_eq!(seqs, [("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(bench.live.newest(), Sequence::new(0, 3));
    });
}

/// Counts what is counted meanwhile under a name, on this thread.
fn counted(name: &'static str, meanwhile: impl FnOnce()) -> u64 {
    let counting = Counting { name, count: Arc::default() };
    ::metrics::with_local_recorder(&counting, meanwhile);
    counting.count.load(Ordering::Relaxed)
}

struct Counting {
    name: &'static str,
    count: Arc<AtomicU64>,
}

impl Recorder for Counting {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() == self.name { Counter::from_arc(Arc::clone(&self.count)) } else { Counter::noop() }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// It was lost without a word.
#[test]
fn what_the_writer_leaves_waits_no_more_and_is_told_of_and_what_comes_too_late_is_not_taken() {
    let failed = |meanwhile: &dyn Fn()| counted("seqtide_unattended_writes_failed_total", meanwhile);
    let waiting = || Job { request: put("a", "{}"), asker: Asker::waiting().0 };
    for (job, told) in [(&(|| unattended("a")) as &dyn Fn() -> Job, 1), (&waiting, 0)] {
        let bench = Bench::new();
        bench.queue.push(LIGHT, job).unwrap();
        assert_eq!(failed(&|| bench.queue.end()), told, "who waits finds out");
        assert_eq!(bench.queue.load(), Load::default());
        let late = || assert_eq!(bench.queue.push(LIGHT, job).unwrap(), Pushed::Closed, "who asks is told");
        assert_eq!(failed(&late), 0);
        assert_eq!(bench.queue.load(), Load::default());
    }
    assert_eq!(failed(&|| unattended("a").asker.tell(Err(Error::Stopped))), 1, "told once");
    let full = Queue::new(WriterLimits { queue_edits_max: 0, ..LIMITS });
    assert_eq!(failed(&|| assert!(full.push(LIGHT, || unattended("a")).is_err())), 0, "who asked is told");
}

/// There is no room at first: the first job is put back, and those that are not alike wait for each other.
#[test]
fn what_is_left_behind_a_commit_is_written_though_nobody_tells_of_it() {
    let tried = AtomicUsize::new(0);
    let full_at_first = move |store: &Store, requests: &[Request]| match tried.fetch_add(1, Ordering::Relaxed) {
        0 => Err(StorageError::MapFull { map_bytes_max: 1 }),
        _ => store.write(requests),
    };
    actix::System::new().block_on(async {
        let bench = Bench::with(WriterLimits { queue_edits_max: usize::MAX, queue_bytes_max: usize::MAX, ..LIMITS });
        let writer = bench.writer(full_at_first);
        let makes_room = || Request::from(vec![Write::Purge { id: DocId::parse("a").unwrap(), revs: Vec::new() }]);
        let mut waiting = Vec::new();
        for n in 0..5 {
            waiting.push(bench.queue_as(COMMIT_MAX, makes_room()).unwrap());
            waiting.push(bench.queue_as(COMMIT_MAX, put(&format!("d{n}"), "{}")).unwrap());
        }
        writer.do_send(LookAround);
        for answer in waiting {
            answer.await.unwrap().result.unwrap();
        }
        assert_eq!(bench.live.newest(), Sequence::new(0, 5));
    });
}

#[test]
fn whoever_asks_while_the_writer_writes_is_answered() {
    actix::System::new().block_on(async {
        let bench = Bench::with(WriterLimits { queue_edits_max: usize::MAX, ..LIMITS });
        let writer = bench.writer(Store::write);
        let ask = |thread: u64| {
            let (queue, writer) = (Arc::clone(&bench.queue), writer.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for n in 0..50 {
                    let (request, (asker, answered)) = (put(&format!("d{thread}-{n}"), "{}"), Asker::waiting());
                    if queue.push(LIGHT, || Job { request, asker }).unwrap() == Pushed::First {
                        writer.do_send(LookAround);
                    }
                    runtime.block_on(answered).unwrap().result.unwrap();
                }
            })
        };
        let threads: Vec<_> = (0..4).map(ask).collect();
        eventually(|| threads.iter().all(std::thread::JoinHandle::is_finished)).await;
        assert_eq!(bench.live.newest(), Sequence::new(0, 200));
    });
}

#[test]
fn the_writer_is_told_of_the_first_that_waits_only() {
    let bench = Bench::new();
    let queue = || bench.queue.push(LIGHT, || unattended("a")).unwrap();
    assert_eq!([queue(), queue(), queue()], [Pushed::First, Pushed::Behind, Pushed::Behind]);
    assert_eq!(bench.queue.take().len(), 3);
    assert_eq!(queue(), Pushed::First);
    let taken = bench.queue.take();
    bench.queue.put_back(taken);
    assert_eq!(queue(), Pushed::Behind, "it has put one back itself");
    bench.queue.end();
}

/// It was counted as a commit that took no time.
#[test]
fn what_changes_nothing_is_counted_as_no_commit() {
    let put_twice = || {
        actix::System::new().block_on(async {
            let bench = Bench::new();
            let writer = bench.writer(Store::write);
            bench.submit(&writer, put("a", "{}")).await.unwrap();
            let again = bench.submit(&writer, put("a", "{\"n\":1}")).await.unwrap();
            assert_eq!(again.outcomes, [Outcome::Conflict]);
        });
    };
    assert_eq!(counted("seqtide_commits_total", put_twice), 1);
}

/// So many replicated revisions are many.
const MANY: usize = 100;

/// Revisions of documents of their own, as a replicator brings them.
fn replicated(count: usize) -> Request {
    let path = |n: usize| RevPath::new(1, vec![RevHash::parse(&format!("{n:032x}")).unwrap()]).unwrap();
    let edit = |n| Edit::replicated(DocId::parse(&format!("r{n}")).unwrap(), path(n), false, Body::empty());
    (0..count).map(|n| Write::Edit(edit(n))).collect::<Vec<_>>().into()
}

/// The writers of a thread waited for each other's commits, which may take a minute where revisions are replicated.
#[actix::test]
async fn no_writer_waits_for_a_long_commit_of_another_one_of_its_thread() {
    let (slow, quick) = (Bench::new(), Bench::with(LIMITS));
    let (release, released) = mpsc::channel::<()>();
    let released = parking_lot::Mutex::new(released);
    let commits = AtomicUsize::new(0);
    let slow_writer = slow.writer(move |store, requests| {
        match commits.fetch_add(1, Ordering::Relaxed) {
            // The first takes long, which nobody could tell.
            0 => thread::sleep(LONG),
            _ => released.lock().recv_timeout(Duration::from_secs(30)).expect("the other writer goes on"),
        }
        store.write(requests)
    });
    let quick_writer = quick.writer(Store::write);
    slow.submit(&slow_writer, put("a", "{}")).await.unwrap();
    for (number, request) in [put("b", "{}"), replicated(MANY)].into_iter().enumerate() {
        let written = slow.submit(&slow_writer, request);
        let others = async {
            // When the slow one is at it.
            while !slow.queue.is_empty() {
                yield_now().await;
            }
            let done = quick.submit(&quick_writer, put(&format!("q{number}"), "{}")).await;
            release.send(()).unwrap();
            done
        };
        let (written, done) = futures_util::future::join(written, others).await;
        assert!(done.unwrap().outcomes.iter().all(Outcome::is_change));
        assert!(written.unwrap().outcomes.iter().all(Outcome::is_change));
    }
    // What it has done is seen, and it ends in order.
    assert_eq!(slow.live.newest().version, 2 + MANY as u64);
    slow_writer.send(Finish).await.unwrap();
}

#[actix::test]
async fn a_commit_beside_the_thread_is_as_any_other() {
    let bench = Bench::new();
    let (begun, begins) = mpsc::channel::<()>();
    let (release, released) = mpsc::channel::<()>();
    let released = parking_lot::Mutex::new(released);
    let writer = bench.writer(move |store, requests| {
        begun.send(()).unwrap();
        released.lock().recv_timeout(Duration::from_secs(30)).expect("it is told to go on");
        assert!(!writes(requests, "wire"), "over the wire");
        store.write(requests)
    });
    // One that panics fails, and nobody else does.
    release.send(()).unwrap();
    let mut tripped = replicated(MANY);
    tripped.writes.extend(put("wire", "{}").writes);
    let failed = bench.submit(&writer, tripped).await;
    assert!(matches!(failed, Err(Error::Storage(_))), "{failed:?}");
    begins.recv().unwrap();
    // What comes while one is under way is written behind it, and the writer ends behind both.
    let first = bench.submit(&writer, replicated(MANY));
    let others = async {
        while begins.try_recv().is_err() {
            yield_now().await;
        }
        let second = bench.queue(put("b", "{}")).unwrap();
        let finish = writer.send(Finish);
        release.send(()).unwrap();
        release.send(()).unwrap();
        (second.await.unwrap().result, finish.await)
    };
    let (first, (second, finished)) = futures_util::future::join(first, others).await;
    finished.unwrap();
    assert!(first.unwrap().seq < second.unwrap().seq);
    assert_eq!(bench.live.newest().version, MANY as u64 + 1);
    assert!(!writer.connected());
}
