//! When what was written: a sparse table from seconds to sequences, so that a feed can begin at a time.
//!
//! The first commit of a second that changes documents leaves a row: the second, and the update sequence before it. Seconds
//! only rise: while the clock stands behind the last row's, as after it was set back, there are no new ones. So all that was
//! written when the clock said so much or more lies behind the sequence of any row up to then, however many rows are taken
//! out. Old ones are: of three in a row the middle one goes when the outer ones are [near](spacing) each other.

use std::ops::Bound;

use crate::codec::{keys, times};
use crate::error::{StorageError, unless_damaged};
use crate::model::sequence::Sequence;
use crate::rows::Rows;
use crate::tables::Table;
use crate::view::{Direction, KeyRange, RawRow, View};

/// Rows looked at with each new one, to be taken out.
const LOOKED_AT: usize = 8;

/// A row may go when those beside it are no further from each other than this share of their age.
const AGE_SHARE: u64 = 1000;

/// How near to each other rows of an age are thinned out to, in seconds.
fn spacing(age: u64) -> u64 {
    (age / AGE_SHARE).max(1)
}

/// The end of the table, as a store knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// The second of the last row; 0 when it is not known.
    last: u64,
    /// Rows before this one have been looked at.
    looked: u64,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeRow {
    /// Seconds since 1970.
    pub secs: u64,
    /// The update sequence before the first commit of that second.
    pub behind: Sequence,
}

impl Times {
    /// Adds what a commit at `now` leaves that brings what lies behind a sequence; gives how the table stands then.
    pub fn note(self, view: View<'_>, now: u64, behind: Sequence, rows: &mut Rows) -> Result<Times, StorageError> {
        if now <= self.last {
            return Ok(self);
        }
        let last = if self.last == 0 { last_row(view)?.map_or(0, |row| row.secs) } else { self.last };
        if now <= last {
            return Ok(Times { last, ..self });
        }
        rows.put(Table::Times, keys::number(now), times::encode(behind));
        Ok(Times { last: now, looked: thin_out(view, self.looked, now, rows)? })
    }
}

/// Takes out some of the rows that are not needed at their age, from one second on; gives where to go on.
fn thin_out(view: View<'_>, from: u64, now: u64, rows: &mut Rows) -> Result<u64, StorageError> {
    let from = keys::number(from);
    let mut found = Vec::with_capacity(LOOKED_AT + 1);
    for row in view.range(Table::Times, (Bound::Included(&from), Bound::Unbounded), Direction::Forward)? {
        match unless_damaged(row.and_then(read))? {
            Some(TimeRow { secs, .. }) => found.push(secs),
            None => continue,
        }
        if found.len() > LOOKED_AT {
            break;
        }
    }
    let whole = found.len() <= LOOKED_AT;
    let mut seconds = found.into_iter();
    let Some(mut kept) = seconds.next() else { return Ok(0) };
    let mut seconds = seconds.peekable();
    while let (Some(middle), Some(next)) = (seconds.next(), seconds.peek()) {
        if next - kept <= spacing(now.saturating_sub(*next)) {
            rows.delete(Table::Times, keys::number(middle));
        } else {
            kept = middle;
        }
    }
    Ok(if whole { 0 } else { kept })
}

/// The place behind which all lies that was written when the clock said so many seconds or more.
pub(crate) fn seq_before(view: View<'_>, secs: u64) -> Result<Sequence, StorageError> {
    let (below, above) = (last_up_to(view, secs)?, first_above(view, secs)?);
    let Some(row) = below.row else { return Ok(Sequence::ZERO) };
    // Where rows are missing, it is not known what was written between those that are left.
    if secs == row.secs || below.any_damaged || above.any_damaged {
        return Ok(row.behind);
    }
    let Some(next) = above.row else { return Ok(view.counters()?.update_seq) };
    let newest = last_row(view)?.map_or(next.secs, |last| last.secs);
    let may_be_thinned_out = next.secs - row.secs <= spacing(newest.saturating_sub(next.secs));
    Ok(if may_be_thinned_out { row.behind } else { next.behind })
}

/// When the first of what lies behind a sequence was written, or some seconds before; `None` where that is not known.
pub(crate) fn secs_behind(view: View<'_>, seq: Sequence) -> Result<Option<u64>, StorageError> {
    let (mut found, mut above) = (None, last_row(view)?.map_or(0, |last| last.secs + 1));
    let mut from = 0;
    // Both columns rise: the last row whose sequence is no higher is found by halving.
    while from < above {
        let middle = from + (above - from) / 2;
        match last_up_to(view, middle)?.row {
            Some(row) if row.behind > seq => above = row.secs,
            row => {
                found = row.map(|row| row.secs).or(found);
                from = middle + 1;
            }
        }
    }
    Ok(found)
}

fn last_row(view: View<'_>) -> Result<Option<TimeRow>, StorageError> {
    Ok(first_of(view, (Bound::Unbounded, Bound::Unbounded), Direction::Backward)?.row)
}

fn last_up_to(view: View<'_>, secs: u64) -> Result<Found, StorageError> {
    first_of(view, (Bound::Unbounded, Bound::Included(&keys::number(secs))), Direction::Backward)
}

fn first_above(view: View<'_>, secs: u64) -> Result<Found, StorageError> {
    first_of(view, (Bound::Excluded(&keys::number(secs)), Bound::Unbounded), Direction::Forward)
}

/// What was looked for.
#[derive(Default)]
struct Found {
    row: Option<TimeRow>,
    /// A damaged row lies before it.
    any_damaged: bool,
}

/// The first sound row of a range.
fn first_of(view: View<'_>, range: KeyRange<'_>, direction: Direction) -> Result<Found, StorageError> {
    let mut found = Found::default();
    for row in view.range(Table::Times, range, direction)? {
        found.row = unless_damaged(row.and_then(read))?;
        if found.row.is_some() {
            break;
        }
        found.any_damaged = true;
    }
    Ok(found)
}

/// Reads a row.
pub(crate) fn read((key, value): RawRow<'_>) -> Result<TimeRow, StorageError> {
    let damaged = |what| StorageError::damaged(Table::Times, key, what);
    Ok(TimeRow { secs: keys::read_number(key).map_err(damaged)?, behind: times::decode(value).map_err(damaged)? })
}
