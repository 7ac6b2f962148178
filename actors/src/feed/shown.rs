//! What a feed shows of a change: the row, less of it, or nothing.

use std::sync::Arc;

use seqtide_storage::model::sequence::SeqFormat;
use seqtide_storage::{Change, Snapshot, StorageError};

use super::options::FeedOptions;
use crate::filter::{Passed, Test};
use crate::frames::Frames;
use crate::live::Live;
use crate::metrics::FilterMetrics;
use crate::row::{NotInMemory, Row, Trim};
use crate::selector::DocView;

/// What a page is made of.
pub(super) trait PageRow: AsRef<Change> + Send + Sync + Sized + 'static {
    /// Of a row in memory, shared where it is taken as it is; `None` when it is not wanted.
    fn of_tail(row: Arc<Row>, options: &FeedOptions, counted: &FilterMetrics)
    -> Result<Option<Arc<Self>>, NotInMemory>;

    /// Of a change in this state of the database.
    fn of_disk(
        snapshot: &Snapshot<'_>,
        change: Change,
        options: &FeedOptions,
        live: &Live,
        format: SeqFormat,
    ) -> Result<Option<Self>, StorageError>;

    /// Rows of the disk as the feed gives them: themselves, or as bytes alone.
    fn given(rows: Vec<Self>, _: &FeedOptions) -> (Vec<Arc<Self>>, Frames) {
        (rows.into_iter().map(Arc::new).collect(), Frames::default())
    }
}

impl PageRow for Row {
    fn of_tail(row: Arc<Row>, options: &FeedOptions, counted: &FilterMetrics) -> Result<Option<Arc<Row>>, NotInMemory> {
        let winner = DocView::of_winner(row.change());
        let passed = row.judge(&options.filter.test, winner.as_ref(), options.shape.all_leaves, counted)?;
        Ok(trim_for(passed, options).map(|trim| match trim.is_none() {
            true => row,
            false => Arc::new(Row::trimmed(row.change().clone(), row.seq_format(), trim)),
        }))
    }

    fn of_disk(
        snapshot: &Snapshot<'_>,
        mut change: Change,
        options: &FeedOptions,
        live: &Live,
        format: SeqFormat,
    ) -> Result<Option<Row>, StorageError> {
        let passed = judge_on_disk(snapshot, &change, options, live)?;
        Ok(trim_for(passed, options).map(|trim| {
            // What only the filter looked at takes no memory in the page.
            change.body = change.body.take().filter(|_| options.shape.doc);
            Row::trimmed(change, format, trim)
        }))
    }

    fn given(rows: Vec<Row>, options: &FeedOptions) -> (Vec<Arc<Row>>, Frames) {
        match options.frames {
            Some(form) => (Vec::new(), Frames::of(rows, options.shape, form)),
            None => (rows.into_iter().map(Arc::new).collect(), Frames::default()),
        }
    }
}

/// What of a change passes the feed's test.
pub(super) fn judge_on_disk(
    snapshot: &Snapshot<'_>,
    change: &Change,
    options: &FeedOptions,
    live: &Live,
) -> Result<Passed, StorageError> {
    let (test, all_leaves) = (&options.filter.test, options.shape.all_leaves);
    if test.opens_losers(change, all_leaves) {
        return judge_losers(snapshot, change, test, live);
    }
    let no_loser = |_| Ok(None);
    test.judge(change, DocView::of_winner(change).as_ref(), all_leaves, live.counted(), no_loser)
}

/// What passes of a document whose losing leaves are looked at. Where the tail has the row, it is remembered there, so
/// that other feeds need not come to the disk for it.
fn judge_losers(snapshot: &Snapshot<'_>, change: &Change, test: &Test, live: &Live) -> Result<Passed, StorageError> {
    let in_tail = live.tail().row(change.seq);
    if let Some(passed) = in_tail.as_ref().and_then(|row| row.verdict(test, true)) {
        return Ok(passed);
    }
    let tree = snapshot.tree(&change.id)?;
    let winner = DocView::of_winner(change);
    let leaves = tree.as_ref().map_or(&[][..], |found| found.tree.leaves());
    let body_of = |place: usize| match leaves.get(place) {
        Some(leaf) => snapshot.body(leaf.body),
        None => Ok(None),
    };
    let passed = test.judge(change, winner.as_ref(), true, live.counted(), body_of)?;
    if let Some(row) = in_tail {
        row.keep_verdict(test, true, passed.clone());
    }
    Ok(passed)
}

/// What a feed leaves out of a row that passed so; `None` where the row is not shown.
pub(super) fn trim_for(passed: Passed, options: &FeedOptions) -> Option<Trim> {
    let fields = options.fields.clone().filter(|_| options.shape.doc);
    match passed {
        Passed::Nothing => None,
        Passed::All => Some(Trim { leaves: None, fields }),
        Passed::Leaves(leaves) => Some(Trim { leaves: Some(leaves), fields }),
    }
}
