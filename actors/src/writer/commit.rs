//! A commit as a writer sees it: the requests of many, written as one.

use seqtide_storage::{Commit, Request, StorageError, Store, unwinding};

/// Writes the requests of many as one commit: [`Store::write`], with what goes before it.
pub(crate) type WriteCommit = dyn Fn(&Store, &[Request]) -> Result<Commit, StorageError> + Send + Sync;

/// What became of requests, in order: each result is that of so many of them.
pub(super) type Committed = Vec<(usize, Result<Commit, StorageError>)>;

/// Writes requests together. A damaged row fails the requests that come upon it and no others: halves are then written
/// apart, and halves of those, until they are told from the others.
pub(super) fn commit(store: &Store, requests: &[Request], write: &WriteCommit) -> Committed {
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
