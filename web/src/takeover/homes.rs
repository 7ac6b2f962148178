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

#[cfg(test)]
mod tests {
    use actix::Actor;
    use seqtide::{Engine, FeedKind, FeedOptions};

    use super::super::roll::Workers;
    use super::*;

    async fn likeness(engine: &Engine, database: &str) -> Likeness {
        let database = engine.create_database(database).await.unwrap();
        let mut feed = database.feed(FeedOptions::live(FeedKind::Sse)).await.unwrap();
        loop {
            match feed.likeness() {
                Some(likeness) => return likeness,
                None => feed.next().await.unwrap(),
            };
        }
    }

    #[actix_web::test]
    async fn a_worker_is_the_home_of_all_until_it_shares_them_and_of_none_when_they_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let (likeness, other) = (likeness(&engine, "db").await, likeness(&engine, "other").await);
        let worker = || Feeds::new(Workers::default()).unwrap().start();
        let (first, second) = (worker(), worker());
        let homes = Homes::default();
        assert_eq!(homes.of(&likeness), None);
        homes.founded(&likeness, first.clone());
        homes.founded(&likeness, second.clone());
        assert_eq!(homes.of(&likeness), Some(first.clone()), "who came first");
        assert_eq!(homes.of(&other), None, "other feeds have their own");
        assert!(!homes.share(&likeness, &second), "it is not the home");
        assert!(homes.share(&likeness, &first));
        assert_eq!(homes.of(&likeness), None, "each worker has its own");
        assert!(!homes.share(&likeness, &first), "they are shared once");
        homes.founded(&likeness, second.clone());
        assert_eq!(homes.of(&likeness), None, "as long as there are some");
        homes.over(&likeness);
        homes.founded(&likeness, second.clone());
        assert_eq!(homes.of(&likeness), Some(second));
    }
}
