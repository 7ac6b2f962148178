//! Freeing bodies that no leaf needs, in slices small enough to go between two commits.
//!
//! Superseded bodies stay readable by their revision until a sweep passes them. A sweep walks `bodies` from its
//! oldest row and asks each row's document whether one of its leaves still has it.

use std::ops::Bound;

use crate::codec::head::DocHead;
use crate::codec::{body, keys, meta};
use crate::error::{StorageError, unless_damaged};
use crate::model::body_place::{BodyKey, BodyPlace};
use crate::model::doc_id::DocId;
use crate::range::Direction;
use crate::room::Room;
use crate::rows::Rows;
use crate::snapshot::{Budget, PageLimits};
use crate::store::Store;
use crate::tables::{META_COUNTERS, Table};
use crate::view::View;

/// What a slice of a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaimed {
    /// Bodies looked at.
    pub examined: u64,
    /// Bytes of bodies freed.
    pub bytes: u64,
    /// Whether the sweep has passed the newest row; the next slice starts anew.
    pub swept: bool,
}

/// When bodies are reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReclaimPolicy {
    /// Share of garbage among the bytes of all bodies, in percent, from which on it is reclaimed; 100 is never.
    pub garbage_percent: u8,
    /// Less garbage than this, in bytes, is left alone.
    pub floor_bytes: u64,
}

impl Default for ReclaimPolicy {
    fn default() -> ReclaimPolicy {
        ReclaimPolicy { garbage_percent: 50, floor_bytes: 64 << 20 }
    }
}

impl ReclaimPolicy {
    /// Whether there is enough garbage.
    pub fn due(&self, counters: &meta::Counters) -> bool {
        let all = counters.body_bytes.saturating_add(counters.garbage_bytes);
        let share = u128::from(counters.garbage_bytes) * 100;
        let some = self.garbage_percent < 100 && counters.garbage_bytes > self.floor_bytes;
        some && share >= u128::from(all) * u128::from(self.garbage_percent)
    }
}

impl Store {
    /// Sweeps bodies as far as the limits reach, but one at least, in one commit. It goes on where the last slice
    /// ended; where there is no garbage, the sweep is over.
    ///
    /// # Errors
    /// [`StorageError`]: then nothing was freed, and the next slice starts anew.
    pub fn reclaim(&self, limits: PageLimits) -> Result<Reclaimed, StorageError> {
        let mut sweep = self.sweep().lock();
        // Taken, so that a sweep that fails, or panics, is over: the one begun next is to see what this one has passed.
        let start = sweep.take();
        let plan = |view: View<'_>| {
            let mut rows = Rows::default();
            if view.counters()?.garbage_bytes == 0 {
                return Ok((rows, Slice { swept: true, ..Slice::default() }));
            }
            let slice = Slice::examine(view, start, limits)?;
            for key in &slice.unneeded {
                rows.delete(Table::Bodies, keys::body(*key));
            }
            if slice.bytes > 0 {
                let mut counters = view.counters()?;
                counters.garbage_bytes = counters.garbage_bytes.saturating_sub(slice.bytes);
                rows.put(Table::Meta, META_COUNTERS, meta::encode_counters(&counters));
            }
            Ok((rows, slice))
        };
        let Slice { examined, bytes, last, swept, .. } = self.commit(Room::Reserve, plan, |_| {})?;
        *sweep = last.filter(|_| !swept);
        Ok(Reclaimed { examined, bytes, swept })
    }
}

/// Part of a sweep.
#[derive(Default)]
struct Slice {
    unneeded: Vec<BodyKey>,
    examined: u64,
    bytes: u64,
    /// The last row whose place is known.
    last: Option<BodyKey>,
    /// Whether it came to the end of the table.
    swept: bool,
}

impl Slice {
    fn examine(view: View<'_>, start: Option<BodyKey>, limits: PageLimits) -> Result<Slice, StorageError> {
        let mut slice = Slice { last: start, ..Slice::default() };
        let mut budget = Budget::new(limits);
        let mut asked = None;
        let mut ends = false;
        let start = start.map(keys::body);
        let from = start.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(&key[..]));
        for row in view.range(Table::Bodies, (from, Bound::Unbounded), Direction::Forward)? {
            if ends {
                return Ok(slice);
            }
            slice.examined += 1;
            // What is damaged is left as it is, and the sweep goes on.
            let Some((key, value)) = unless_damaged(row)? else { continue };
            // No slice ends with a row that does not tell its place.
            let Ok(place) = keys::read_body(key) else { continue };
            slice.last = Some(place);
            // All of it was read, for its checksum.
            budget.charge_row(value.len());
            if let Ok((id, json)) = body::decode(value) {
                let doc = match asked.take().filter(|last: &Needs<'_>| last.id == id) {
                    Some(same) => same,
                    None => {
                        budget.took_long();
                        Needs::read(view, id)?
                    }
                };
                if !doc.needs(place) {
                    slice.unneeded.push(place);
                    slice.bytes += json.len() as u64;
                }
                asked = Some(doc);
            }
            ends = budget.spent();
        }
        slice.swept = true;
        Ok(slice)
    }
}

/// Which bodies the document needs that was looked at last. It is remembered, as the bodies that one request brings to
/// a document lie side by side, and a document takes the longer to be read the more leaves it has.
struct Needs<'txn> {
    id: &'txn str,
    /// What its leaves have, in order; `None` where it is damaged.
    bodies: Option<Vec<BodyKey>>,
}

impl<'txn> Needs<'txn> {
    fn read(view: View<'txn>, id: &'txn str) -> Result<Needs<'txn>, StorageError> {
        let head = unless_damaged(view.head(&DocId::stored(id)))?;
        let bodies_of = |head: DocHead| {
            let places = head.tree.leaves().iter().map(|leaf| leaf.body);
            let mut bodies: Vec<BodyKey> = places.filter_map(BodyPlace::key).collect();
            bodies.sort_unstable();
            bodies
        };
        Ok(Needs { id, bodies: head.map(|head| head.map(bodies_of).unwrap_or_default()) })
    }

    /// Whether it has the body, or might have it.
    fn needs(&self, body: BodyKey) -> bool {
        self.bodies.as_ref().is_none_or(|bodies| bodies.binary_search(&body).is_ok())
    }
}
