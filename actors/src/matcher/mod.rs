//! Whom does a commit wake? Subscribers stand in groups by what they wait for, so that a commit wakes those it may
//! concern and costs nothing for the others.
//!
//! A woken subscriber is not told what changed: it pulls. One that was not woken knows that nothing up to
//! [`Matcher::examined`] concerned it.

mod asking;
mod groups;
mod place;
mod prefixes;
mod terms;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::Sequence;
use tokio::sync::watch;

use self::groups::{Group, Groups};
use crate::filter::{Filter, Ids};
use crate::metrics::FilterMetrics;
use crate::row::Row;

/// A group is put under so many ids at once.
pub(crate) const LISTED_AT_ONCE: usize = 1_000;

/// The wake groups of one database.
pub(crate) struct Matcher {
    /// Everyone who waits for any change.
    all: watch::Sender<Mark>,
    groups: Mutex<Groups>,
    /// Whoever has a place in any group has a share of it.
    places: Arc<()>,
    /// Every change up to here has woken whom it concerns.
    examined: watch::Sender<Sequence>,
}

/// What the next to wake a group leaves for those who have looked by then: up to where everything had been examined
/// before. So each knows that of the first wake behind its own look, whatever others of its group have done since.
type Note = Arc<OnceLock<Sequence>>;

/// How a group is woken.
#[derive(Debug, Default)]
struct Mark {
    next: Note,
}

impl Mark {
    fn wake(&mut self, examined_before: Sequence) {
        // Where nobody has looked since the wake before, nobody reads it.
        if Arc::strong_count(&self.next) > 1 {
            // It is written once: the next wake has another.
            let _ = std::mem::take(&mut self.next).set(examined_before);
        }
    }

    fn look(&self) -> Note {
        Arc::clone(&self.next)
    }
}

/// A place in a wake group, left when dropped.
pub(crate) struct Wake {
    woken: watch::Receiver<Mark>,
    /// What the first to wake it since it looked has left.
    note: Note,
    group: Option<Arc<Group>>,
    place: Arc<()>,
}

impl Wake {
    fn new(mut woken: watch::Receiver<Mark>, group: Option<Arc<Group>>, place: Arc<()>) -> Wake {
        let note = woken.borrow_and_update().look();
        Wake { woken, note, group, place }
    }

    /// Another place in the same group.
    pub fn again(&self) -> Wake {
        Wake::new(self.woken.clone(), self.group.clone(), Arc::clone(&self.place))
    }

    /// The same for all who are in one group, as long as one of them is.
    pub fn identity(&self) -> usize {
        self.group.as_ref().map_or(0, |group| Arc::as_ptr(group).addr())
    }

    /// What everyone in the group waits for, equal to what this subscriber asked for; `None` in that of all changes.
    pub fn filter(&self) -> Option<&Filter> {
        self.group.as_deref().map(|group| &group.filter)
    }

    /// Waits until a change may concern this subscriber; at once if one did since the last call.
    pub async fn woken(&mut self) {
        if self.woken.changed().await.is_err() {
            // The database is closing; its feeds are told so another way.
            std::future::pending().await
        }
    }

    /// Up to where nothing concerned this subscriber since it was here last, `examined` being what the matcher said
    /// before.
    pub fn nothing_up_to(&mut self, examined: Sequence) -> Sequence {
        // Nobody is woken while it is borrowed.
        let next = self.woken.borrow_and_update().look();
        std::mem::replace(&mut self.note, next).get().copied().unwrap_or(examined)
    }
}

impl Matcher {
    /// The groups of a database whose update sequence is `at`.
    pub fn new(at: Sequence) -> Matcher {
        let (all, examined) = (watch::Sender::default(), watch::Sender::new(at));
        Matcher { all, groups: Mutex::default(), places: Arc::default(), examined }
    }

    /// Whether anybody has a place in a group.
    pub fn is_anybody_there(&self) -> bool {
        Arc::strong_count(&self.places) > 1
    }

    /// Up to where every change has woken whom it concerns.
    pub fn examined(&self) -> Sequence {
        *self.examined.borrow()
    }

    /// Waits until that is so up to a sequence; without an end where the database closes before.
    pub fn reached(&self, seq: Sequence) -> impl Future<Output = ()> + Send + 'static {
        reached(self.examined.subscribe(), seq)
    }

    /// Joins the group that waits for what may pass the filter.
    pub fn join(&self, filter: &Filter, all_leaves: bool) -> Wake {
        if *filter == Filter::ALL {
            return Wake::new(self.all.subscribe(), None, Arc::clone(&self.places));
        }
        let group = match &filter.ids {
            Ids::Listed(ids) => self.join_listed(ids, filter, all_leaves),
            Ids::All => self.groups.lock().join(filter, None, all_leaves),
            Ids::Prefix(prefix) => self.groups.lock().join(filter, Some(prefix), all_leaves),
        };
        Wake::new(group.woken.subscribe(), Some(group), Arc::clone(&self.places))
    }

    /// A commit does not wait until the whole of a long list is in its places.
    fn join_listed(&self, ids: &HashSet<DocId>, filter: &Filter, all_leaves: bool) -> Arc<Group> {
        let group = self.groups.lock().new_group(filter, all_leaves);
        let ids: Vec<&DocId> = ids.iter().collect();
        for some in ids.chunks(LISTED_AT_ONCE) {
            self.groups.lock().stand_under(some, &group);
        }
        group
    }

    /// Wakes whom the changes of a commit concern. They must be readable by then.
    pub fn publish(&self, rows: &[Arc<Row>], newest: Sequence, counted: &FilterMetrics) {
        let before = self.examined();
        let concerned = self.groups.lock().concerned_by(rows, counted);
        for group in concerned {
            group.woken.send_modify(|mark| mark.wake(before));
        }
        if !rows.is_empty() {
            self.all.send_modify(|mark| mark.wake(before));
        }
        self.examined.send_replace(newest);
    }
}

/// Waits for a sequence; without an end where nobody counts any more: feeds are told so another way.
pub(crate) async fn reached(mut newest: watch::Receiver<Sequence>, seq: Sequence) {
    if newest.wait_for(|newest| *newest >= seq).await.is_err() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests;
