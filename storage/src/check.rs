//! Every invariant of a database, looked at row by row over one state of the tables. Nothing is changed.

mod feed_index;
mod times;
mod transactions;

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::base::Reading;
use crate::codec::change::ChangeRow;
use crate::codec::head::DocHead;
use crate::codec::meta::Counters;
use crate::codec::{Malformed, as_text, body, change, head, history, keys, local, meta};
use crate::counts::{block_of, stored_blocks};
use crate::error::StorageError;
use crate::feed_index::FeedKeys;
use crate::model::body_place::{BodyKey, BodyPlace};
use crate::model::doc_id::DocId;
use crate::model::rev_tree::Leaf;
use crate::model::sequence::{SeqFormat, Sequence};
use crate::pages::Damage;
use crate::range::{Direction, RawRow};
use crate::tables::{META_FORMAT, META_IDENTITY, META_REVS_LIMIT, Table};
use crate::view::View;

/// Problems beyond these are counted, not kept.
const PROBLEMS_KEPT: usize = 100;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Rows of the feed.
    pub rows: u64,
    /// Live documents.
    pub docs: u64,
    /// Deleted documents.
    pub deleted_docs: u64,
    /// Bodies, those nobody needs included.
    pub bodies: u64,
    /// `_local` documents.
    pub locals: u64,
    /// Records of keyed requests.
    pub transactions: u64,
    /// Rows of the feed's index.
    pub index_rows: u64,
    /// Rows that say when what was written.
    pub times: u64,
    /// The first problems, in words that name table and key.
    pub problems: Vec<String>,
    /// How many problems there are.
    pub problems_total: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems_total == 0
    }

    fn problem(&mut self, what: impl Into<String>) {
        self.problems_total += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(what.into());
        }
    }

    /// Takes a step's answer; a damaged or missing row is a problem, anything else ends the check. What lies on damaged
    /// pages is a problem once, with its page.
    fn noting<T>(&mut self, answer: Result<T, StorageError>) -> Result<Option<T>, StorageError> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(StorageError::DamagedFile { .. }) => Ok(None),
            Err(error @ (StorageError::Damaged { .. } | StorageError::Missing { .. })) => {
                self.problem(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// What is added up on the way, to be compared with what is stored.
#[derive(Default)]
struct Sums {
    blocks: BTreeMap<u64, u64>,
    leaf_bytes: u64,
    body_bytes: u64,
    chunks: u64,
}

/// Checks one state of a database, of whose file so much is known to be damaged, and whose index may be made by `keys`.
pub(crate) fn check(
    reading: &Reading<'_>,
    damages: &[Damage],
    keys: &dyn FeedKeys,
) -> Result<CheckReport, StorageError> {
    let view = reading.view();
    let mut report = CheckReport::default();
    damages.iter().for_each(|damage| report.problem(damage.to_string()));
    check_settings(view, &mut report)?;
    let Some(counters) = report.noting(view.counters())? else { return Ok(report) };
    let mut sums = Sums::default();
    check_rows(view, &counters, &mut report, &mut sums)?;
    check_documents(view, &mut report, &mut sums)?;
    check_bodies(view, &mut report, &mut sums)?;
    check_history(view, &mut report, &sums)?;
    check_locals(view, &mut report)?;
    check_blocks(view, &mut report, &sums)?;
    check_counters(&counters, &mut report, &sums);
    transactions::check(view, &mut report)?;
    feed_index::check(view, keys, &mut report)?;
    times::check(view, &counters, &mut report)?;
    Ok(report)
}

/// What every database has in `meta` besides what is counted.
fn check_settings(view: View<'_>, report: &mut CheckReport) -> Result<(), StorageError> {
    report.noting(view.expect(Table::Meta, META_IDENTITY, meta::decode_identity))?;
    for name in [META_FORMAT, META_REVS_LIMIT] {
        report.noting(view.expect(Table::Meta, name, meta::decode_number))?;
    }
    Ok(())
}

fn all(view: View<'_>, table: Table) -> Result<impl Iterator<Item = Result<RawRow<'_>, StorageError>>, StorageError> {
    view.range(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)
}

fn decoded<T>(table: Table, key: &[u8], value: Result<T, Malformed>) -> Result<T, StorageError> {
    value.map_err(|what| StorageError::damaged(table, key, what))
}

/// Each row of the feed belongs to the document it names, at its tree's latest sequence, and says of it what is so.
fn check_rows(
    view: View<'_>,
    counters: &Counters,
    report: &mut CheckReport,
    sums: &mut Sums,
) -> Result<(), StorageError> {
    for row in all(view, Table::BySeq)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        report.rows += 1;
        let Some(row) = report.noting(decoded(Table::BySeq, key, change::decode(key, value)))? else { continue };
        *sums.blocks.entry(block_of(row.seq)).or_default() += 1;
        if row.seq > counters.update_seq {
            report.problem(format!("by_seq {}: above the update sequence", at(row.seq)));
        }
        let head = view.expect(Table::Docs, row.id.as_bytes(), head::decode);
        if let Some(head) = report.noting(head)? {
            compare(&row, &head, report);
        }
    }
    Ok(())
}

fn compare(row: &ChangeRow<'_>, head: &DocHead, report: &mut CheckReport) {
    let (seq, id) = (at(row.seq), row.id);
    if head.seq != row.seq {
        report.problem(format!("by_seq {seq}: document {id:?} is at {}", at(head.seq)));
        return;
    }
    let Some(winner) = head.tree.winner() else { return };
    let said = (&row.rev, row.deleted, row.branches as usize, row.body);
    if said != (&winner.rev, winner.deleted, head.tree.leaves().len(), winner.body) {
        report.problem(format!("by_seq {seq}: says otherwise of document {id:?} than its tree"));
    }
}

/// Each document has a row, its leaves have their bodies, and its older ancestors are all there.
fn check_documents(view: View<'_>, report: &mut CheckReport, sums: &mut Sums) -> Result<(), StorageError> {
    for row in all(view, Table::Docs)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        let Some(head) = report.noting(decoded(Table::Docs, key, head::decode(value)))? else { continue };
        let Some(id) = report.noting(decoded(Table::Docs, key, as_text(key).map(DocId::stored)))? else { continue };
        *if head.tree.is_live() { &mut report.docs } else { &mut report.deleted_docs } += 1;
        if report.noting(view.get(Table::BySeq, &keys::seq(head.seq)))? == Some(None) {
            report.problem(format!("docs {id:?}: no row of by_seq at its sequence {}", at(head.seq)));
        }
        for leaf in head.tree.leaves() {
            sums.leaf_bytes += leaf.body.bytes();
            sums.chunks += leaf.ancestors.chunks.len() as u64;
            check_leaf(view, &id, leaf, report)?;
        }
    }
    Ok(())
}

fn check_leaf(view: View<'_>, id: &DocId, leaf: &Leaf, report: &mut CheckReport) -> Result<(), StorageError> {
    let ancestors = report.noting(view.ancestors(id, leaf))?;
    if ancestors.is_some_and(|line| line.len() != leaf.ancestors.len()) {
        report.problem(format!("docs {id:?}: leaf {} lacks ancestors", leaf.rev));
    }
    let BodyPlace::Stored { key, bytes } = leaf.body else { return Ok(()) };
    let stored = report.noting(view.expect(Table::Bodies, &keys::body(key), body::decode))?;
    if stored.is_some_and(|(of, json)| of != id.as_str() || json.len() != bytes as usize) {
        report.problem(format!("docs {id:?}: the body of leaf {} at {} is another's", leaf.rev, at(key.seq)));
    }
    Ok(())
}

/// Each body belongs to a document, or once did, if there may have been purges: bodies that stemming had cut off from
/// their trees before are left to a sweep.
fn check_bodies(view: View<'_>, report: &mut CheckReport, sums: &mut Sums) -> Result<(), StorageError> {
    let purged = report.noting(view.purge_seq())?.unwrap_or(0) > 0;
    for row in all(view, Table::Bodies)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        report.bodies += 1;
        let Some(BodyKey { seq, .. }) = report.noting(decoded(Table::Bodies, key, keys::read_body(key)))? else {
            continue;
        };
        let Some((id, json)) = report.noting(decoded(Table::Bodies, key, body::decode(value)))? else { continue };
        sums.body_bytes += json.len() as u64;
        if report.noting(view.get(Table::Docs, id.as_bytes()))? == Some(None) && !purged {
            report.problem(format!("bodies {}: no document {id:?}", at(seq)));
        }
    }
    Ok(())
}

