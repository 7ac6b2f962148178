//! A feed's events, its rows portion by portion: what is encoded ahead of a slow client stays small.

use std::collections::VecDeque;
use std::sync::Arc;

use seqtide::{Error, Feed, FeedEvent, Row};

/// A portion ends with the row that fills this many bytes.
pub const PORTION_BYTES: usize = 64 << 10;

/// A feed that gives its rows in portions. The rows still to come are those of the feed's page, shared with other feeds.
pub struct Portions {
    /// The feed.
    pub feed: Feed,
    rows: VecDeque<Arc<Row>>,
}

impl Portions {
    /// The portions of this feed.
    pub fn new(feed: Feed) -> Portions {
        Portions { feed, rows: VecDeque::new() }
    }

    /// Waits for the next event, as [`Feed::next`].
    ///
    /// # Errors
    /// As [`Feed::next`].
    pub async fn next(&mut self) -> Result<Option<FeedEvent>, Error> {
        if self.rows.is_empty() {
            match self.feed.next().await? {
                Some(FeedEvent::Rows(rows)) => self.rows = rows.into(),
                other => return Ok(other),
            }
        }
        Ok(Some(FeedEvent::Rows(self.portion())))
    }

    fn portion(&mut self) -> Vec<Arc<Row>> {
        let shape = self.feed.options().shape;
        let (mut rows, mut bytes) = (0, 0);
        while bytes < PORTION_BYTES
            && let Some(row) = self.rows.get(rows)
        {
            bytes += row.frame(shape).json().len();
            rows += 1;
        }
        self.rows.drain(..rows).collect()
    }
}
