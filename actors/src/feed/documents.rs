//! The documents of a database as what a feed is of: pages from the tail where it reaches, else from the disk.

use std::sync::Arc;

use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{ChangesPage, Direction, PageLimits, ReadChanges, Snapshot, StorageError};
use tokio::sync::watch;

use super::options::FeedOptions;
use super::shown::{self, NotInTail};
use super::source::{Page, Source, Wanted};
use super::{EndReason, Feed};
use crate::error::Error;
use crate::filter::{Ids, Test};
use crate::matcher::Wake;
use crate::open_database::OpenDatabase;
use crate::permits::FeedPermit;
use crate::row::Row;

/// Most rows handed on at once.
const PAGE_ROWS: usize = 1000;
/// A page ends with the row that fills this many bytes: what is read ahead of a slow reader stays small.
const PAGE_BYTES: usize = 32 << 10;
/// A page from memory ends with the row that fills this many bytes of what the filter looks at, wanted or not: other
/// feeds have their turn.
const JUDGED_BYTES: usize = 1 << 20;
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
        let wake = database.live.join(&options.filter, options.shape.all_leaves);
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
    let (options, format) = (options.clone(), database.seq_format);
    let limits = PageLimits { rows_max, bytes_max: PAGE_BYTES, ..PageLimits::default() };
    let Wanted { after, up_to, direction, .. } = wanted;
    let stretch = ReadChanges { after, up_to, direction, detail: options.read_detail(), limits };
    let page = database.read(move |snapshot| from_disk(snapshot, &options, &stretch, format)).await?;
    let rows = page.changes.into_iter().map(Arc::new).collect();
    Ok(Page { rows, examined: page.examined, complete: page.complete })
}

/// `None` when the tail does not reach back so far, or does not hold what the filter looks at.
fn from_tail(database: &OpenDatabase, options: &FeedOptions, wanted: Wanted, rows_max: usize) -> Option<Page<Row>> {
    let Wanted { after, up_to, .. } = wanted;
    let (limits, detail) = match options.filter.test == Test::NONE {
        true => ((rows_max, PAGE_BYTES), options.detail()),
        false => ((PAGE_ROWS, JUDGED_BYTES), options.read_detail()),
    };
    let keep = |id: &str| options.filter.ids.contains(id);
    // The lock is gone before the first row is judged.
    let candidates = database.live.tail().read((after, up_to), limits, detail, keep)?;
    let mut page = Page { rows: Vec::new(), examined: None, complete: false };
    let mut bytes = 0;
    for row in candidates.rows {
        if page.rows.len() == rows_max || bytes >= PAGE_BYTES {
            return Some(page);
        }
        let seq = row.change().seq;
        match shown::of_tail(row, options) {
            Ok(Some(row)) => {
                bytes += row.change().bytes(options.detail());
                page.rows.push(row);
            }
            Ok(None) => {}
            Err(NotInTail) => return page.examined.is_some().then_some(page),
        }
        page.examined = Some(seq);
    }
    page.examined = Some(candidates.examined);
    page.complete = candidates.examined >= up_to;
    Some(page)
}

fn from_disk(
    snapshot: &Snapshot<'_>,
    options: &FeedOptions,
    stretch: &ReadChanges,
    format: SeqFormat,
) -> Result<ChangesPage<Row>, StorageError> {
    let show = |change| shown::of_disk(snapshot, change, options, format);
    if let Ids::Listed(ids) = &options.filter.ids {
        let rows = match stretch.direction {
            Direction::Forward => snapshot.rows_after(stretch.after)?,
            Direction::Backward => snapshot.counters()?.rows(),
        };
        if (ids.len() as u64).saturating_mul(ROWS_A_LOOKUP) <= rows {
            return snapshot.changes_of_shown(ids, stretch, show);
        }
    }
    snapshot.changes_shown(stretch, &|id| options.filter.ids.contains(id), show)
}
