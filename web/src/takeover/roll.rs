//! The roll of the feeds that a server's workers serve: who is there, the end of one, the end of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Addr, Message, MessageResponse};
use futures_util::future::join_all;
use parking_lot::Mutex;
use seqtide::{Drain, FeedId, FeedInfo, FeedKind};

use super::feeds::Feeds;
use super::homes::Homes;

/// Which of its feeds a worker is to name.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "Listed")]
pub struct List {
    /// Those with higher ids.
    pub after: FeedId,
    /// Only those that have rows which are not written.
    pub only_behind: bool,
    /// At most so many, those with the lowest ids.
    pub most: usize,
}

/// Feeds, in no order, and how many of each kind there are in all.
#[derive(Debug, Default, MessageResponse)]
pub struct Listed {
    pub feeds: Vec<FeedInfo>,
    pub open: BTreeMap<FeedKind, usize>,
}

/// End a feed, if it is one of yours.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "bool")]
pub struct EndFeed(pub FeedId);

/// End your feeds one after the other.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct DrainFeeds(pub Drain);

/// The workers of a server that serve feeds, and which of them serves which. Clones are of the same server.
#[derive(Clone, Default)]
pub struct Workers {
    feeds: Arc<Mutex<Vec<Addr<Feeds>>>>,
    homes: Homes,
}

impl Workers {
    /// Adds a worker's feeds; those of a worker that has ended are forgotten.
    pub fn add(&self, feeds: Addr<Feeds>) {
        let mut all = self.feeds.lock();
        all.retain(Addr::connected);
        all.push(feeds);
    }

    /// Where feeds that give the same are served.
    pub fn homes(&self) -> &Homes {
        &self.homes
    }

    /// The feeds of all workers.
    pub fn all(&self) -> Vec<Addr<Feeds>> {
        self.feeds.lock().clone()
    }

    /// What each worker names, put together.
    pub async fn list(&self, list: List) -> Listed {
        let mut all = Listed::default();
        // A worker that ends meanwhile serves nobody.
        for of_worker in join_all(self.all().iter().map(|feeds| feeds.send(list))).await.into_iter().flatten() {
            all.feeds.extend(of_worker.feeds);
            of_worker.open.into_iter().for_each(|(kind, open)| *all.open.entry(kind).or_default() += open);
        }
        all
    }

    /// Ends a feed; `false` where no worker serves it.
    pub async fn end(&self, id: FeedId) -> bool {
        let found = join_all(self.all().iter().map(|feeds| feeds.send(EndFeed(id)))).await;
        found.into_iter().flatten().any(|found| found)
    }

    /// Has all feeds end in their turn.
    pub fn drain(&self, drain: Drain) {
        self.all().iter().for_each(|feeds| feeds.do_send(DrainFeeds(drain)));
    }
}
