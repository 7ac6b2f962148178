//! The feeds that are open on this server, whoever serves them.

use std::collections::BTreeMap;

use seqtide::{Engine, FeedId, FeedInfo};

use crate::takeover::roll::{List, Listed, Workers};

/// How often all are asked for a feed: one that goes from worker to worker is missed by who asks them in the other
/// order.
const ASKED: usize = 2;

/// Feeds in the order in which they were opened, and how many are open in all.
pub struct KnownFeeds {
    pub feeds: Vec<FeedInfo>,
    pub open: usize,
}

/// Lists feeds: of those opened after one, the first `most`. A feed that changes hands meanwhile is listed once.
pub async fn list(engine: &Engine, workers: &Workers, after: FeedId, most: usize) -> KnownFeeds {
    let mut feeds = BTreeMap::new();
    let add = |feeds: &mut BTreeMap<FeedId, FeedInfo>, found: Vec<FeedInfo>| {
        feeds.extend(found.into_iter().filter(|feed| feed.record.id > after).map(|feed| (feed.record.id, feed)));
    };
    add(&mut feeds, engine.feeds());
    add(&mut feeds, workers.list(List { after, most, only_behind: false }).await.feeds);
    // Those that have left their worker since it was asked for them.
    add(&mut feeds, engine.feeds());
    // Not by who was asked when: one that changes hands meanwhile would be counted twice, or not at all.
    KnownFeeds { feeds: feeds.into_values().take(most).collect(), open: engine.feeds_open() }
}

/// One of them.
pub async fn find(engine: &Engine, workers: &Workers, id: FeedId) -> Option<FeedInfo> {
    for _ in 0..ASKED {
        let first = list(engine, workers, id.checked_sub(1)?, 1).await.feeds.pop();
        if let Some(found) = first.filter(|first| first.record.id == id) {
            return Some(found);
        }
    }
    None
}

/// Ends one of them; `false` where there is none of this number.
pub async fn end(engine: &Engine, workers: &Workers, id: FeedId) -> bool {
    for _ in 0..ASKED {
        if engine.end_feed(id) || workers.end(id).await {
            return true;
        }
    }
    engine.end_feed(id)
}

/// Has the metrics say how the feeds are behind, as they stand now.
pub async fn measure_lag(engine: &Engine, workers: &Workers) {
    let Listed { feeds, mut open } = workers.list(List { after: 0, most: usize::MAX, only_behind: true }).await;
    let by_themselves = engine.feeds();
    for feed in &by_themselves {
        *open.entry(feed.about.kind).or_default() += 1;
    }
    let behind = feeds.into_iter().chain(by_themselves).filter(|feed| feed.behind_since.is_some());
    let behind: BTreeMap<FeedId, FeedInfo> = behind.map(|feed| (feed.record.id, feed)).collect();
    engine.measure_lag(&open, &behind.into_values().collect::<Vec<_>>()).await;
}
