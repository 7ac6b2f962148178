//! What the logs of a process share: each claims the room that it needs, and knows at once what all of them claim
//! together, so that no two count on the same.

use std::sync::atomic::{AtomicU64, Ordering};

/// What all claims of one kind come to, in bytes.
#[derive(Debug)]
pub struct Total(AtomicU64);

/// What rows in logs may need of the disk when they go to LMDB. Databases may lie on several disks: then each disk is
/// taken to have to hold all of it.
pub static DISK: Total = Total::new();
/// What rows in logs take in memory.
pub static MEMORY: Total = Total::new();

impl Total {
    pub const fn new() -> Total {
        Total(AtomicU64::new(0))
    }
}

/// One log's part of a total. It is given back when it is dropped.
#[derive(Debug)]
pub struct Claim {
    total: &'static Total,
    bytes: u64,
}

impl Claim {
    pub fn on(total: &'static Total) -> Claim {
        Claim { total, bytes: 0 }
    }

    /// Claims so many bytes in place of those claimed before; gives what all claims come to then.
    pub fn set(&mut self, bytes: usize) -> u64 {
        let (before, bytes) = (self.bytes, bytes as u64);
        self.bytes = bytes;
        // Wrapping, as the sum does: what is added may be less than nothing.
        let more = bytes.wrapping_sub(before);
        self.total.0.fetch_add(more, Ordering::SeqCst).wrapping_add(more)
    }

    /// What all claims come to.
    pub fn of_all(&self) -> u64 {
        self.total.0.load(Ordering::SeqCst)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_add_up_and_are_given_back() {
        static TOTAL: Total = Total::new();
        let (mut one, mut other) = (Claim::on(&TOTAL), Claim::on(&TOTAL));
        assert_eq!((one.set(100), other.set(20)), (100, 120));
        assert_eq!((one.set(30), one.set(30), one.set(70)), (50, 50, 90));
        assert_eq!((one.of_all(), other.of_all()), (90, 90));
        drop(one);
        assert_eq!(other.set(1), 1);
    }
}
