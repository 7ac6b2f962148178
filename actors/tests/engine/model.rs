//! Random writers and readers of every kind against the rows that lie in `by_seq` at the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use seqtide::storage::json::{Body, ScanLimits, scan_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevId;
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{Change, Edit, Outcome, Write};
use seqtide::{
    Database, FeedEvent, FeedKind, FeedMode, FeedOptions, Filter, FrameForm, Portion, RowShape, Selector, Since, Test,
};

use crate::support::{engine, soon};

const WRITERS: u64 = 3;
const REQUESTS: usize = 250;
/// Written last, it passes every filter.
const LAST: &str = "a-last";

/// A row as it is compared: sequence, winner, whether it is deleted, body.
type Compared = (Sequence, RevId, bool, Option<Body>);
type Seen = BTreeMap<String, Compared>;

/// What the writers know together.
#[derive(Default)]
struct Known {
    /// A leaf of each document.
    leaves: BTreeMap<DocId, RevId>,
    /// The sequence at which a document was purged last, and when that was acknowledged.
    purged: BTreeMap<DocId, (Sequence, Instant)>,
}

impl Known {
    fn take(&mut self, id: DocId, outcome: Outcome) {
        match outcome {
            Outcome::Written { rev, .. } => drop(self.leaves.insert(id, rev)),
            Outcome::Conflict | Outcome::Purged { seq: None, .. } => drop(self.leaves.remove(&id)),
            Outcome::Purged { seq: Some(seq), .. } => {
                self.leaves.remove(&id);
                let last = self.purged.get(&id).map_or(Sequence::ZERO, |(last, _)| *last);
                self.purged.insert(id, (seq.max(last), Instant::now()));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Whether a row was purged, and this acknowledged, before a moment.
    fn was_purged(&self, id: &DocId, row: Sequence, before: Instant) -> bool {
        self.purged.get(id).is_some_and(|(seq, acknowledged)| row < *seq && *acknowledged < before)
    }
}

/// How a reader reads.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// As fast as it can.
    Fast,
    /// Pauses now and then, so that it falls behind the tail.
    Slow,
    /// Gives up waiting all the time, and asks again.
    Impatient,
}

pub fn seed() -> u64 {
    let given = std::env::var("SEQTIDE_TEST_SEED").ok();
    let seed = given.map_or_else(rand::random, |text| text.parse().expect("SEQTIDE_TEST_SEED is a number"));
    println!("run again with SEQTIDE_TEST_SEED={seed}");
    seed
}

/// Creates, updates, deletes and purges documents that all writers share; and writes some once, which no later row can
/// make good for a reader that missed theirs. Of these every tenth is purged a little later.
async fn write(database: Database, number: u64, seed: u64, known: Arc<Mutex<Known>>) {
    let mut rng = StdRng::seed_from_u64(seed ^ number);
    let mut to_purge = None;
    for request in 0..REQUESTS {
        let mut writes = Vec::new();
        for _ in 0..rng.random_range(1..=3) {
            let group = ["a", "b"].choose(&mut rng).expect("not empty");
            let id = DocId::parse(&format!("{group}-{}", rng.random_range(0..12))).unwrap();
            let parent = known.lock().unwrap().leaves.get(&id).cloned();
            if let Some(leaf) = parent.clone().filter(|_| rng.random_bool(0.1)) {
                writes.push(Write::Purge { id, revs: vec![leaf] });
                continue;
            }
            let deleted = parent.is_some() && rng.random_bool(0.2);
            let json = format!(r#"{{"by":{number},"pad":"{}"}}"#, "x".repeat(rng.random_range(0..200)));
            let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
            writes.push(Write::Edit(Edit::interactive(id, parent, deleted, body)));
        }
        let group = if rng.random_bool(0.5) { "a" } else { "b" };
        let once = DocId::parse(&format!("{group}-once-{number}-{request}")).unwrap();
        writes.push(Write::Edit(Edit::interactive(once.clone(), None, false, Body::empty())));
        if request % 10 == 0 {
            to_purge = Some(once);
        } else if request % 10 == 3
            && let Some(id) = to_purge.take()
        {
            let leaf = known.lock().unwrap().leaves[&id].clone();
            writes.push(Write::Purge { id, revs: vec![leaf] });
        }
        let ids: Vec<DocId> = writes.iter().map(id_of).collect();
        let written = database.write(writes).await.unwrap();
        let mut known = known.lock().unwrap();
        ids.into_iter().zip(written.outcomes).for_each(|(id, outcome)| known.take(id, outcome));
    }
}

fn id_of(write: &Write) -> DocId {
    match write {
        Write::Edit(edit) => edit.id().clone(),
        Write::Purge { id, .. } => id.clone(),
        other => panic!("{other:?}"),
    }
}

/// The rows of an event.
fn given(event: &FeedEvent) -> Vec<(DocId, Compared)> {
    match event {
        FeedEvent::Change(Portion::Rows(rows)) => rows.iter().map(|row| compared(row.change())).collect(),
        FeedEvent::Change(Portion::Frames(frames)) => {
            frames.bytes().split_inclusive(|byte| *byte == b'\n').map(read).collect()
        }
        _ => Vec::new(),
    }
}

fn compared(change: &Change) -> (DocId, Compared) {
    let winner = change.winner();
    (change.id.clone(), (change.seq, winner.rev.clone(), winner.deleted, change.body.clone()))
}

/// Reads a row that was given as a line.
fn read(line: &[u8]) -> (DocId, Compared) {
    let row: serde_json::Value = serde_json::from_slice(line).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let rev = RevId::parse(&text(&row["changes"][0]["rev"])).unwrap();
    let body = Some(&row["doc"]).filter(|doc| !doc.is_null()).map(|doc| {
        assert_eq!((&doc["_id"], &doc["_rev"]), (&row["id"], &row["changes"][0]["rev"]));
        scan_document(doc.to_string().as_bytes(), &ScanLimits::default()).unwrap().body
    });
    let seq = Sequence::from_integer(row["seq"].as_u64().unwrap());
    (DocId::parse(&text(&row["id"])).unwrap(), (seq, rev, row["deleted"] == true, body))
}

/// Follows to the last document; leaves at random and comes back with its last token. It is never given a row that was
/// purged before it asked.
async fn follow(database: Database, known: Arc<Mutex<Known>>, filter: Filter, pace: Pace, seed: u64) -> Seen {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut seen = Seen::new();
    let mut token = Sequence::ZERO;
    loop {
        let options = FeedOptions {
            since: Since::Seq(token),
            filter: filter.clone(),
            shape: RowShape { doc: true, ..RowShape::default() },
            heartbeat: Some(Duration::from_millis(3)),
            limit: rng.random_bool(0.2).then(|| rng.random_range(1..30)),
            frames: rng.random_bool(0.5).then_some(FrameForm::Lines),
            ..FeedOptions::live(FeedKind::Embedded)
        };
        let mut feed = database.feed(options).await.unwrap();
        for _ in 0..rng.random_range(1..60) {
            let asked = Instant::now();
            let event = match pace {
                Pace::Impatient => match tokio::time::timeout(Duration::from_micros(200), feed.next()).await {
                    Ok(event) => event,
                    Err(_given_up) => continue,
                },
                Pace::Fast | Pace::Slow => feed.next().await,
            };
            match event.unwrap().expect("an end is the last event") {
                rows @ (FeedEvent::Change(Portion::Rows(_)) | FeedEvent::Change(Portion::Frames(_))) => {
                    for (id, row) in given(&rows) {
                        assert!(row.0 > token, "{:?} after {token:?}", row.0);
                        let purged = known.lock().unwrap().was_purged(&id, row.0, asked);
                        assert!(!purged, "{id} at {:?} was purged", row.0);
                        token = row.0;
                        seen.insert(id.to_string(), row);
                    }
                }
                FeedEvent::Heartbeat { seq, .. }
                | FeedEvent::CaughtUp { seq }
                | FeedEvent::Lagging { seq, .. }
                | FeedEvent::Live { seq } => {
                    assert!(seq >= token, "a sign of life at {seq:?} after {token:?}");
                    token = seq;
                }
                FeedEvent::End { seq, .. } => {
                    token = seq;
                    break;
                }
                FeedEvent::Open { seq, .. } => assert_eq!(seq, token),
                FeedEvent::Change(Portion::Nothing) => {}
                FeedEvent::Draining { .. } => panic!("nobody drains"),
                FeedEvent::SnapshotEnd { .. } => panic!("none was asked for"),
                FeedEvent::Rewind { since, .. } => panic!("{since:?} was a token of this database"),
            }
            if seen.contains_key(LAST) {
                return seen;
            }
            if matches!(pace, Pace::Slow) && rng.random_bool(0.3) {
                tokio::time::sleep(Duration::from_millis(rng.random_range(1..40))).await;
            }
        }
    }
}

/// The rows of `by_seq`.
async fn rows(database: &Database) -> Seen {
    let shape = RowShape { doc: true, ..RowShape::default() };
    let options =
        FeedOptions { since: Since::START, mode: FeedMode::Once, shape, ..FeedOptions::live(FeedKind::Embedded) };
    let mut feed = database.feed(options).await.unwrap();
    let mut rows = Seen::new();
    while let Some(event) = feed.next().await.unwrap() {
        for (id, row) in given(&event) {
            let before = rows.insert(id.to_string(), row);
            assert!(before.is_none(), "one row a document: {id}");
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reader_ends_with_each_document_s_row_misses_none_and_is_given_none_that_was_purged() {
    let seed = seed();
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 40_000);
    let database = engine.create_database("db").await.unwrap();
    let some = ["a-1", "a-2", "b-3", "b-once-0-7", "a-once-1-9", LAST].map(|id| DocId::parse(id).unwrap());
    let selector = Filter::selector(Selector::from_json(r#"{"_id":{"$beginsWith":"a-"}}"#).unwrap());
    let filters = [Filter::ALL, Filter::ids(some), Filter::prefix("a-"), Filter::prefix(""), selector];
    let known = Arc::<Mutex<Known>>::default();
    let mut readers = Vec::new();
    for (number, filter) in (0..).zip(&filters) {
        for (pace, step) in [(Pace::Fast, 0), (Pace::Slow, 100), (Pace::Impatient, 200)] {
            let seed = seed ^ (1000 + step + number);
            let reader = follow(database.clone(), Arc::clone(&known), filter.clone(), pace, seed);
            readers.push((filter.clone(), pace, tokio::spawn(reader)));
        }
    }
    let writers = (0..WRITERS).map(|n| tokio::spawn(write(database.clone(), n, seed, Arc::clone(&known))));
    for writer in writers.collect::<Vec<_>>() {
        soon(writer).await.unwrap();
    }
    database.put(LAST, "{}").await.unwrap();

    let rows = rows(&database).await;
    assert!(rows.len() > WRITERS as usize * REQUESTS * 9 / 10);
    for (filter, pace, reader) in readers {
        let mut seen = soon(reader).await.unwrap();
        // What is not there any more was purged after it was seen.
        let (known, end) = (known.lock().unwrap(), Instant::now());
        let gone = |id: &str, seq| known.was_purged(&DocId::parse(id).unwrap(), seq, end);
        seen.retain(|id, (seq, ..)| rows.contains_key(id) || !gone(id, *seq));
        let shows = |id: &str| filter.ids.contains(id) && (filter.test == Test::NONE || id.starts_with("a-"));
        let expected: Seen =
            rows.iter().filter(|(id, _)| shows(id)).map(|(id, row)| (id.clone(), row.clone())).collect();
        assert_eq!(seen.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{pace:?} {filter:?}");
        for (id, row) in &expected {
            assert_eq!(seen.get(id), Some(row), "{pace:?} {filter:?}: {id}");
        }
    }
}
