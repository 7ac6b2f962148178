//! What selectors and lists of fields take in memory, all together.

use std::sync::atomic::{AtomicUsize, Ordering};

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// About how much memory all of them take, in bytes. What is shared is counted once.
pub(crate) fn bytes_of_all() -> usize {
    BYTES.load(Ordering::Relaxed)
}

/// So many bytes of it, until this is dropped.
#[derive(Debug)]
pub(super) struct InMemory(usize);

impl InMemory {
    pub fn of(bytes: usize) -> InMemory {
        BYTES.fetch_add(bytes, Ordering::Relaxed);
        InMemory(bytes)
    }
}

impl Clone for InMemory {
    fn clone(&self) -> InMemory {
        InMemory::of(self.0)
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.0, Ordering::Relaxed);
    }
}
