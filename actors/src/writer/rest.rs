//! What a thread that commits does when it rests. Rows wait in memory that it has allocated, and the thread that puts
//! them into LMDB frees it. Allocators with a heap for each thread use that again, or give it back, when the thread
//! allocates some more: one that rests would keep what its busiest moment took.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::interval;

/// How often a thread looks whether it rests.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A thread that has made no more commits than this since it last looked has time for more.
const FEW: u32 = 100;
/// So many times it is called after a commit: rows wait for LMDB, and what is freed then is found by a later look.
const CALLS: u8 = 3;

thread_local! {
    /// Commits of this thread since it last looked.
    static COMMITS: Cell<u32> = const { Cell::new(0) };
}

/// This thread makes a commit.
pub(super) fn commits() {
    COMMITS.set(COMMITS.get().saturating_add(1));
}

/// Calls this on the thread it runs on, a few times each time that it rests after commits.
pub(super) async fn call_at_rest(at_rest: fn()) {
    let (mut looks, mut rest) = (interval(LOOK_EVERY), Rest::default());
    loop {
        looks.tick().await;
        if rest.look(COMMITS.take()) {
            at_rest();
        }
    }
}

#[derive(Default)]
struct Rest {
    calls_left: u8,
}

impl Rest {
    /// Whether it is to be called, after so many commits since the last look.
    fn look(&mut self, commits: u32) -> bool {
        if commits > 0 {
            self.calls_left = CALLS;
        }
        let calls = commits <= FEW && self.calls_left > 0;
        self.calls_left -= u8::from(calls);
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks<const N: usize>(commits: [u32; N]) -> [bool; N] {
        let mut rest = Rest::default();
        commits.map(|commits| rest.look(commits))
    }

    #[test]
    fn it_is_called_a_few_times_after_commits() {
        assert_eq!(looks([0, 1, 0, 0, 0, 0]), [false, true, true, true, false, false]);
    }

    #[test]
    fn not_while_many_are_made() {
        assert_eq!(looks([FEW + 1, FEW + 1, FEW, 0, 0, 0]), [false, false, true, true, true, false]);
    }
}
