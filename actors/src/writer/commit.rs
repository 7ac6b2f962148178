//! A commit as a writer sees it: the requests of many, written as one.

use std::time::Duration;

use seqtide_storage::{Commit, EditKind, Request, StorageError, Store, Write, unwinding};

/// Writes the requests of many as one commit: [`Store::write`], with what goes before it.
pub(crate) type WriteCommit = dyn Fn(&Store, &[Request]) -> Result<Commit, StorageError> + Send + Sync;

/// What became of requests, in order: each result is that of so many of them.
pub(super) type Committed = Vec<(usize, Result<Commit, StorageError>)>;

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
