//! How far feeds are behind.

use std::collections::BTreeMap;

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::Sequence;

use crate::engine::Engine;
use crate::error::Error;
use crate::known::FeedInfo;
use crate::metrics::{self, FeedKind};

impl Engine {
    /// How many rows, before any filter, each of these feeds has not given yet, in their order; 0 of one that has
    /// everything, and of one whose database is closed meanwhile. Each database is read once.
    pub async fn rows_behind(&self, feeds: &[FeedInfo]) -> Vec<u64> {
        let mut rows = vec![0; feeds.len()];
        let mut of: BTreeMap<Option<&DbName>, Vec<usize>> = BTreeMap::new();
        for (place, feed) in feeds.iter().enumerate().filter(|(_, feed)| feed.behind_since.is_some()) {
            of.entry(feed.about.database.as_ref()).or_default().push(place);
        }
        for (database, places) in of {
            let positions: Vec<Sequence> = places.iter().map(|place| feeds[*place].position).collect();
            let behind = self.rows_after(database, positions).await.unwrap_or_default();
            places.into_iter().zip(behind).for_each(|(place, behind)| rows[place] = behind);
        }
        rows
    }

    /// Has the metrics say how the open feeds are behind, of which there are so many of each kind; `behind` are those that
    /// lack rows.
    pub async fn measure_lag(&self, open: &BTreeMap<FeedKind, usize>, behind: &[FeedInfo]) {
        let rows = self.rows_behind(behind).await;
        for kind in FeedKind::ALL {
            let of_kind = behind.iter().zip(&rows).filter(|(feed, _)| feed.about.kind == kind);
            let seconds = |feed: &FeedInfo| feed.behind_since.map_or(0.0, |since| since.elapsed().as_secs_f64());
            let lags: Vec<(u64, f64)> = of_kind.map(|(feed, rows)| (*rows, seconds(feed))).collect();
            metrics::feeds_lag(kind, open.get(&kind).copied().unwrap_or(0), &lags);
        }
    }

    async fn rows_after(&self, database: Option<&DbName>, positions: Vec<Sequence>) -> Result<Vec<u64>, Error> {
        let Some(name) = database else {
            let updates = self.inner.updates.log();
            return Ok(positions.iter().map(|position| updates.count(*position, Sequence::MAX)).collect());
        };
        let open = self.inner.open.get(name).ok_or(Error::NoDatabase)?;
        open.read(move |snapshot| positions.iter().map(|position| snapshot.rows_after(*position)).collect()).await
    }
}
