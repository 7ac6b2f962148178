//! How far feeds are behind.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{Snapshot, StorageError};

use crate::engine::Engine;
use crate::error::Error;
use crate::feed::kind::FeedKind;
use crate::known::FeedInfo;
use crate::metrics;

/// A snapshot is let go of after so long, as a page's is; other positions are counted in the next.
const SNAPSHOT_MAX: Duration = Duration::from_millis(50);

impl Engine {
    /// How many rows, before any filter, each of these feeds has not given yet, in their order; 0 of one that has
    /// everything, and of one whose database is closed meanwhile. Each position of a database is counted once.
    pub async fn rows_behind(&self, feeds: &[FeedInfo]) -> Vec<u64> {
        let mut rows = vec![0; feeds.len()];
        let mut of: BTreeMap<Option<&DbName>, BTreeMap<Sequence, Vec<usize>>> = BTreeMap::new();
        for (place, feed) in feeds.iter().enumerate().filter(|(_, feed)| feed.behind_since.is_some()) {
            of.entry(feed.about.database.as_ref()).or_default().entry(feed.position).or_default().push(place);
        }
        for (database, at) in of {
            let behind = self.rows_after(database, at.keys().copied().collect()).await.unwrap_or_default();
            for (places, behind) in at.into_values().zip(behind) {
                places.into_iter().for_each(|place| rows[place] = behind);
            }
        }
        rows
    }

    /// Has the metrics say how the open feeds are behind, of which there are so many of each kind; `behind` are those
    /// that lack rows.
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
        let (mut rows, mut left) = (Vec::with_capacity(positions.len()), positions);
        while !left.is_empty() {
            let counted;
            (counted, left) = open.read(move |snapshot| count_some(snapshot, left, SNAPSHOT_MAX)).await?;
            rows.extend(counted);
        }
        Ok(rows)
    }
}

/// The rows behind the first of these positions, one at least and as many as there is time for, and the positions left.
fn count_some(
    snapshot: &Snapshot<'_>,
    mut positions: Vec<Sequence>,
    time_max: Duration,
) -> Result<(Vec<u64>, Vec<Sequence>), StorageError> {
    let began = Instant::now();
    let mut rows = Vec::new();
    for position in &positions {
        rows.push(snapshot.rows_after(*position)?);
        if began.elapsed() >= time_max {
            break;
        }
    }
    let left = positions.split_off(rows.len());
    Ok((rows, left))
}
