//! Making the index of documents that were there before it, and removing rows of fields that were given up: in slices
//! small enough to go between two commits. How far that is stands in the database, so it goes on after a restart.

use std::ops::Bound;

use super::{FeedKeys, Indexer};
use crate::codec::feed_index::{self, Building, FeedIndex};
use crate::codec::{change, keys};
use crate::error::{StorageError, unless_damaged};
use crate::range::Direction;
use crate::room::Room;
use crate::rows::Rows;
use crate::snapshot::{Budget, PageLimits};
use crate::store::Store;
use crate::tables::{META_FEED_INDEX, Table};
use crate::view::View;

/// What a slice did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tended {
    /// Documents gone through, or rows removed.
    pub examined: u64,
    /// Whether nothing is left to do.
    pub done: bool,
}

/// A slice ends with the document that has it write so many rows: inserting them is most of the work.
const ROWS_A_SLICE: usize = 5_000;

impl Store {
    /// Goes on with the index of the feed, as far as the limits reach, in one commit. What was given up goes first: it
    /// makes room for what comes.
    ///
    /// # Errors
    /// [`StorageError`]: then nothing was done. A damaged row of `by_seq` is one: an index that lacks it is never
    /// ready.
    pub fn tend_feed_index(&self, limits: PageLimits) -> Result<Tended, StorageError> {
        let gives_room = self.base().read()?.view().feed_index()?.is_some_and(|index| index.garbage);
        let room = if gives_room { Room::Reserve } else { Room::Ordinary };
        let plan = |view: View<'_>| {
            let mut rows = Rows::default();
            let nothing = Tended { examined: 0, done: true };
            let Some(mut index) = view.feed_index()? else { return Ok((rows, (nothing, None))) };
            let mut last = self.removal().lock().clone();
            let examined = match index.building {
                _ if index.garbage => remove_rows(view, &mut index, &mut last, limits.rows_max, &mut rows)?,
                Some(building) => build(view, &mut index, building, self.feed_keys(), limits, &mut rows)?,
                None => return Ok((rows, (nothing, None))),
            };
            let done = !index.garbage && index.building.is_none();
            rows.put(Table::Meta, META_FEED_INDEX, feed_index::encode(&index));
            Ok((rows, (Tended { examined, done }, last)))
        };
        let committed = |(_, last): &(Tended, Option<Vec<u8>>)| self.removal().lock().clone_from(last);
        self.commit(room, plan, committed).map(|(tended, _)| tended)
    }
}

/// Adds the rows of the next documents.
fn build(
    view: View<'_>,
    index: &mut FeedIndex,
    Building { done, until }: Building,
    keys: &dyn FeedKeys,
    limits: PageLimits,
    rows: &mut Rows,
) -> Result<u64, StorageError> {
    let stretch = (keys::seq(done), keys::seq(until));
    let stretch = (Bound::Excluded(&stretch.0[..]), Bound::Included(&stretch.1[..]));
    // The rows of the fields that are ready are there: they are not told again.
    let begun = FeedIndex {
        fields: index.fields.iter().filter(|field| !field.ready).cloned().collect(),
        building: None,
        ..index.clone()
    };
    let indexer = Indexer::new(&begun, keys);
    let mut found = Vec::new();
    let mut budget = Budget::new(limits);
    let mut examined = 0;
    let mut last = done;
    for row in view.range(Table::BySeq, stretch, Direction::Forward)? {
        if budget.spent() || found.len() >= ROWS_A_SLICE {
            index.building = Some(Building { done: last, until });
            put_rows(found, rows);
            return Ok(examined);
        }
        let (key, value) = row?;
        let row = change::decode(key, value).map_err(|what| StorageError::damaged(Table::BySeq, key, what))?;
        budget.charge_row(row.body.bytes() as usize);
        examined += 1;
        last = row.seq;
        found.extend(indexer.rows_at(view, row)?);
    }
    put_rows(found, rows);
    index.building = None;
    index.fields.iter_mut().for_each(|field| field.ready = true);
    Ok(examined)
}

fn put_rows(mut found: Vec<feed_index::IndexKey>, rows: &mut Rows) {
    found.sort_unstable();
    for key in found {
        rows.put(Table::FeedIndex, key.to_bytes(), feed_index::encode_row());
    }
}

/// Removes rows whose fields were given up; a damaged one is left as it is. It goes on behind the `last` that was
/// removed, as each row before it costs a look until LMDB has taken it out.
fn remove_rows(
    view: View<'_>,
    index: &mut FeedIndex,
    last: &mut Option<Vec<u8>>,
    rows_max: usize,
    rows: &mut Rows,
) -> Result<u64, StorageError> {
    let behind = last.take();
    let mut newest = behind.as_deref();
    let mut numbers: Vec<u32> = index.fields.iter().map(|field| field.number).collect();
    numbers.sort_unstable();
    let firsts = std::iter::once(Some(0)).chain(numbers.iter().map(|number| number.checked_add(1)));
    let ends = numbers.iter().map(Some).chain(std::iter::once(None));
    let mut removed = 0;
    for (first, end) in firsts.zip(ends) {
        let Some(first) = first else { continue };
        let (first, end) = (first.to_be_bytes(), end.map(|end| end.to_be_bytes()));
        let from = match behind.as_deref() {
            Some(behind) if behind >= &first[..] => Bound::Excluded(behind),
            _ => Bound::Included(&first[..]),
        };
        let end = end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(&end[..]));
        for row in view.range(Table::FeedIndex, (from, end), Direction::Forward)? {
            if removed == rows_max as u64 {
                *last = newest.map(<[u8]>::to_vec);
                return Ok(removed);
            }
            if let Some((key, _)) = unless_damaged(row)? {
                rows.delete(Table::FeedIndex, key);
                newest = Some(key);
                removed += 1;
            }
        }
    }
    index.garbage = false;
    Ok(removed)
}
