//! What a feed shows of a change: the row, less of it, or nothing.

use std::sync::Arc;

use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Change, Snapshot, StorageError};

use super::leave::{Had, Version, had, may_pass};
use super::options::FeedOptions;
use super::seen::Seen;
use super::source::Wanted;
use crate::feed::frames::Frames;
use crate::filter::{Passed, Test};
use crate::live::Live;
use crate::row::{NotHere, Row, Trim};
use crate::selector::DocView;

/// How a page's changes are looked at.
pub(super) struct Viewing<'a> {
    pub options: &'a FeedOptions,
    pub wanted: Wanted,
    pub live: &'a Live,
    pub format: SeqFormat,
    pub judged: Option<Judged>,
}

/// What passes of a row in memory, found out before it is looked at for a page.
pub(super) struct Judged {
    pub seq: Sequence,
    pub passed: Passed,
}

/// What a page is made of.
pub(super) trait PageRow: AsRef<Change> + Send + Sync + Sized + 'static {
    /// Of a row in memory, shared where it is taken as it is; `None` when it is not wanted.
    fn of_tail(row: Arc<Row>, viewing: &Viewing<'_>) -> Result<Option<Arc<Self>>, NotHere>;

    /// Of a change in this state of the database.
    fn of_disk(snapshot: &Snapshot<'_>, change: Change, viewing: &Viewing<'_>) -> Result<Option<Self>, StorageError>;

    /// Rows of the disk as the feed gives them: themselves, or as bytes alone.
    fn given(rows: Vec<Self>, _: &FeedOptions) -> (Vec<Arc<Self>>, Frames) {
        (rows.into_iter().map(Arc::new).collect(), Frames::default())
    }
}

impl PageRow for Row {
    fn of_tail(row: Arc<Row>, viewing: &Viewing<'_>) -> Result<Option<Arc<Row>>, NotHere> {
        let (options, change) = (viewing.options, row.change());
        let passed = viewing.judge(&row)?;
        let trim = match viewing.leaves_by(change, &passed) {
            Some(seen) => left_in_memory(&row, &seen, options)?.then(Trim::left),
            None => trim_for(passed, options),
        };
        Ok(trim.map(|trim| match trim.is_none() {
            true => row,
            false => Arc::new(Row::trimmed(row.change().clone(), row.seq_format(), trim)),
        }))
    }

    fn of_disk(
        snapshot: &Snapshot<'_>,
        mut change: Change,
        viewing: &Viewing<'_>,
    ) -> Result<Option<Row>, StorageError> {
        let Viewing { options, live, format, .. } = viewing;
        let passed = judge_on_disk(snapshot, &change, options, live)?;
        let trim = match viewing.leaves_by(&change, &passed) {
            Some(seen) => left_on_disk(snapshot, &change, &seen, viewing)?.then(Trim::left),
            None => trim_for(passed, options),
        };
        Ok(trim.map(|trim| {
            // What only the filter looked at takes no memory in the page.
            change.body = change.body.take().filter(|_| options.shape.doc && !trim.left);
            Row::trimmed(change, *format, trim)
        }))
    }

    fn given(rows: Vec<Row>, options: &FeedOptions) -> (Vec<Arc<Row>>, Frames) {
        match options.frames {
            Some(form) => (Vec::new(), Frames::of(rows, options.shape, form)),
            None => (rows.into_iter().map(Arc::new).collect(), Frames::default()),
        }
    }
}

impl Viewing<'_> {
    /// What passes of a row in memory.
    pub fn judge(&self, row: &Row) -> Result<Passed, NotHere> {
        let (change, FeedOptions { filter, shape, .. }) = (row.change(), self.options);
        match &self.judged {
            Some(Judged { seq, passed }) if *seq == change.seq => Ok(passed.clone()),
            _ => row.judge(&filter.test, DocView::of_winner(change).as_ref(), shape.all_leaves, self.live.counted()),
        }
    }

    /// By what it is decided whether a document leaves the feed that has these leaves, of which so much passes; `None`
    /// where it does not leave, or the feed does not tell what does.
    fn leaves_by(&self, change: &Change, passed: &Passed) -> Option<Seen> {
        self.wanted.seen.filter(|_| change.deleted() || *passed == Passed::Nothing)
    }
}

/// Whether a document that does not pass has left the feed, as far as memory can tell.
fn left_in_memory(row: &Row, seen: &Seen, options: &FeedOptions) -> Result<bool, NotHere> {
    match had(row.change(), seen, options) {
        Had::Known(left) => Ok(left),
        Had::Previous(_) => row.verdict_before(&options.filter).ok_or(NotHere::OnDisk),
        Had::Any(_) => Err(NotHere::OnDisk),
    }
}

/// The same by what the disk has. Where the tail has the row, it is remembered there of the winner before.
fn left_on_disk(
    snapshot: &Snapshot<'_>,
    change: &Change,
    seen: &Seen,
    viewing: &Viewing<'_>,
) -> Result<bool, StorageError> {
    let Viewing { options, live, .. } = viewing;
    let had = had(change, seen, options);
    let in_tail = match had {
        Had::Known(left) => return Ok(left),
        Had::Previous(_) => live.tail().row(change.seq),
        Had::Any(_) => None,
    };
    if let Some(passed) = in_tail.as_ref().and_then(|row| row.verdict_before(&options.filter)) {
        return Ok(passed);
    }
    let passed = match had.versions(snapshot, &change.id, options)? {
        Some(versions) => any_may_pass(snapshot, &change.id, &versions, &options.filter.test)?,
        None => true,
    };
    if let Some(row) = in_tail {
        row.keep_verdict_before(&options.filter, passed);
    }
    Ok(passed)
}

fn any_may_pass(snapshot: &Snapshot<'_>, id: &DocId, versions: &[Version], test: &Test) -> Result<bool, StorageError> {
    for version in versions {
        if may_pass(id, &version.leaf, snapshot.body(version.body)?.as_ref(), test) {
            return Ok(true);
        }
    }
    Ok(false)
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
        Passed::All => Some(Trim { leaves: None, fields, left: false }),
        Passed::Leaves(leaves) => Some(Trim { leaves: Some(leaves), fields, left: false }),
    }
}
