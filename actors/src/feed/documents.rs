//! The documents of a database as what a feed is of: pages from the tail where it reaches, else from the disk.

use std::sync::Arc;

use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{ChangesPage, Direction, PageLimits, ReadChanges, Snapshot, StorageError};
use tokio::sync::watch;

use super::options::FeedOptions;
use super::source::{Page, Source, Wanted};
use super::{EndReason, Feed};
use crate::error::Error;
use crate::filter::Filter;
use crate::matcher::Wake;
use crate::open_database::OpenDatabase;
use crate::permits::FeedPermit;
use crate::row::Row;

/// Most rows handed on at once.
const PAGE_ROWS: usize = 1000;
/// A page ends with the row that fills this many bytes: what is read ahead of a slow reader stays small.
const PAGE_BYTES: usize = 32 << 10;
/// Looking a document up costs about as much as walking past this many rows.
const ROWS_A_LOOKUP: u64 = 8;

/// The documents of a database, for one feed.
pub struct Documents {
    database: Arc<OpenDatabase>,
    wake: Wake,
}

impl Feed<Documents> {
    pub(crate) async fn of_documents(
        database: Arc<OpenDatabase>,
        options: FeedOptions,
        permit: FeedPermit,
    ) -> Result<Feed<Documents>, Error> {
        // Joined first: what is committed from here on wakes.
        let wake = database.live.join(&options.filter);
        let newest = database.live.newest();
        // The disk may be a commit ahead of what feeds can see.
        let end = last_row(&database).await?.min(newest);
        Feed::open(Documents { database, wake }, options, (newest, end), permit)
    }
}

impl Source for Documents {
    type Row = Row;

    fn newest(&self) -> Sequence {
        self.database.live.newest()
    }

    fn seq_format(&self) -> SeqFormat {
        self.database.seq_format
    }

    fn ended(&self) -> watch::Receiver<Option<EndReason>> {
        self.database.live.ended()
    }

    async fn read(&self, options: &FeedOptions, wanted: Wanted) -> Result<Page<Row>, Error> {
        read(&self.database, options, wanted).await
    }

    async fn pending(&self, seq: Sequence, direction: Direction) -> Result<u64, Error> {
        let read = move |snapshot: &Snapshot<'_>| match direction {
            Direction::Forward => snapshot.rows_after(seq),
            Direction::Backward => Ok(snapshot.counters()?.rows() - snapshot.rows_after(seq.before())?),
        };
        self.database.read(read).await
    }

    async fn woken(&mut self) {
        self.wake.woken().await;
    }

    fn nothing_up_to(&mut self) -> Option<Sequence> {
        let examined = self.database.live.examined();
        self.wake.nothing_up_to(examined)
    }
}

/// The last row on disk.
async fn last_row(database: &Arc<OpenDatabase>) -> Result<Sequence, Error> {
    database.read(|snapshot| snapshot.last_row_seq()).await
}

pub(super) async fn read(
    database: &Arc<OpenDatabase>,
    options: &FeedOptions,
    wanted: Wanted,
) -> Result<Page<Row>, Error> {
    let rows_max = wanted.rows_max.min(PAGE_ROWS);
    if wanted.direction == Direction::Forward
        && let Some(page) = from_tail(database, options, wanted, rows_max)
    {
        return Ok(page);
    }
    let (filter, detail, format) = (options.filter.clone(), options.detail(), database.seq_format);
    let limits = PageLimits { rows_max, bytes_max: PAGE_BYTES, ..PageLimits::default() };
    let Wanted { after, up_to, direction, .. } = wanted;
    let stretch = ReadChanges { after, up_to, direction, detail, limits };
    let page = database.read(move |snapshot| from_disk(snapshot, &filter, &stretch)).await?;
    let rows = page.changes.into_iter().map(|change| Arc::new(Row::new(change, format))).collect();
    Ok(Page { rows, examined: page.examined, complete: page.complete })
}

fn from_tail(database: &OpenDatabase, options: &FeedOptions, wanted: Wanted, rows_max: usize) -> Option<Page<Row>> {
    let Wanted { after, up_to, .. } = wanted;
    let tail = database.live.tail();
    let page = tail.read((after, up_to), (rows_max, PAGE_BYTES), options.detail(), |id| options.filter.keeps(id))?;
    let complete = page.examined >= up_to;
    Some(Page { rows: page.rows, examined: Some(page.examined), complete })
}

fn from_disk(snapshot: &Snapshot<'_>, filter: &Filter, stretch: &ReadChanges) -> Result<ChangesPage, StorageError> {
    if let Filter::Ids(ids) = filter {
        let rows = match stretch.direction {
            Direction::Forward => snapshot.rows_after(stretch.after)?,
            Direction::Backward => snapshot.counters()?.rows(),
        };
        if (ids.len() as u64).saturating_mul(ROWS_A_LOOKUP) <= rows {
            return snapshot.changes_of(ids, stretch);
        }
    }
    snapshot.changes(stretch, &|id| filter.keeps(id))
}
