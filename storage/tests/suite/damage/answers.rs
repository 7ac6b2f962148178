//! Everything a database can be asked, and whether an answer is right.

use std::collections::HashSet;
use std::ops::Bound;
use std::time::Duration;

use seqtide_storage::json::Body;
use seqtide_storage::model::doc_id::{DocId, LocalId};
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{
    Change, ChangesPage, Detail, Direction, Lookup, PageLimits, ReadChanges, ReadDocs, Snapshot, StorageError, Store,
};

use crate::every_kind;
use crate::feed_index::key_of;

/// Rows as far as they were given, and what ended them early.
type Listing = (Vec<String>, Option<StorageError>);

/// What a database answers.
pub struct Answers {
    /// Of each document: its tree with all ancestors, and its leaves' bodies.
    documents: Vec<(DocId, Result<String, StorageError>)>,
    single: Vec<(String, Result<String, StorageError>)>,
    listings: Vec<(&'static str, Listing)>,
}

impl Answers {
    pub fn of(store: &Store) -> Result<Answers, StorageError> {
        let snapshot = store.snapshot()?;
        let ids = every_kind::ids();
        let few: HashSet<DocId> = ids.iter().step_by(9).cloned().collect();
        let mut single = vec![
            ("counters".to_owned(), snapshot.counters().map(|counters| format!("{counters:?}"))),
            ("the limit of revisions".to_owned(), snapshot.revs_limit().map(|limit| limit.to_string())),
            ("the last row".to_owned(), snapshot.last_row_seq().map(|seq| format!("{seq:?}"))),
            ("rows after 100".to_owned(), snapshot.rows_after(Sequence::new(0, 100)).map(|rows| rows.to_string())),
        ];
        for id in every_kind::LOCALS {
            let local = snapshot.local(&LocalId::parse(id).unwrap().unwrap());
            single.push((id.to_owned(), local.map(|local| format!("{local:?}"))));
        }
        let listings = vec![
            ("the feed", feed(&snapshot, Direction::Forward)),
            ("the feed backward", feed(&snapshot, Direction::Backward)),
            ("the feed by its index", feed_by_index(&snapshot)),
            ("some documents' feed", feed_of(&snapshot, &few)),
            ("all documents", all_docs(&snapshot, Direction::Forward)),
            ("all documents backward", all_docs(&snapshot, Direction::Backward)),
        ];
        let documents = ids.into_iter().map(|id| (id.clone(), document(&snapshot, &id))).collect();
        Ok(Answers { documents, single, listings })
    }

