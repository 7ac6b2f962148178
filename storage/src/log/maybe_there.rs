//! Which keys may be among rows in memory. That one is not is told without a walk through them.

use std::hash::RandomState;
use std::sync::Arc;

use fastbloom::AtomicBloomFilter;

use super::key::Keyed;
use super::runs::Runs;

/// Among fewer rows a key is looked for as fast. Tests of few rows are to meet it.
const KEYS_MIN: usize = if cfg!(test) { 2 } else { 256 };
/// 128 KiB. Beside 80,000 ids, of which a memtable has hardly more, two in a hundred others are taken for one of them.
const BITS: usize = 1 << 20;
const HASHES: u32 = 2;

/// Every key that was added, and some that were not. Clones share what they know: a key that was added to one may be
/// said to be in the others, which costs no more than to look for it in vain.
#[derive(Clone, Default)]
pub(super) struct MaybeThere {
    /// `None` while there are few keys: any may be there.
    keys: Option<Arc<AtomicBloomFilter<RandomState>>>,
}

impl MaybeThere {
    /// Adds the keys of rows to those of the rows that were there before.
    pub fn add(&mut self, rows: &[Keyed], before: &Runs) {
        if self.keys.is_none() && before.len() + rows.len() > KEYS_MIN {
            let keys = AtomicBloomFilter::with_num_bits(BITS).hasher(RandomState::new()).hashes(HASHES);
            for keyed in before.rows() {
                keys.insert(keyed.row().key);
            }
            self.keys = Some(Arc::new(keys));
        }
        if let Some(keys) = &self.keys {
            for keyed in rows {
                keys.insert(keyed.row().key);
            }
        }
    }

    pub fn may_have(&self, key: &[u8]) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::rows::Rows;
    use crate::tables::Table;

    fn key(number: usize) -> String {
        format!("{number:08}")
    }

    fn keyed(count: usize) -> impl Iterator<Item = Keyed> {
        let mut rows = Rows::default();
        (0..count).for_each(|number| rows.delete(Table::Docs, key(number)));
        rows.into_shared().map(Keyed::from)
    }

    /// How many of 1,000 keys that were not added may be there.
    fn others(maybe: &MaybeThere) -> usize {
        (0..1_000).filter(|number| maybe.may_have(key(1_000_000 + number).as_bytes())).count()
    }

    #[test]
    fn whatever_was_added_may_be_there_and_little_else() {
        let added: Vec<Keyed> = keyed(2_500).collect();
        let (mut maybe, mut before) = (MaybeThere::default(), Runs::default());
        for (place, keyed) in added.iter().enumerate() {
            maybe.add(slice::from_ref(keyed), &before);
            before.insert(vec![keyed.clone()]);
            assert!(added[..=place].iter().rev().step_by(97).all(|keyed| maybe.may_have(keyed.row().key)), "{place}");
        }
        assert!(added.iter().all(|keyed| maybe.may_have(keyed.row().key)));
        assert!(others(&maybe) < 20, "{} of 1,000", others(&maybe));
    }

    /// Two in a hundred are expected.
    #[test]
    fn little_else_may_be_there_beside_as_many_as_a_memtable_has() {
        let (mut maybe, mut before) = (MaybeThere::default(), Runs::default());
        for keyed in keyed(80_000) {
            maybe.add(slice::from_ref(&keyed), &before);
            before.insert(vec![keyed]);
        }
        assert!(others(&maybe) < 40, "{} of 1,000", others(&maybe));
    }
}
