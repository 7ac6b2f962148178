//! Short slices of a processor's time for the threads that commit.
//!
//! Such a thread sleeps twice in a commit, for some 50 us each: until the disk has written, and until it has emptied
//! its cache. If another thread has got its processor meanwhile, it waits for the end of that one's slice before it
//! asks for the next, and the disk has nothing to do. One that asks for short slices has its turn sooner, and no more
//! time in all.
//!
//! Source: `sched_setattr(2)`; Linux takes `sched_runtime` for a slice since 6.12 (its commit `857b158dc5e8`). Before
//! that it means nothing to threads of the usual class.
#![allow(unsafe_code)]

use std::io;

use libc::{SCHED_FLAG_RESET_ON_FORK, SCHED_OTHER, SYS_sched_getattr, SYS_sched_setattr, sched_attr, syscall};

/// The shortest that the system gives.
const SLICE_NANOS: u64 = 100_000;

/// Stands for the thread that asks.
const THIS_THREAD: libc::pid_t = 0;

/// Asks for short slices for this thread. Threads that it starts have the usual ones.
///
/// # Errors
/// [`io::Error`] when the system does not know of them, or does not let the process ask.
pub(super) fn ask() -> io::Result<()> {
    let mut attributes = attributes()?;
    // Another class is somebody's choice.
    if i64::from(attributes.sched_policy) != i64::from(SCHED_OTHER) {
        return Ok(());
    }
    attributes.sched_runtime = SLICE_NANOS;
    attributes.sched_flags |= SCHED_FLAG_RESET_ON_FORK as u64;
    // SAFETY: it reads the structure, which says how long it is, and keeps nothing of it.
    succeeded(unsafe { syscall(SYS_sched_setattr, THIS_THREAD, &raw const attributes, 0) })
}

fn attributes() -> io::Result<sched_attr> {
    let size = size_of::<sched_attr>() as u32;
    let mut attributes = sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: it writes to the structure, no more than the size that it is given.
    succeeded(unsafe { syscall(SYS_sched_getattr, THIS_THREAD, &raw mut attributes, size, 0) })?;
    Ok(attributes)
}

fn succeeded(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use actix::System;
    use tokio::sync::oneshot;

    use super::*;
    use crate::writer::committers::Committers;

    fn slice_nanos() -> u64 {
        attributes().unwrap().sched_runtime
    }

    /// Where the system does not tell of slices it knows none.
    #[test]
    fn threads_that_commit_have_short_slices_and_those_they_start_the_usual() {
        let usual = slice_nanos();
        let expected = if usual == 0 { 0 } else { SLICE_NANOS };
        let (of_committer, of_its_child) = System::new().block_on(async {
            let committers = Committers::start(1, || {}).unwrap();
            let (tell, told) = oneshot::channel();
            committers.next().spawn_fn(|| {
                let its_child = thread::spawn(slice_nanos).join().unwrap();
                tell.send((slice_nanos(), its_child)).unwrap();
            });
            told.await.unwrap()
        });
        assert_eq!((of_committer, of_its_child), (expected, usual));
    }
}
