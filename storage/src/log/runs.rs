//! Rows of a table in memory: sorted runs, each at least twice as long as the next, which is newer. Rows that are put
//! in are a run, and runs that are too short for their place are merged: rows are moved, and runs there are, as often
//! as their number can be halved. Where keys come in order, as the sequences of new documents do, there is one run.

use std::mem::swap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use equivalent::Comparable;

use super::key::{Keyed, Sought};
use crate::range::Direction;

/// Rows by key, each at its latest. A clone is another state of them, made at once: it shares what has not changed
/// since.
#[derive(Clone, Default)]
pub(crate) struct Runs(Vec<Arc<Vec<Keyed>>>);

impl Runs {
    /// Puts rows in, in place of those with the same keys; of two among themselves the later counts.
    pub fn insert(&mut self, mut rows: Vec<Keyed>) {
        if rows.is_empty() {
            return;
        }
        in_order(&mut rows);
        self.push(rows);
        while let [.., older, newer] = &self.0[..]
            && older.len() < 2 * newer.len()
        {
            self.merge_last();
        }
    }

    /// A run of rows that come behind all others of the one before them is a part of it, unless a clone has that too.
    fn push(&mut self, rows: Vec<Keyed>) {
        match self.0.last_mut().and_then(Arc::get_mut) {
            Some(last) if last.last() < rows.first() => last.extend(rows),
            _ => self.0.push(Arc::new(rows)),
        }
    }

    fn merge_last(&mut self) {
        if let (Some(newer), Some(older)) = (self.0.pop(), self.0.pop()) {
            self.0.push(Arc::new(laid_over(Arc::unwrap_or_clone(older), Arc::unwrap_or_clone(newer))));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many rows there are; of a key that several runs have, all are counted.
    pub fn len(&self) -> usize {
        self.0.iter().map(|run| run.len()).sum()
    }

    pub fn get(&self, key: &Sought<'_>) -> Option<&Keyed> {
        self.0.iter().rev().find_map(|run| {
            let place = run.binary_search_by(|row| key.compare(row).reverse()).ok()?;
            run.get(place)
        })
    }

    /// The rows in a range, in order.
    pub fn range(&self, range: (Bound<Sought<'_>>, Bound<Sought<'_>>), direction: Direction) -> Merging<'_> {
        let runs = self.0.iter().rev().map(|run| &run[places(run, &range)]);
        Merging { left: runs.filter(|run| !run.is_empty()).collect(), direction }
    }

    /// All rows in any order, those that others are in place of among them.
    pub fn each(&self) -> impl Iterator<Item = &Keyed> {
        self.0.iter().flat_map(|run| &**run)
    }

    /// All rows, in order.
    pub fn rows(&self) -> Vec<&Keyed> {
        let mut rows: Vec<&Keyed> = self.each().collect();
        in_order(&mut rows);
        rows
    }
}

/// Puts rows in order, of two with the same key the later alone. The sort is one that finds runs and merges them.
fn in_order<T: Ord>(rows: &mut Vec<T>) {
    rows.sort();
    rows.dedup_by(|later, earlier| {
        let is_later = later == earlier;
        if is_later {
            swap(later, earlier);
        }
        is_later
    });
}

/// The rows of two runs as one run: of a key that both have, the newer row alone.
fn laid_over(older: Vec<Keyed>, newer: Vec<Keyed>) -> Vec<Keyed> {
    let mut rows = Vec::with_capacity(older.len() + newer.len());
    let mut older = older.into_iter().peekable();
    for row in newer {
        while let Some(before) = older.next_if(|before| *before < row) {
            rows.push(before);
        }
        older.next_if_eq(&row);
        rows.push(row);
    }
    rows.extend(older);
    rows
}

/// Where the rows of a range lie in a run.
fn places(run: &[Keyed], (from, to): &(Bound<Sought<'_>>, Bound<Sought<'_>>)) -> Range<usize> {
    let below = |key: &Sought<'_>| run.partition_point(|row| key.compare(row).is_gt());
    let up_to = |key: &Sought<'_>| run.partition_point(|row| key.compare(row).is_ge());
    let start = match from {
        Bound::Included(key) => below(key),
        Bound::Excluded(key) => up_to(key),
        Bound::Unbounded => 0,
    };
    let end = match to {
        Bound::Included(key) => up_to(key),
        Bound::Excluded(key) => below(key),
        Bound::Unbounded => run.len(),
    };
    // One that ends before it begins is empty.
    start..end.max(start)
}

/// Rows of runs, one after the other.
pub(crate) struct Merging<'a> {
    /// Those of each run that are still to come, if there are some, the newest run first.
    left: Vec<&'a [Keyed]>,
    direction: Direction,
}

