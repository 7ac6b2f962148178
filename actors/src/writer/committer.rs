//! The threads that write: each database is pinned to one, which opens, uses and commits its transactions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use seqtide_storage::{Commit, PageLimits, Reclaimed, Request, StorageError, Store, Tended};

/// How many bodies one slice of reclaiming looks at: a few milliseconds between two commits.
const RECLAIM_ROWS: usize = 500;

/// How much of the past one slice of an index goes through, likewise.
const INDEX_SLICE: PageLimits = PageLimits { rows_max: 1_000, bytes_max: 1 << 20, time_max: Duration::from_millis(20) };

/// Work for a database. A writer has at most one of these under way.
pub(crate) enum Work {
    /// Write the requests as one commit; gives them back with what became of them.
    Commit { requests: Requests, done: Done<(Committed, Requests)> },
    /// Free some bodies that no leaf needs.
    Reclaim { done: Done<Result<Reclaimed, StorageError>> },
    /// Go on with the index of the feed.
    Index { done: Done<Result<Tended, StorageError>> },
}

/// The writes of many, request by request.
pub(crate) type Requests = Vec<Request>;

/// What became of requests, in order: each result is that of so many of them.
pub(crate) type Committed = Vec<(usize, Result<Commit, StorageError>)>;

/// Takes the answer, on the committer's thread.
pub(crate) type Done<T> = Box<dyn FnOnce(T) + Send>;

/// Writes the requests of many as one commit: [`Store::write`], unless a test stands in its way.
pub(super) trait WriteCommit:
    Fn(&Store, &[Request]) -> Result<Commit, StorageError> + Clone + Send + 'static
{
}

impl<F> WriteCommit for F where F: Fn(&Store, &[Request]) -> Result<Commit, StorageError> + Clone + Send + 'static {}

struct Job {
    store: Arc<Store>,
    work: Work,
}

/// A fixed number of committer threads.
pub(crate) struct CommitterPool {
    threads: Vec<SyncSender<Job>>,
    next: AtomicUsize,
}

/// The way to the thread a database is pinned to.
#[derive(Clone)]
pub(crate) struct Committer {
    thread: SyncSender<Job>,
}

impl CommitterPool {
    /// Starts the threads, which prepare for each commit first. `databases_max` writers may have one piece of work under
    /// way each, so a queue of that length is never full.
    pub fn start(
        threads: usize,
        databases_max: usize,
        prepare: impl Fn() + Clone + Send + 'static,
    ) -> std::io::Result<CommitterPool> {
        CommitterPool::start_with(threads, databases_max, move |store: &Store, requests: &[Request]| {
            prepare();
            store.write(requests)
        })
    }

    pub(super) fn start_with(
        threads: usize,
        databases_max: usize,
        write: impl WriteCommit,
    ) -> std::io::Result<CommitterPool> {
        let mut senders = Vec::with_capacity(threads);
        for number in 0..threads {
            let (sender, jobs) = sync_channel(databases_max + 1);
            let write = write.clone();
            thread::Builder::new().name(format!("committer-{number}")).spawn(move || run(&jobs, write))?;
            senders.push(sender);
        }
        Ok(CommitterPool { threads: senders, next: AtomicUsize::new(0) })
    }

    /// Pins a database to a thread.
    pub fn assign(&self) -> Committer {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len();
        Committer { thread: self.threads[number].clone() }
    }
}

impl Committer {
    #[cfg(test)]
    pub fn without_thread() -> Committer {
        Committer { thread: sync_channel(1).0 }
    }

    /// Hands over work; gives it back when the thread is gone or its queue is full, which a bug alone can bring about.
    pub fn ship(&self, store: &Arc<Store>, work: Work) -> Result<(), Work> {
        self.thread.try_send(Job { store: Arc::clone(store), work }).map_err(|error| match error {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => job.work,
        })
    }
}

fn run(jobs: &Receiver<Job>, write: impl WriteCommit) {
    for Job { store, work } in jobs {
        match work {
            Work::Commit { requests, done } => {
                let results = commit(&store, &requests, &write);
                drop(store);
                done((results, requests));
            }
            Work::Reclaim { done } => {
                let result = unwinding(|| store.reclaim(RECLAIM_ROWS));
                drop(store);
                done(result);
            }
            Work::Index { done } => {
                let result = unwinding(|| store.tend_feed_index(INDEX_SLICE));
                drop(store);
                done(result);
            }
        }
    }
}

/// Writes requests together. A damaged row fails the requests that come upon it and no others: halves are then written
/// apart, and halves of those, until they are told from the others.
fn commit(store: &Store, requests: &[Request], write: &impl WriteCommit) -> Committed {
    match unwinding(|| write(store, requests)) {
        Err(error) if error.is_damage() && requests.len() > 1 => {
            let (first, second) = requests.split_at(requests.len() / 2);
            let mut results = commit(store, first, write);
            results.extend(commit(store, second, write));
            results
        }
        result => vec![(requests.len(), result)],
    }
}

/// A panic fails the batch it happened in, whose transaction is aborted as it unwinds, and nothing else.
fn unwinding<T>(write: impl FnOnce() -> Result<T, StorageError>) -> Result<T, StorageError> {
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(StorageError::Panicked { what: text.unwrap_or_else(|| "a panic without a message".to_owned()) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_its_batch_and_says_why() {
        let failed: Result<(), _> = unwinding(|| panic!("page {} is upside down", 7));
        assert_eq!(failed.unwrap_err().to_string(), "writing failed: page 7 is upside down");
        assert_eq!(unwinding(|| Ok(3)).unwrap(), 3);
    }
}
