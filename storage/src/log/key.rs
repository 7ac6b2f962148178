//! Keys of rows in memory.

use std::cmp::Ordering;

use bytes::Bytes;
use equivalent::{Comparable, Equivalent};

/// A key with its first bytes at hand. Most keys differ in them: then none but the map's own memory is looked at.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    head: u128,
    bytes: Bytes,
}

/// A key that is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'k> {
    head: u128,
    bytes: &'k [u8],
}

impl Key {
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn sought(&self) -> Sought<'_> {
        Sought { head: self.head, bytes: &self.bytes }
    }
}

impl From<Bytes> for Key {
    fn from(bytes: Bytes) -> Key {
        Key { head: head_of(&bytes), bytes }
    }
}

impl<'k> From<&'k [u8]> for Sought<'k> {
    fn from(bytes: &'k [u8]) -> Sought<'k> {
        Sought { head: head_of(bytes), bytes }
    }
}

/// The first bytes of a key as a number: a shorter key ends in zeros, which come before whatever goes on.
fn head_of(bytes: &[u8]) -> u128 {
    let mut head = [0; 16];
    let length = bytes.len().min(head.len());
    head[..length].copy_from_slice(&bytes[..length]);
    u128::from_be_bytes(head)
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.sought().compare(other)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Key {}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Comparable<Key> for Sought<'_> {
    fn compare(&self, key: &Key) -> Ordering {
        self.head.cmp(&key.head).then_with(|| self.bytes.cmp(&key.bytes))
    }
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.compare(key).is_eq()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_bytes(
            shared in prop::collection::vec(0u8..2, 0..18),
            ends in prop::array::uniform2(prop::collection::vec(0u8..3, 0..4)),
        ) {
            let [one, other] = ends.map(|end| [&shared[..], &end].concat());
            let key = |bytes: &[u8]| Key::from(Bytes::copy_from_slice(bytes));
            prop_assert_eq!(key(&one).cmp(&key(&other)), one.cmp(&other));
            prop_assert_eq!(Sought::from(&one[..]).compare(&key(&other)), one.cmp(&other));
        }
    }
}
