//! How many logs of a process put rows into LMDB at once.

use std::sync::{Condvar, Mutex, PoisonError};

/// LMDB has the pages that a transaction changes in memory until it is committed: with many databases, no more of them
/// do so at once than a disk and the processors have use for.
pub static APPLYING: Permits = Permits::new(4);

/// So many permits, for whoever asks first.
#[derive(Debug)]
pub struct Permits {
    left: Mutex<usize>,
    given_back: Condvar,
}

/// One of them. It is given back when it is dropped.
#[derive(Debug)]
pub struct Permit<'a>(&'a Permits);

impl Permits {
    pub const fn new(count: usize) -> Permits {
        Permits { left: Mutex::new(count), given_back: Condvar::new() }
    }

    /// Waits until there is one.
    pub fn take(&self) -> Permit<'_> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.given_back.wait_while(left, |left| *left == 0).unwrap_or_else(PoisonError::into_inner);
        *left -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn no_more_have_a_permit_at_once_than_there_are_and_all_get_one() {
        let (permits, holders, done) = (Permits::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            for _ in 0..1000 {
                let permit = permits.take();
                let others = holders.fetch_add(1, Ordering::SeqCst);
                assert!(others < 2, "{others} have one");
                thread::yield_now();
                holders.fetch_sub(1, Ordering::SeqCst);
                drop(permit);
                done.fetch_add(1, Ordering::SeqCst);
            }
        };
        thread::scope(|scope| (0..6).for_each(|_| drop(scope.spawn(work))));
        assert_eq!(done.into_inner(), 6000);
    }
}