    /// Compares with the answers of the sound database: gives the documents that are lost.
    ///
    /// # Errors
    /// What is wrong and does not say so.
    pub fn compare(&self, truth: &Answers) -> Result<Vec<String>, String> {
        for ((what, answer), (_, true_answer)) in self.single.iter().zip(&truth.single) {
            is_right_or_named(what, answer, true_answer)?;
        }
        for ((what, (rows, end)), (_, (true_rows, _))) in self.listings.iter().zip(&truth.listings) {
            let right = true_rows.starts_with(rows) && (end.is_some() || rows.len() == true_rows.len());
            let named = end.as_ref().is_none_or(is_named);
            if !right || !named {
                return Err(format!("{what}: {} rows of {}, then {end:?}", rows.len(), true_rows.len()));
            }
        }
        let mut lost = Vec::new();
        for ((id, answer), (_, true_answer)) in self.documents.iter().zip(&truth.documents) {
            if !is_right_or_named(id.as_str(), answer, true_answer)? {
                lost.push(id.as_str().to_owned());
            }
        }
        Ok(lost)
    }
}

/// Whether an answer is right; it may be a named error instead.
fn is_right_or_named(
    what: &str,
    answer: &Result<String, StorageError>,
    truth: &Result<String, StorageError>,
) -> Result<bool, String> {
    match (answer, truth) {
        (Ok(answer), Ok(truth)) if answer == truth => Ok(true),
        (Err(error), _) if is_named(error) => Ok(false),
        _ => Err(format!("{what}: {answer:?} instead of {truth:?}")),
    }
}

/// Whether an error says what is damaged.
pub fn is_named(error: &StorageError) -> bool {
    matches!(error, StorageError::DamagedFile { .. } | StorageError::Damaged { .. })
}

fn document(snapshot: &Snapshot<'_>, id: &DocId) -> Result<String, StorageError> {
    let Some(found) = snapshot.tree(id)? else { return Ok("none".to_owned()) };
    let tree = snapshot.with_history(id, &found.tree)?;
    let bodies = tree.leaves().iter().map(|leaf| Ok(snapshot.body(leaf.body)?.as_ref().map(sum)));
    let bodies: Result<Vec<_>, StorageError> = bodies.collect();
    Ok(format!("{:?} {tree:?} {:?}", found.seq, bodies?))
}

/// Small pages, so that many of them begin behind what is damaged.
fn limits() -> PageLimits {
    PageLimits { rows_max: 50, time_max: Duration::from_secs(60), ..PageLimits::default() }
}

fn words(changes: &[Change], rows: &mut Vec<String>) {
    rows.extend(changes.iter().map(|Change { seq, id, leaves, body, .. }| {
        format!("{seq:?} {} {leaves:?} {:?}", id.as_str(), body.as_ref().map(sum))
    }));
}

/// Stands for a body: bodies make up most of what is compared, again and again.
fn sum(body: &Body) -> (usize, u32) {
    (body.as_bytes().len(), crc32c::crc32c(body.as_bytes()))
}

fn stretch(direction: Direction) -> ReadChanges {
    let detail = Detail { leaves: true, bodies: true };
    ReadChanges { after: Sequence::ZERO, up_to: Sequence::MAX, direction, detail, limits: limits() }
}

fn feed(snapshot: &Snapshot<'_>, direction: Direction) -> Listing {
    read_feed(direction, |stretch| snapshot.changes(stretch, &|_| true))
}

/// Reads page after page.
fn read_feed(direction: Direction, read: impl Fn(&ReadChanges) -> Result<ChangesPage, StorageError>) -> Listing {
    let (mut rows, mut stretch) = (Vec::new(), stretch(direction));
    loop {
        let page = match read(&stretch) {
            Ok(page) => page,
            Err(error) => return (rows, Some(error)),
        };
        words(&page.changes, &mut rows);
        match (page.examined, direction) {
            (Some(examined), Direction::Forward) if !page.complete => stretch.after = examined,
            (Some(examined), Direction::Backward) if !page.complete => stretch.up_to = examined.before(),
            _ => return (rows, None),
        }
    }
}

fn feed_of(snapshot: &Snapshot<'_>, ids: &HashSet<DocId>) -> Listing {
    read_feed(Direction::Forward, |stretch| snapshot.changes_of_shown(ids, stretch, |change| Ok(Some(change))))
}

/// What an index finds, where there is one.
fn feed_by_index(snapshot: &Snapshot<'_>) -> Listing {
    let lookup = Lookup { path: "edit".to_owned(), keys: vec![key_of("1")], all_leaves: true };
    read_feed(Direction::Forward, |stretch| {
        let page =
            snapshot.changes_looked_up(std::slice::from_ref(&lookup), stretch, &|_| true, |change| Ok(Some(change)))?;
        Ok(page.unwrap_or(ChangesPage { changes: Vec::new(), examined: None, complete: true }))
    })
}

fn all_docs(snapshot: &Snapshot<'_>, direction: Direction) -> Listing {
    let detail = Detail { leaves: false, bodies: true };
    let mut read = ReadDocs { from: Bound::Unbounded, to: Bound::Unbounded, direction, detail, limits: limits() };
    let mut rows = Vec::new();
    loop {
        let page = match snapshot.docs(&read) {
            Ok(page) => page,
            Err(error) => return (rows, Some(error)),
        };
        words(&page.docs, &mut rows);
        match (page.next_after, direction) {
            (Some(last), Direction::Forward) => read.from = Bound::Excluded(last),
            (Some(last), Direction::Backward) => read.to = Bound::Excluded(last),
            (None, _) => return (rows, None),
        }
    }
}
