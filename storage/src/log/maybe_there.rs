//! Which keys may be among rows in memory. That one is not is told without a walk through them.

use std::hash::RandomState;
use std::sync::Arc;

use fastbloom::AtomicBloomFilter;
use imbl::OrdMap;

use super::key::Key;

/// Among fewer rows a key is looked for as fast. Tests of few rows are to meet it.
const KEYS_MIN: usize = if cfg!(test) { 2 } else { 256 };
/// 64 KiB. Beside 50,000 ids, of which a memtable has hardly more, three in a hundred others are taken for one of them.
const BITS: usize = 1 << 19;
const HASHES: u32 = 2;

/// Every key that was added, and some that were not. Clones share what they know: a key that was added to one may be
/// said to be in the others, which costs no more than to look for it in vain.
#[derive(Clone, Default)]
pub(super) struct MaybeThere {
    /// `None` while there are few keys: any may be there.
    keys: Option<Arc<AtomicBloomFilter<RandomState>>>,
}

impl MaybeThere {
    /// Adds a key to those of the rows that were there before.
    pub fn add<V>(&mut self, key: &Key, before: &OrdMap<Key, V>) {
        if self.keys.is_none() && before.len() >= KEYS_MIN {
            let keys = AtomicBloomFilter::with_num_bits(BITS).hasher(RandomState::new()).hashes(HASHES);
            for key in before.keys() {
                keys.insert(key.as_bytes());
            }
            self.keys = Some(Arc::new(keys));
        }
        if let Some(keys) = &self.keys {
            keys.insert(key.as_bytes());
        }
    }

    pub fn may_have(&self, key: &[u8]) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn whatever_was_added_may_be_there_and_little_else() {
        let key = |number: usize| Key::from(Bytes::from(format!("{number:08}")));
        let added: Vec<Key> = (0..2_500).map(key).collect();
        let (mut maybe, mut rows) = (MaybeThere::default(), OrdMap::new());
        for (place, key) in added.iter().enumerate() {
            maybe.add(key, &rows);
            rows.insert(key.clone(), ());
            assert!(added[..=place].iter().rev().step_by(97).all(|key| maybe.may_have(key.as_bytes())), "{place}");
        }
        assert!(added.iter().all(|key| maybe.may_have(key.as_bytes())));
        let others = (0..1_000).filter(|number| maybe.may_have(key(1_000_000 + number).as_bytes())).count();
        assert!(others < 20, "{others} of 1,000");
    }
}
