//! Which worker serves feeds that give the same: one, for each that takes part reads the feed and wakes up for every row;
//! all of them once one is not enough.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::Addr;
use seqtide::Likeness;

use super::feeds::Feeds;

/// Where a server's groups of feeds are. Clones are of the same server.
#[derive(Clone, Default)]
pub struct Homes(Arc<Mutex<HashMap<Likeness, Home>>>);

enum Home {
    /// A worker to which all are brought.
    At(Addr<Feeds>),
    /// Each worker has its own.
    Everywhere,
}

impl Homes {
    fn homes(&self) -> MutexGuard<'_, HashMap<Likeness, Home>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To whom a feed is to be brought that a worker is to serve itself otherwise.
    pub fn of(&self, likeness: &Likeness) -> Option<Addr<Feeds>> {
        match self.homes().get(likeness) {
            Some(Home::At(feeds)) if feeds.connected() => Some(feeds.clone()),
            _ => None,
        }
    }

    /// Takes note of a group that a worker has made: others are brought there, if they have no home yet.
    pub fn founded(&self, likeness: &Likeness, feeds: Addr<Feeds>) {
        self.homes().entry(likeness.clone()).or_insert(Home::At(feeds));
    }

    /// From now on each worker serves its own; `false` where this one has not been the home of all.
    pub fn share(&self, likeness: &Likeness, own: &Addr<Feeds>) -> bool {
        let mut homes = self.homes();
        let is_home = matches!(homes.get(likeness), Some(Home::At(feeds)) if feeds == own);
        if is_home {
            homes.insert(likeness.clone(), Home::Everywhere);
        }
        is_home
    }

    /// Takes note of a group that is over: who comes begins anew.
    pub fn over(&self, likeness: &Likeness) {
        self.homes().remove(likeness);
    }
}
