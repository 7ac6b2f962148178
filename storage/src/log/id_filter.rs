//! Which documents' ids were added to a filter, and some that were not: what tells that one was not takes two bits of
//! memory, and no walk through rows.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use fastbloom::AtomicBloomFilter;

const HASHES: u32 = 2;

/// An id as all filters of the process have it: it is hashed once, however many of them are asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedId(u64);

impl From<&[u8]> for HashedId {
    fn from(id: &[u8]) -> HashedId {
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        HashedId(HASHER.hash_one(id))
    }
}

/// A filter of ids, which any thread may add to.
#[derive(Debug)]
pub(crate) struct IdFilter(AtomicBloomFilter);

impl IdFilter {
    /// An empty one of so many bits.
    pub fn new(bits: usize) -> IdFilter {
        IdFilter(AtomicBloomFilter::with_num_bits(bits).hashes(HASHES))
    }

    pub fn add(&self, id: HashedId) {
        self.0.insert_hash(id.0);
    }

    /// Whether this id may have been added. One that was not is taken for one that was where the bits of others are its
    /// own, which is rare beside few others.
    pub fn may_have(&self, id: HashedId) -> bool {
        self.0.contains_hash(id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> HashedId {
        HashedId::from(&number.to_be_bytes()[..])
    }

    #[test]
    fn whatever_was_added_is_there_and_little_else() {
        let filter = IdFilter::new(1 << 16);
        assert!(!(0..10_000).any(|number| filter.may_have(id(number))));
        (0..5_000).for_each(|number| filter.add(id(number)));
        assert!((0..5_000).all(|number| filter.may_have(id(number))));
        let others = (5_000..6_000).filter(|number| filter.may_have(id(*number))).count();
        assert!(others < 50, "{others} of 1,000, of which 20 are expected");
    }
}