impl<'a> Iterator for Merging<'a> {
    type Item = &'a Keyed;

    fn next(&mut self) -> Option<&'a Keyed> {
        let direction = self.direction;
        let next = |rows: &&'a [Keyed]| match direction {
            Direction::Forward => rows.first(),
            Direction::Backward => rows.last(),
        };
        // Of several with the same key, the newest run's.
        let found = self.left.iter().filter_map(next).min_by(|one, other| direction.order(*one, *other))?;
        for rows in &mut self.left {
            if next(rows).is_some_and(|row| row == found) {
                *rows = match direction {
                    Direction::Forward => &rows[1..],
                    Direction::Backward => &rows[..rows.len() - 1],
                };
            }
        }
        self.left.retain(|rows| !rows.is_empty());
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::RangeBounds;

    use proptest::prelude::*;

    use super::*;
    use crate::rows::{Row, Rows};
    use crate::tables::Table;

    type Model = BTreeMap<Vec<u8>, u32>;

    /// Rows with these keys, each of which says when it was put in.
    fn keyed(keys: &[Vec<u8>], at: u32) -> Vec<Keyed> {
        let mut rows = Rows::default();
        keys.iter().zip(at..).for_each(|(key, at)| rows.put(Table::Docs, key, at.to_be_bytes()));
        rows.into_shared().map(Keyed::from).collect()
    }

    fn said(Row { key, value, .. }: Row<'_>) -> (Vec<u8>, u32) {
        (key.to_vec(), u32::from_be_bytes(value.unwrap().try_into().unwrap()))
    }

    fn all(runs: &Runs) -> Model {
        let rows: Vec<_> = runs.rows().into_iter().map(|keyed| said(keyed.row())).collect();
        assert!(rows.is_sorted_by(|(one, _), (other, _)| one < other), "in order, and each once");
        rows.into_iter().collect()
    }

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        let short = prop::collection::vec(0u8..4, 0..3);
        // Some that differ behind the bytes at hand.
        prop_oneof![short.clone(), short.prop_map(|end| [&[1; 16], &end[..]].concat())]
    }

    fn any_end() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![any_key().prop_map(Bound::Included), any_key().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
    }

    proptest! {
        #[test]
        fn runs_are_what_a_plain_map_is_and_clones_are_what_they_were(
            put in prop::collection::vec((prop::collection::vec(any_key(), 1..9), any::<bool>()), 0..40),
            sought in any_key(),
            (from, to) in (any_end(), any_end()),
        ) {
            let (mut runs, mut model, mut clones) = (Runs::default(), Model::new(), Vec::new());
            for ((keys, is_kept), at) in put.iter().zip((0..).step_by(100)) {
                if *is_kept {
                    clones.push((runs.clone(), model.clone()));
                }
                runs.insert(keyed(keys, at));
                model.extend(keys.iter().cloned().zip(at..));
                prop_assert!(runs.0.is_sorted_by(|older, newer| older.len() >= 2 * newer.len()));
            }
            prop_assert_eq!(runs.is_empty(), model.is_empty());
            prop_assert!(runs.len() >= model.len());
            clones.push((runs, model));
            for (runs, model) in &clones {
                prop_assert_eq!(&all(runs), model);
                let found = runs.get(&Sought::from(&sought[..])).map(|keyed| said(keyed.row()).1);
                prop_assert_eq!(found, model.get(&sought).copied());
                let range = (from.as_ref().map(|key| &key[..]), to.as_ref().map(|key| &key[..]));
                let mut expected: Vec<_> = model.iter().map(|(key, at)| (key.clone(), *at)).collect();
                expected.retain(|(key, _)| RangeBounds::<[u8]>::contains(&range, &key[..]));
                for direction in [Direction::Forward, Direction::Backward] {
                    let sought = (range.0.map(Sought::from), range.1.map(Sought::from));
                    let rows = runs.range(sought, direction).map(|keyed| said(keyed.row()));
                    prop_assert_eq!(rows.collect::<Vec<_>>(), expected.clone());
                    expected.reverse();
                }
            }
        }
    }

    #[test]
    fn rows_that_come_in_order_are_one_run_and_others_are_few() {
        let (mut ascending, mut scattered) = (Runs::default(), Runs::default());
        for number in 0..5_000u32 {
            ascending.insert(keyed(&[number.to_be_bytes().to_vec()], 0));
            scattered.insert(keyed(&[number.wrapping_mul(0x9e37_79b1).to_be_bytes().to_vec()], 0));
        }
        assert_eq!((ascending.0.len(), ascending.len()), (1, 5_000));
        assert!(scattered.0.len() <= 13 && scattered.len() == 5_000, "{} runs", scattered.0.len());
    }
}
