//! Rows in the order of their keys lie anywhere in memory. Each would be waited for; asked for together, they come
//! together.

use std::collections::VecDeque;
use std::hint::black_box;

use super::key::Keyed;

/// How many are asked for at once.
const AHEAD: usize = 32;

/// The same rows, fetched from memory before they are given.
pub(super) fn fetched<'a>(mut rows: impl Iterator<Item = &'a Keyed>) -> impl Iterator<Item = &'a Keyed> {
    let mut next = VecDeque::with_capacity(AHEAD);
    std::iter::from_fn(move || {
        if next.is_empty() {
            next.extend(rows.by_ref().take(AHEAD));
            for keyed in &next {
                black_box(keyed.first_byte());
            }
        }
        next.pop_front()
    })
}
