//! Pages of rows for a feed: from the tail where it reaches, else from the disk.

use std::sync::Arc;

use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{ChangesPage, Direction, PageLimits, ReadChanges, Snapshot, StorageError};

use super::options::FeedOptions;
use crate::error::Error;
use crate::filter::Filter;
use crate::open_database::OpenDatabase;
use crate::row::Row;

/// Most rows handed on at once.
const PAGE_ROWS: usize = 1000;
/// A page ends with the row that fills this many bytes: what is read ahead of a slow reader stays small.
const PAGE_BYTES: usize = 32 << 10;
/// Looking a document up costs about as much as walking past this many rows.
const ROWS_A_LOOKUP: u64 = 8;

/// A stretch of the feed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub after: Sequence,
    pub up_to: Sequence,
    pub rows_max: usize,
    pub direction: Direction,
}

/// Part of it.
pub(super) struct Page {
    pub rows: Vec<Arc<Row>>,
    /// The last row examined.
    pub examined: Option<Sequence>,
    /// Whether all of it has been read.
    pub complete: bool,
}

/// The last row on disk.
pub(super) async fn last_row(database: &Arc<OpenDatabase>) -> Result<Sequence, Error> {
    database.read(|snapshot| snapshot.last_row_seq()).await
}

pub(super) async fn pending(database: &Arc<OpenDatabase>, seq: Sequence, direction: Direction) -> Result<u64, Error> {
    let read = move |snapshot: &Snapshot<'_>| match direction {
        Direction::Forward => snapshot.rows_after(seq),
        Direction::Backward => Ok(snapshot.counters()?.rows() - snapshot.rows_after(seq.before())?),
    };
    database.read(read).await
}

pub(super) async fn read(database: &Arc<OpenDatabase>, options: &FeedOptions, wanted: Wanted) -> Result<Page, Error> {
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

fn from_tail(database: &OpenDatabase, options: &FeedOptions, wanted: Wanted, rows_max: usize) -> Option<Page> {
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
