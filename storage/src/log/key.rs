//! Rows in memory, in the order of their keys.

use std::cmp::Ordering;

use equivalent::{Comparable, Equivalent};

use super::id_filter::HashedId;
use crate::rows::{Row, SharedRow};
use crate::tables::Table;

/// A row by its key, whose first bytes are at hand. Most keys differ in them: then no row is looked at.
#[derive(Clone)]
pub(crate) struct Keyed {
    head: u128,
    row: SharedRow,
}

// There are hundreds of thousands of them.
const _: () = assert!(size_of::<Keyed>() == 32);

/// A key that is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'k> {
    head: u128,
    bytes: &'k [u8],
}

impl Keyed {
    /// A row, and the table that it belongs to.
    pub fn of(row: SharedRow) -> (Table, Keyed) {
        let Row { table, key, .. } = row.row();
        let head = head_of(key);
        (table, Keyed { head, row })
    }

    pub fn row(&self) -> Row<'_> {
        self.row.row()
    }

    /// Of a document's row, the document's id.
    pub fn hashed_id(&self) -> HashedId {
        HashedId::from(self.row().key)
    }

    /// Where its row begins in memory.
    pub fn first_byte(&self) -> u8 {
        self.row.first_byte()
    }
}

#[cfg(test)]
impl From<SharedRow> for Keyed {
    fn from(row: SharedRow) -> Keyed {
        Keyed::of(row).1
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

impl Ord for Keyed {
    fn cmp(&self, other: &Keyed) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.row().key.cmp(other.row().key))
    }
}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Keyed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Keyed {}

impl PartialEq for Keyed {
    fn eq(&self, other: &Keyed) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Comparable<Keyed> for Sought<'_> {
    fn compare(&self, keyed: &Keyed) -> Ordering {
        self.head.cmp(&keyed.head).then_with(|| self.bytes.cmp(keyed.row().key))
    }
}

impl Equivalent<Keyed> for Sought<'_> {
    fn equivalent(&self, keyed: &Keyed) -> bool {
        self.compare(keyed).is_eq()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rows::Rows;

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_bytes(
            shared in prop::collection::vec(0u8..2, 0..18),
            ends in prop::array::uniform2(prop::collection::vec(0u8..3, 0..4)),
        ) {
            let [one, other] = ends.map(|end| [&shared[..], &end].concat());
            let mut rows = Rows::default();
            [&one, &other].into_iter().for_each(|key| rows.delete(Table::Docs, key));
            let keyed: Vec<_> = rows.into_shared().map(Keyed::from).collect();
            prop_assert_eq!(keyed[0].cmp(&keyed[1]), one.cmp(&other));
            prop_assert_eq!(Sought::from(&one[..]).compare(&keyed[1]), one.cmp(&other));
        }
    }
}
