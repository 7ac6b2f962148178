//! A range of rows with others laid over it.

use std::iter::Peekable;

use super::memtable::{OverRows, Overlay};
use crate::error::StorageError;
use crate::range::{Direction, KeyRange, RawRow};
use crate::tables::Table;

/// The rows of a range below, with the overlay's in their places; where both have a key, the upper one counts. A
/// damaged row below is told of when it is come upon, and the next one follows.
pub(crate) struct Merged<'txn, I: Iterator> {
    direction: Direction,
    below: Peekable<I>,
    /// As the overlay has them.
    layers: Vec<Peekable<OverRows<'txn>>>,
}

impl<'txn, I: Iterator<Item = Result<RawRow<'txn>, StorageError>>> Merged<'txn, I> {
    pub fn new(
        below: I,
        overlay: &'txn Overlay,
        table: Table,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Merged<'txn, I> {
        let layers = overlay.layers().map(|layer| layer.range(table, range, direction).peekable()).collect();
        Merged { direction, below: below.peekable(), layers }
    }

    /// The next key of all.
    fn next_key(&mut self) -> Option<&'txn [u8]> {
        let mut next = self.below.peek().and_then(|row| row.as_ref().ok().map(|(key, _)| *key));
        let direction = self.direction;
        for layer in &mut self.layers {
            let key = layer.peek().map(|row| row.key);
            next = next.into_iter().chain(key).min_by(|one, other| direction.order(*one, *other));
        }
        next
    }
}

impl<'txn, I: Iterator<Item = Result<RawRow<'txn>, StorageError>>> Iterator for Merged<'txn, I> {
    type Item = Result<RawRow<'txn>, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(damaged) = self.below.next_if(Result::is_err) {
                return Some(damaged);
            }
            let key = self.next_key()?;
            // All rows of the key are taken; the uppermost counts.
            let mut found = None;
            for rows in &mut self.layers {
                if let Some(row) = rows.next_if(|row| row.key == key) {
                    found = found.or(Some(row.value));
                }
            }
            let below = self.below.next_if(|row| row.as_ref().is_ok_and(|(at, _)| *at == key));
            match (found, below) {
                (Some(Some(value)), _) => return Some(Ok((key, value))),
                (Some(None), _) => {
                    #[cfg(test)]
                    crate::view::reads::pass_over();
                }
                (None, below) => return below,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::{Bound, RangeBounds};
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::memtable::Memtable;
    use super::*;
    use crate::rows::Rows;

    type Layer = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn any_layer() -> impl Strategy<Value = Layer> {
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..3));
        prop::collection::btree_map(prop::collection::vec(0u8..4, 1..3), value, 0..12)
    }

    fn any_end() -> impl Strategy<Value = Bound<Vec<u8>>> {
        let key = || prop::collection::vec(0u8..4, 0..3);
        prop_oneof![key().prop_map(Bound::Included), key().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
    }

    fn memtable(layer: &Layer) -> Memtable {
        let (mut memtable, mut rows) = (Memtable::default(), Rows::default());
        for (key, value) in layer {
            rows.set(Table::Docs, key, value.as_ref());
        }
        memtable.insert([rows]);
        memtable
    }

    proptest! {
        #[test]
        fn what_is_merged_is_what_a_plain_map_says(
            below in any_layer(),
            frozen in prop::option::of(any_layer()),
            active in any_layer(),
            from in any_end(),
            to in any_end(),
            backward: bool,
        ) {
            let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for layer in [Some(&below), frozen.as_ref(), Some(&active)].into_iter().flatten() {
                for (key, value) in layer {
                    match value {
                        Some(value) => model.insert(key.clone(), value.clone()),
                        None => model.remove(key),
                    };
                }
            }
            let range = (from.as_ref().map(|key| &key[..]), to.as_ref().map(|key| &key[..]));
            let in_range = |key: &[u8]| RangeBounds::<[u8]>::contains(&range, key);
            let mut expected: Vec<_> = model.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            expected.retain(|(key, _)| in_range(key));
            let rows = below.iter().filter_map(|(key, value)| Some((&key[..], value.as_deref()?)));
            let mut rows: Vec<_> = rows.filter(|(key, _)| in_range(key)).collect();
            let direction = if backward { Direction::Backward } else { Direction::Forward };
            if backward {
                expected.reverse();
                rows.reverse();
            }
            let frozen = frozen.as_ref().map(|it| Arc::new(memtable(it)));
            let overlay = Overlay { active: memtable(&active), frozen, known: None };
            let merged = Merged::new(rows.into_iter().map(Ok), &overlay, Table::Docs, range, direction);
            let merged: Vec<_> = merged.map(Result::unwrap).collect();
            prop_assert_eq!(merged, expected);
        }
    }
}
