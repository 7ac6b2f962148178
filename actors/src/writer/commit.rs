//! A commit as a writer sees it: the requests of many, written as one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use seqtide_storage::{Commit, Request, StorageError, Store};

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

/// A panic fails the work it happened in, whose transaction is aborted as it unwinds, and nothing else.
pub(super) fn unwinding<T>(work: impl FnOnce() -> Result<T, StorageError>) -> Result<T, StorageError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
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
