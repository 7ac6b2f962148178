//! The index of the feed: every row that is due is there, and no others.

use super::{CheckReport, all, at, decoded};
use crate::codec::feed_index::{self, FeedIndex, IndexKey};
use crate::codec::{change, keys};
use crate::error::StorageError;
use crate::feed_index::{FeedKeys, Indexer};
use crate::range::RawRow;
use crate::tables::{META_FEED_INDEX, Table};
use crate::view::View;

pub(super) fn check(view: View<'_>, keys: &dyn FeedKeys, report: &mut CheckReport) -> Result<(), StorageError> {
    let Some(stored) = report.noting(view.read(Table::Meta, META_FEED_INDEX, feed_index::decode))? else {
        return Ok(());
    };
    let index = stored.unwrap_or_default();
    // What keys are due is known to who makes them so.
    let indexer = (index.keys_version == keys.version()).then(|| Indexer::new(&index, keys));
    check_rows(view, &index, indexer.as_ref(), report)?;
    match indexer {
        Some(indexer) => check_due(view, &indexer, report),
        None => Ok(()),
    }
}

/// Each row is of a field that there is, and of a document that is at its sequence and has the key.
fn check_rows(
    view: View<'_>,
    index: &FeedIndex,
    indexer: Option<&Indexer<'_>>,
    report: &mut CheckReport,
) -> Result<(), StorageError> {
    for row in all(view, Table::FeedIndex)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        report.index_rows += 1;
        report.noting(decoded(Table::FeedIndex, key, feed_index::decode_row(value)))?;
        let Some(row) = report.noting(decoded(Table::FeedIndex, key, IndexKey::from_bytes(key)))? else { continue };
        if !index.fields.iter().any(|field| field.number == row.field) {
            if !index.garbage {
                report.problem(format!("feed_index: a row of field {}, which there is not", row.field));
            }
            continue;
        }
        let by_seq = keys::seq(row.seq);
        match report.noting(view.get(Table::BySeq, &by_seq))? {
            Some(Some(value)) => {
                let due = indexer.map(|indexer| due_rows(view, indexer, (&by_seq, value))).transpose();
                let due = report.noting(due)?.flatten();
                if due.is_some_and(|due| !due.contains(&row)) {
                    report.problem(format!("{}: its document has no such key", words(row)));
                }
            }
            Some(None) => report.problem(format!("{}: no row of by_seq at its sequence", words(row))),
            None => {}
        }
    }
    Ok(())
}

/// Each document has the rows that are due.
fn check_due(view: View<'_>, indexer: &Indexer<'_>, report: &mut CheckReport) -> Result<(), StorageError> {
    for row in all(view, Table::BySeq)? {
        // What is damaged was told of where by_seq was looked at.
        let due = match row.and_then(|row| due_rows(view, indexer, row)) {
            Err(error) if error.is_damage() => continue,
            due => due?,
        };
        for row in due {
            if report.noting(view.get(Table::FeedIndex, &row.to_bytes()))? == Some(None) {
                report.problem(format!("{}: it is not there", words(row)));
            }
        }
    }
    Ok(())
}

/// The rows that the document of a row of `by_seq` should have.
fn due_rows(view: View<'_>, indexer: &Indexer<'_>, (key, value): RawRow<'_>) -> Result<Vec<IndexKey>, StorageError> {
    indexer.rows_at(view, decoded(Table::BySeq, key, change::decode(key, value))?)
}

fn words(IndexKey { field, key, seq }: IndexKey) -> String {
    format!("feed_index: field {field}, key {key:016x}, sequence {}", at(seq))
}
