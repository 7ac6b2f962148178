//! When what was written: a sparse table from seconds to sequences, so that a feed can begin at a time.
//!
//! The first commit of a second that changes documents leaves a row: the second, and the update sequence before it.
//! Nobody sees a commit before its end, which may come in a later second: then the next commit leaves a row for that
//! second too, with the sequence before the one that was seen. Seconds only rise: while the clock stands behind the
//! last row's, as after it was set back, there are no new ones.
//!
//! So all that came to be seen when the clock said so much or more lies behind the sequence of any row up to then,
//! however many rows are taken out. Old ones are: of three in a row the middle one goes when the outer ones are
//! [near](spacing) each other.

use std::ops::Bound;

use crate::codec::{keys, times};
use crate::error::{StorageError, unless_damaged};
use crate::model::sequence::Sequence;
use crate::range::{Direction, KeyRange, RawRow};
use crate::rows::Rows;
use crate::tables::Table;
use crate::view::View;

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
    /// The second of the last row; 0 when there is none.
    last: u64,
    /// Rows before this one have been looked at.
    looked: u64,
    latest: Latest,
}

/// The last commit that changed documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Latest {
    /// The update sequence before it, or before an earlier one that nobody had seen either.
    behind: Sequence,
    /// That after it.
    newest: Sequence,
    /// The second in which everybody saw it at last; `None` before.
    seen: Option<u64>,
}

/// What a commit brings that changes documents: all that lies behind one sequence, up to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brought {
    /// The update sequence before it.
    pub behind: Sequence,
    /// That after it.
    pub newest: Sequence,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeRow {
    /// Seconds since 1970.
    pub secs: u64,
    /// The update sequence before the first commit that was seen in that second or later.
    pub behind: Sequence,
}

impl Times {
    /// How the table stands when it is opened at `now`, and all that was committed can be seen. In which second since
    /// the last row that came to be is not known.
    pub fn opened(view: View<'_>, now: u64) -> Result<Times, StorageError> {
        let last = last_row(view)?.unwrap_or(TimeRow { secs: 0, behind: Sequence::ZERO });
        // Where the clock says no more than in the last row, it does not say when the last commit came to be seen: that
        // may be later. A clock that was set back to between that commit's beginning and its end cannot be told from
        // one that is right, and the commit is taken to be seen now: `docs/feeds.md` says what that may hide.
        let seen = (now > last.secs).then_some(now);
        let latest = Latest { behind: last.behind, newest: view.counters()?.update_seq, seen };
        Ok(Times { last: last.secs, looked: 0, latest })
    }

    /// Takes note that everybody sees what was committed up to a sequence.
    pub fn seen(&mut self, up_to: Sequence, now: u64) {
        if self.latest.newest == up_to {
            self.latest.seen.get_or_insert(now);
        }
    }

    /// Takes note that the update sequence is another one, though no document has changed.
    pub fn moved(&mut self, newest: Sequence) {
        self.latest.newest = newest;
    }

    /// Adds what a commit at `now` leaves; gives how the table stands then.
    pub fn note(
        self,
        view: View<'_>,
        now: u64,
        Brought { behind, newest }: Brought,
        rows: &mut Rows,
    ) -> Result<Times, StorageError> {
        let Times { mut last, looked, latest: before } = self;
        let mut put = |secs, behind| {
            if secs > last {
                rows.put(Table::Times, keys::number(secs), times::encode(behind));
                last = secs;
            }
        };
        match before.seen {
            Some(seen) if seen != now => {
                if before.behind < behind {
                    put(seen, before.behind);
                }
                put(now, behind);
            }
            // Nobody had seen the commit before when this second began.
            _ => put(now, before.behind),
        }
        // What nobody has seen yet is seen with this one.
        let unseen_from = if before.seen.is_some() { behind } else { before.behind };
        let latest = Latest { behind: unseen_from, newest, seen: None };
        let looked = if last > self.last { thin_out(view, looked, now, rows)? } else { looked };
        Ok(Times { last, looked, latest })
    }

    /// Where seconds are later than the last row's: the place in a state behind which all lies that came to be seen
    /// when the clock said so many or more; `None` where it is not the state that is known.
    fn newest_before(&self, secs: u64, newest: Sequence) -> Option<Sequence> {
        let Latest { behind, newest: known, seen } = self.latest;
        (newest == known).then(|| if seen.is_some_and(|seen| seen < secs) { newest } else { behind })
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

/// The place behind which all lies that came to be seen when the clock said so many seconds or more.
pub(crate) fn seq_before(view: View<'_>, times: Times, secs: u64) -> Result<Sequence, StorageError> {
    let (below, above) = (last_up_to(view, secs)?, first_above(view, secs)?);
    let Some(row) = below.row else { return Ok(Sequence::ZERO) };
    // Where rows are missing, it is not known what was written between those that are left.
    if secs == row.secs || below.any_damaged || above.any_damaged {
        return Ok(row.behind);
    }
    let Some(next) = above.row else {
        return Ok(times.newest_before(secs, view.counters()?.update_seq).unwrap_or(row.behind));
    };
    let newest = last_row(view)?.map_or(next.secs, |last| last.secs);
    let may_be_thinned_out = next.secs - row.secs <= spacing(newest.saturating_sub(next.secs));
    Ok(if may_be_thinned_out { row.behind } else { next.behind })
}

/// When the first of what lies behind a sequence was written, as exactly as rows are [near](spacing) each other; `None`
/// where that is not known.
pub(crate) fn secs_behind(view: View<'_>, seq: Sequence) -> Result<Option<u64>, StorageError> {
    let Some(last) = last_while(view, |row| row.behind <= seq)? else { return Ok(None) };
    // Of rows with one sequence the first tells when that was.
    let first = match last_while(view, |row| row.behind < last.behind)? {
        Some(before) => first_above(view, before.secs)?,
        None => first_of(view, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)?,
    };
    Ok(first.row.map(|row| row.secs))
}

/// The last of the rows from the first on for which this holds. Both columns rise: it is found by halving.
fn last_while(view: View<'_>, holds: impl Fn(&TimeRow) -> bool) -> Result<Option<TimeRow>, StorageError> {
    let (mut found, mut from, mut above) = (None, 0, last_row(view)?.map_or(0, |last| last.secs + 1));
    while from < above {
        let middle = from + (above - from) / 2;
        match last_up_to(view, middle)?.row {
            Some(row) if !holds(&row) => above = row.secs,
            row => {
                found = row.or(found);
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
