//! A commit as a writer sees it: the requests of many, written as one.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use seqtide_storage::{Commit, EditKind, Request, StorageError, Store, Write, unwinding};
use tokio::sync::{Semaphore, oneshot};

/// Writes the requests of many as one commit: [`Store::write`], with what goes before it.
pub(crate) type WriteCommit = dyn Fn(&Store, &[Request]) -> Result<Commit, StorageError> + Send + Sync;

/// What became of requests, in order: each result is that of so many of them.
type Committed = Vec<(usize, Result<Commit, StorageError>)>;

/// A commit that takes longer is long: the databases of other writers of its thread are not to wait for such ones.
pub(super) const LONG: Duration = Duration::from_millis(100);

/// More replicated revisions may take long: each may join branches of a tree that has thousands of them.
const REPLICATED_FEW: usize = 50;

/// Whether requests may take long to write, though they are no more than one commit may have.
pub(super) fn may_take_long(requests: &[Request]) -> bool {
    let is_replicated =
        |write: &&Write| matches!(write, Write::Edit(edit) if matches!(edit.kind(), EditKind::Replicated { .. }));
    let replicated = requests.iter().flat_map(|request| &request.writes).filter(is_replicated);
    replicated.take(REPLICATED_FEW + 1).count() > REPLICATED_FEW
}

/// So many commits are made beside their threads at once, in the process: each has a thread, and memory for its plan.
static BESIDE: Semaphore = Semaphore::const_new(8);

/// What a commit made of its requests, and how long it took.
pub(super) struct Made {
    pub committed: Committed,
    pub took: Duration,
}

impl Made {
    /// Of so many requests, where the thread of their commit has ended without a word.
    pub fn broken(requests: usize) -> Made {
        let source = io::Error::other("the thread of a commit has ended");
        Made { committed: vec![(requests, Err(StorageError::InDoubt { source }))], took: LONG }
    }
}

/// Makes a commit here and now.
pub(super) fn made(store: &Store, requests: &[Request], write: &WriteCommit) -> Made {
    let began = Instant::now();
    let committed = commit(store, requests, write);
    Made { committed, took: began.elapsed() }
}

/// Has a commit made on a thread of its own; `None` where there is none for it.
pub(super) fn made_beside(
    store: &Arc<Store>,
    requests: &Arc<Vec<Request>>,
    write: &Arc<WriteCommit>,
) -> Option<oneshot::Receiver<Made>> {
    let permit = BESIDE.try_acquire().ok()?;
    let (tell, told) = oneshot::channel();
    let (store, requests, write) = (Arc::clone(store), Arc::clone(requests), Arc::clone(write));
    let making = move || {
        let made = made(&store, &requests, &*write);
        // Who hears of it has both alone again.
        drop((store, requests, permit));
        let _ = tell.send(made);
    };
    thread::Builder::new().name("commit".to_owned()).spawn(making).ok().map(|_| told)
}

/// Writes requests together. A damaged row fails the requests that come upon it and no others: halves are then written
/// apart, and halves of those, until they are told from the others.
fn commit(store: &Store, requests: &[Request], write: &WriteCommit) -> Committed {
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