/// There are no chunks but those the leaves name, which were looked at with them.
fn check_history(view: View<'_>, report: &mut CheckReport, sums: &Sums) -> Result<(), StorageError> {
    let mut stored = 0;
    for row in all(view, Table::History)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        stored += 1;
        report.noting(decoded(Table::History, key, history::decode(value)))?;
    }
    if stored != sums.chunks {
        report.problem(format!("history: {stored} chunks are stored, leaves name {}", sums.chunks));
    }
    Ok(())
}

fn check_locals(view: View<'_>, report: &mut CheckReport) -> Result<(), StorageError> {
    for row in all(view, Table::Local)? {
        let Some((key, value)) = report.noting(row)? else { continue };
        report.locals += 1;
        report.noting(decoded(Table::Local, key, local::decode(value)))?;
    }
    Ok(())
}

/// Each block of versions counts the rows it has.
fn check_blocks(view: View<'_>, report: &mut CheckReport, sums: &Sums) -> Result<(), StorageError> {
    let mut stored = BTreeMap::new();
    for block in stored_blocks(view)? {
        if let Some((block, rows)) = report.noting(block)? {
            stored.insert(block, rows);
        }
    }
    for block in stored.keys().chain(sums.blocks.keys().filter(|block| !stored.contains_key(block))) {
        let (says, has) = (stored.get(block).unwrap_or(&0), sums.blocks.get(block).unwrap_or(&0));
        if says != has {
            report.problem(format!("blocks {block}: says {says} rows, by_seq has {has}"));
        }
    }
    Ok(())
}

fn check_counters(counters: &Counters, report: &mut CheckReport, sums: &Sums) {
    let expected = [
        ("live documents", counters.docs, report.docs),
        ("deleted documents", counters.deleted_docs, report.deleted_docs),
        ("rows of by_seq", counters.rows(), report.rows),
        ("bytes of leaves' bodies", counters.body_bytes, sums.leaf_bytes),
        ("bytes of all bodies", counters.body_bytes.saturating_add(counters.garbage_bytes), sums.body_bytes),
    ];
    for (what, says, has) in expected {
        if says != has {
            report.problem(format!("meta counters: {says} {what}, there are {has}"));
        }
    }
}

/// A sequence in words.
fn at(seq: Sequence) -> String {
    SeqFormat::Integer.plain(seq).to_string()
}

#[cfg(test)]
mod tests;
