//! Memory that the allocator keeps, and gives back to the system.
#![allow(unsafe_code)]

use std::ffi::c_long;
use std::time::Duration;

use libmimalloc_sys::{mi_collect, mi_option_eager_commit_delay, mi_option_set_default, mi_option_t};

/// `mi_option_purge_delay`, for which the bindings have no name: it stands behind this one. Source: `mimalloc.h`, 2.
const PURGE_DELAY: mi_option_t = mi_option_eager_commit_delay + 1;

/// So long the allocator keeps what is free. What rows in memory have had for some seconds is free when LMDB has them,
/// and needed again by those that come: by default it would be given back after 10 ms, and each page would be a fault.
const KEPT: Duration = Duration::from_millis(200);

/// Has the allocator keep what is free for a while, unless its environment says how long. To be called before there
/// are other threads.
pub fn keep_free() {
    // SAFETY: it takes two numbers, of which one is an option's, and no other thread reads that meanwhile.
    unsafe { mi_option_set_default(PURGE_DELAY, c_long::try_from(KEPT.as_millis()).unwrap_or(c_long::MAX)) }
}

/// Has the allocator give back what this thread has allocated and others have freed. Takes milliseconds where it is
/// much.
pub(crate) fn give_back() {
    // SAFETY: any thread may call it at any time; it takes nothing that it could misuse.
    unsafe { mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    /// It is known by its default.
    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: it takes an option's number.
        let get = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(get(), 10);
        keep_free();
        assert_eq!(get(), 200);
    }
}
