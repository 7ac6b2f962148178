//! What a feed shows of a change: the row, less of it, or nothing.

use std::sync::Arc;

use seqtide_storage::model::sequence::SeqFormat;
use seqtide_storage::{Change, Snapshot, StorageError};

use super::options::FeedOptions;
use crate::filter::Passed;
use crate::row::{Row, Trim};

/// The filter looks at the body of a losing leaf, which only the disk has.
pub(super) struct NotInTail;

/// What is shown of a row in memory; the row itself, which others share, when it is shown as it is.
pub(super) fn of_tail(row: Arc<Row>, options: &FeedOptions) -> Result<Option<Arc<Row>>, NotInTail> {
    let passed = options.filter.test.judge(row.change(), options.shape.all_leaves, |_| Err(NotInTail))?;
    Ok(trim_for(passed, options).map(|trim| match trim {
        Trim { leaves: None, fields: None } => row,
        trim => Arc::new(Row::trimmed(row.change().clone(), row.seq_format(), trim)),
    }))
}

/// What is shown of a change in this state of the database.
pub(super) fn of_disk(
    snapshot: &Snapshot<'_>,
    mut change: Change,
    options: &FeedOptions,
    format: SeqFormat,
) -> Result<Option<Row>, StorageError> {
    let (test, all_leaves) = (&options.filter.test, options.shape.all_leaves);
    let found = if test.opens_losers(&change, all_leaves) { snapshot.tree(&change.id)? } else { None };
    let leaves = found.as_ref().map_or(&[][..], |found| found.tree.leaves());
    let passed = test.judge(&change, all_leaves, |place| match leaves.get(place) {
        Some(leaf) => snapshot.body(leaf.body),
        None => Ok(None),
    })?;
    Ok(trim_for(passed, options).map(|trim| {
        // What only the filter looked at takes no memory in the page.
        change.body = change.body.take().filter(|_| options.shape.doc);
        Row::trimmed(change, format, trim)
    }))
}

fn trim_for(passed: Passed, options: &FeedOptions) -> Option<Trim> {
    let fields = options.fields.clone().filter(|_| options.shape.doc);
    match passed {
        Passed::Nothing => None,
        Passed::All => Some(Trim { leaves: None, fields }),
        Passed::Leaves(leaves) => Some(Trim { leaves: Some(leaves), fields }),
    }
}
