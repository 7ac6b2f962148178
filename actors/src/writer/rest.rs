//! What a thread of writers does when it rests. Rows wait in memory that it has allocated, and the thread that puts
//! them into LMDB frees it. Allocators with a heap for each thread use that again, or give it back, when the thread
//! allocates some more: one that rests would keep what its busiest moment took.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::sleep;

/// How often a thread looks whether it rests.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A thread that has done no more pieces of work than this since it last looked has time for more.
const FEW: u32 = 100;
/// So many times it is called after work: rows wait for LMDB, and what is freed then is found by a later look.
const CALLS: u8 = 3;

thread_local! {
    /// Pieces of work of this thread since it last looked.
    static WORK: Cell<u32> = const { Cell::new(0) };
}

/// Counts a piece of work that a writer does on this thread.
pub(super) fn count_work() {
    WORK.set(WORK.get().saturating_add(1));
}

/// Calls this on the thread it runs on, a few times each time that it rests after it worked.
pub(super) async fn call_at_rest(at_rest: fn()) {
    let mut rest = Rest::default();
    loop {
        sleep(LOOK_EVERY).await;
        if rest.look(WORK.take()) {
            at_rest();
        }
    }
}

#[derive(Default)]
struct Rest {
    calls_left: u8,
}

impl Rest {
    /// Whether it is to be called, after so many pieces of work since the last look.
    fn look(&mut self, work: u32) -> bool {
        if work > 0 {
            self.calls_left = CALLS;
        }
        let calls = work <= FEW && self.calls_left > 0;
        self.calls_left -= u8::from(calls);
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks<const N: usize>(work: [u32; N]) -> [bool; N] {
        let mut rest = Rest::default();
        work.map(|work| rest.look(work))
    }

    #[test]
    fn it_is_called_a_few_times_after_work() {
        assert_eq!(looks([0, 1, 0, 0, 0, 0]), [false, true, true, true, false, false]);
    }

    #[test]
    fn not_while_much_is_done() {
        assert_eq!(looks([FEW + 1, FEW + 1, FEW, 0, 0, 0]), [false, false, true, true, true, false]);
    }
}
