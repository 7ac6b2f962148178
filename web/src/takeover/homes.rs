//! Which worker serves feeds that give the same: one, its group's home, for each that takes part reads the feed and
//! wakes up for every row; all of them once one does not keep up.

use std::collections::HashMap;
use std::sync::Arc;

use actix::Addr;
use parking_lot::{Mutex, MutexGuard};
use seqtide::Likeness;

use super::feeds::Feeds;

/// The homes of a server's groups. Clones are of the same server.
#[derive(Clone, Default)]
pub struct Homes(Arc<Mutex<HashMap<Likeness, Home>>>);

struct Home {
    /// The worker to which those who come are brought; `None` where each has its own.
    at: Option<Addr<Feeds>>,
    /// Groups at any worker. Several that come at once may find none at home yet, and stay where they are.
    groups: usize,
}

impl Homes {
    fn homes(&self) -> MutexGuard<'_, HashMap<Likeness, Home>> {
        self.0.lock()
    }

    /// To whom a feed is to be brought; `None` where its worker is to serve it itself.
    pub fn of(&self, likeness: &Likeness) -> Option<Addr<Feeds>> {
        self.homes().get(likeness)?.at.clone().filter(Addr::connected)
    }

    /// Takes note of a group that a worker has made: it is the home of those to come, if they have none.
    pub fn founded(&self, likeness: &Likeness, feeds: Addr<Feeds>) {
        let mut homes = self.homes();
        let home = homes.entry(likeness.clone()).or_insert_with(|| Home { at: Some(feeds.clone()), groups: 0 });
        if home.at.as_ref().is_some_and(|at| !at.connected()) {
            *home = Home { at: Some(feeds), groups: 0 };
        }
        home.groups += 1;
    }

    /// From now on each worker serves its own; `false` where this one has not been the home of all.
    pub fn share(&self, likeness: &Likeness, own: &Addr<Feeds>) -> bool {
        let mut homes = self.homes();
        homes.get_mut(likeness).and_then(|home| home.at.take_if(|at| at == own)).is_some()
    }

    /// Takes note of a group that is over. When all are, who comes begins anew.
    pub fn over(&self, likeness: &Likeness) {
        let mut homes = self.homes();
        if let Some(home) = homes.get_mut(likeness) {
            home.groups = home.groups.saturating_sub(1);
            if home.groups == 0 {
                homes.remove(likeness);
            }
        }
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
        (0..2).for_each(|_| homes.over(&likeness));
        assert_eq!(homes.of(&likeness), None, "one of three is left");
        homes.over(&likeness);
        homes.founded(&likeness, second.clone());
        assert_eq!(homes.of(&likeness), Some(second));
    }
}
