//! Bodies of documents: one, or many that are read one after the other.

use std::iter::Peekable;
use std::ops::Bound;

use bytes::Bytes;

use crate::codec::{body, keys};
use crate::error::StorageError;
use crate::json::Body;
use crate::model::body_place::{BodyKey, BodyPlace};
use crate::range::Direction;
use crate::tables::Table;
use crate::view::{Range, View};

/// A body so few sequences further on is walked to: looking it up from the root costs about as much.
const NEAR: u64 = 16;

/// Reads bodies. Those of a feed lie in its order, most of them side by side, and are walked along.
pub(crate) struct Bodies<'txn> {
    view: View<'txn>,
    last: Option<BodyKey>,
    behind_last: Option<Peekable<Range<'txn>>>,
}

impl<'txn> Bodies<'txn> {
    pub fn new(view: View<'txn>) -> Bodies<'txn> {
        Bodies { view, last: None, behind_last: None }
    }

    /// The tables they are read from.
    pub fn view(&self) -> View<'txn> {
        self.view
    }

    /// The body at a place; `None` when it was never received or has been reclaimed.
    pub fn read(&mut self, place: BodyPlace) -> Result<Option<Body>, StorageError> {
        match place {
            BodyPlace::Empty => Ok(Some(Body::empty())),
            BodyPlace::Unknown => Ok(None),
            BodyPlace::Stored { key, .. } => self.stored(key),
        }
    }

    fn stored(&mut self, key: BodyKey) -> Result<Option<Body>, StorageError> {
        let row = keys::body(key);
        let is_near = self
            .last
            .replace(key)
            .is_some_and(|last| last < key && key.seq.to_integer() - last.seq.to_integer() <= NEAR);
        let value = match if is_near { self.walk_to(&row)? } else { None } {
            Some(value) => Some(value),
            None => {
                self.behind_last = None;
                self.view.get(Table::Bodies, &row)?
            }
        };
        let Some(value) = value else { return Ok(None) };
        let (_, json) = body::decode(value).map_err(|what| StorageError::damaged(Table::Bodies, &row, what))?;
        Ok(Some(Body::from_stored(Bytes::copy_from_slice(json))))
    }

    /// The row with this key, if it is come upon soon. What is damaged on the way is nobody's.
    fn walk_to(&mut self, key: &[u8]) -> Result<Option<&'txn [u8]>, StorageError> {
        let rows = match &mut self.behind_last {
            Some(rows) => rows,
            none => {
                let range = (Bound::Included(key), Bound::Unbounded);
                none.insert(self.view.range(Table::Bodies, range, Direction::Forward)?.peekable())
            }
        };
        for _ in 0..NEAR {
            match rows.next_if(|row| row.as_ref().is_ok_and(|(at, _)| *at <= key)) {
                Some(Ok((at, value))) if at == key => return Ok(Some(value)),
                Some(_) => {}
                None => break,
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::env::{Durability, Env, EnvOptions};
    use crate::model::sequence::Sequence;
    use crate::room::Room;
    use crate::rows::Rows;

    fn key(number: u64) -> BodyKey {
        BodyKey { seq: Sequence::from_integer(number / 2), ordinal: (number % 2) as u32 }
    }

    /// Bodies with these numbers.
    fn env(folder: &std::path::Path, numbers: &[u64]) -> Env {
        let (map_bytes, durability) = (16 << 20, Durability::Relaxed);
        let env = Env::open(
            folder,
            EnvOptions { map_bytes, map_bytes_max: map_bytes, readers_max: 8, durability, tell: |_, _| {} },
        )
        .unwrap();
        let plan = |_: View<'_>| {
            let mut rows = Rows::default();
            for &number in numbers {
                rows.put(
                    Table::Bodies,
                    keys::body(key(number)),
                    body::encode("id", format!("{{\"n\":{number}}}").as_bytes()),
                );
            }
            Ok::<_, StorageError>((rows, ()))
        };
        env.write(Room::Ordinary, plan, |()| {}).unwrap();
        env
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn bodies_are_the_same_whether_they_are_walked_to_or_looked_up(
            stored in prop::collection::btree_set(1u64..400, 0..200),
            asked in prop::collection::vec((any::<bool>(), 1u64..400), 1..200),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let env = env(folder.path(), &stored.iter().copied().collect::<Vec<_>>());
            let reading = env.read().unwrap();
            let mut bodies = Bodies::new(reading.view());
            let mut last = 1;
            for (is_near, number) in asked {
                // Mostly a little further on, as a feed asks.
                last = if is_near { (last + number % 20).min(399) } else { number };
                let found = bodies.read(BodyPlace::Stored { key: key(last), bytes: 0 }).unwrap();
                let expected = stored.contains(&last).then(|| format!("{{\"n\":{last}}}"));
                prop_assert_eq!(found.map(|body| body.as_str().to_owned()), expected);
            }
        }
    }
}
