//! An index that is of no use as it is, begun anew when its database is opened.

use std::ops::Bound;

use crate::codec::feed_index::{self, FeedIndex, IndexKey};
use crate::error::StorageError;
use crate::range::Direction;
use crate::rows::Rows;
use crate::tables::{META_FEED_INDEX, Table};
use crate::view::View;

/// An index whose keys are made in another way now is begun anew. Of a damaged one it is not known any more what it was
/// of: it is given up, and has to be asked for anew, as documents and feeds do not need it.
pub(crate) fn remade_index(view: View<'_>, keys_version: u64) -> Result<Rows, StorageError> {
    let mut rows = Rows::default();
    let remade = match view.feed_index() {
        Err(error) if error.is_damage() => Some(FeedIndex::given_up(keys_version, next_number(view)?)),
        Ok(Some(index)) if index.keys_version != keys_version => {
            Some(index.remade(keys_version, view.counters()?.update_seq))
        }
        read => read.map(|_as_it_is| None)?,
    };
    if let Some(remade) = remade {
        rows.put(Table::Meta, META_FEED_INDEX, feed_index::encode(&remade));
    }
    Ok(rows)
}

/// A number above those of all fields that have rows in the index of the feed.
fn next_number(view: View<'_>) -> Result<u32, StorageError> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let last = view.range(Table::FeedIndex, all, Direction::Backward)?.next();
    Ok(match last {
        None => 0,
        Some(Ok((key, _))) => IndexKey::from_bytes(key).map_or(u32::MAX / 2, |last| last.field.saturating_add(1)),
        // A damaged row: its number is not known, and no database has had so many fields.
        Some(Err(_)) => u32::MAX / 2,
    })
}
