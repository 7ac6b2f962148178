//! Feeds that tell what leaves: who applies what they give has what the filter defines, whatever was missed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use seqtide::storage::json::{ScanLimits, scan_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::RevHash;
use seqtide::storage::model::rev_path::RevPath;
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{Edit, Write};
use seqtide::{
    Change, ChangeEvent, Changes, ChangesOptions, Database, FeedEvent, FeedKind, FeedOptions, FeedState, Filter,
    PutError, Selector, Since, Test,
};
use tokio_stream::StreamExt;

use crate::model::seed;
use crate::support::{engine, next_event, soon};

const DOCUMENTS: usize = 25;
const LAST: &str = "m-last";

/// What a reader has: revisions by id.
type State = BTreeMap<String, String>;

fn filters() -> Vec<(&'static str, Filter)> {
    let ids = (0..DOCUMENTS / 2).map(|n| format!("m-{n}")).chain([LAST.to_owned()]);
    let selector = Selector::from_json(r#"{"in": true}"#).unwrap();
    vec![
        ("all", Filter::ALL),
        ("prefix", Filter::prefix("m-")),
        ("ids", Filter::ids(ids.map(|id| DocId::parse(&id).unwrap()))),
        ("selector", Filter::selector(selector.clone())),
        ("both", Filter { test: Filter::selector(selector).test, ..Filter::prefix("m-") }),
    ]
}

fn following(filter: &Filter, since: Sequence) -> ChangesOptions {
    let (since, filter) = (Since::Seq(since), filter.clone());
    ChangesOptions { since, filter, snapshot: true, leave: true, ..ChangesOptions::default() }
}

/// Writes a document, or deletes it, whoever else does.
async fn edit(database: &Database, id: &str, body: Option<bool>) {
    let current = database.get(id).await.unwrap().map(|document| document.rev);
    let done = match (body, current) {
        (Some(is_in), Some(rev)) => database.put(id, format!(r#"{{"_rev":"{rev}","in":{is_in}}}"#)).await.map(drop),
        (Some(is_in), None) => database.put(id, format!(r#"{{"in":{is_in}}}"#)).await.map(drop),
        (None, Some(rev)) => database.delete(id, rev).await.map(drop),
        (None, None) => Ok(()),
    };
    assert!(matches!(done, Ok(()) | Err(PutError::Conflict)), "{done:?}");
}

async fn write(database: Database, number: u64, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed ^ number);
    for round in 0..250 {
        let group = if rng.random_bool(0.7) { "m" } else { "n" };
        let id = format!("{group}-{}", rng.random_range(0..DOCUMENTS));
        edit(&database, &id, rng.random_bool(0.8).then(|| rng.random_bool(0.4))).await;
        if round % 60 == 59 {
            database.reclaim().await.unwrap();
        }
    }
}

fn apply(state: &mut State, change: &Change) {
    if change.left {
        state.remove(change.id.as_str());
    } else {
        assert!(!change.deleted, "what is deleted has left: {change:?}");
        state.insert(change.id.to_string(), change.rev.to_string());
    }
}

/// Follows to the last document; leaves at random, in the middle of what was read too, and comes back with what it has.
async fn follow(database: Database, filter: Filter, seed: u64) -> State {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut state, mut token) = (State::new(), Sequence::ZERO);
    loop {
        let mut changes = database.changes(following(&filter, token)).await.unwrap();
        for _ in 0..rng.random_range(1..40) {
            match next_event(&mut changes).await {
                ChangeEvent::Change(change) => {
                    apply(&mut state, &change);
                    token = change.seq;
                }
                ChangeEvent::CaughtUp { seq } | ChangeEvent::SnapshotEnd { seq } => token = seq,
                _ => {}
            }
            if state.contains_key(LAST) {
                return state;
            }
            if rng.random_bool(0.05) {
                tokio::time::sleep(Duration::from_millis(rng.random_range(1..20))).await;
            }
        }
        drop(changes);
        if rng.random_bool(0.5) {
            // Away while others write.
            tokio::time::sleep(Duration::from_millis(rng.random_range(1..20))).await;
        }
    }
}

/// What the filter defines.
async fn defined(database: &Database, filter: &Filter) -> State {
    let options = ChangesOptions { leave: false, live: false, ..following(filter, Sequence::ZERO) };
    let changes = database.changes(options).await.unwrap().only_changes();
    let changes: Vec<Change> = changes.map(Result::unwrap).collect().await;
    changes.iter().map(|change| (change.id.to_string(), change.rev.to_string())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_end_with_what_the_filter_defines_however_they_were_interrupted() {
    let seed = seed();
    for tail_bytes_max in [4_000, 1 << 20] {
        let (engine, _folder) = engine(|options| options.tail_bytes_max = tail_bytes_max);
        let database = engine.create_database("db").await.unwrap();
        let readers: Vec<_> = (0..)
            .zip(filters())
            .flat_map(|(number, (name, filter))| [(number, name, filter.clone()), (100 + number, name, filter)])
            .map(|(number, name, filter)| {
                (name, filter.clone(), tokio::spawn(follow(database.clone(), filter, seed ^ (1000 + number))))
            })
            .collect();
        let writers: Vec<_> = (0..3).map(|number| tokio::spawn(write(database.clone(), number, seed))).collect();
        for writer in writers {
            soon(writer).await.unwrap();
        }
        edit(&database, LAST, Some(true)).await;
        for (name, filter, reader) in readers {
            let state = soon(reader).await.unwrap();
            assert_eq!(state, defined(&database, &filter).await, "{name}, with a tail of {tail_bytes_max}");
        }
    }
}

/// What is told up to a place, once all up to there has been looked at.
async fn told_up_to(changes: &mut Changes, place: Sequence) -> Vec<Change> {
    let mut told = Vec::new();
    loop {
        match next_event(changes).await {
            ChangeEvent::Change(change) => told.push(change),
            ChangeEvent::Heartbeat { seq, .. } if seq >= place => return told,
            _ => {}
        }
    }
}

/// Who keeps up is told of each document once when it leaves, and of none that was not given; also when it comes back
/// after it had read all there was.
#[tokio::test]
async fn who_passes_nothing_over_is_told_of_each_leave_once() {
    let mut rng = StdRng::seed_from_u64(seed());
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let update_seq = async || database.info().await.unwrap().counters.update_seq;
    for (name, filter) in filters() {
        let passes = |id: &str, is_in: bool| filter.ids.contains(id) && (filter.test == Test::NONE || is_in);
        let follow = async |token| {
            let heartbeat = Some(Duration::from_millis(1));
            database.changes(ChangesOptions { heartbeat, ..following(&filter, token) }).await.unwrap()
        };
        let mut had = defined(&database, &filter).await;
        let mut token = update_seq().await;
        let mut changes = follow(token).await;
        for round in 0..150 {
            let id = format!("m-{}", rng.random_range(0..DOCUMENTS));
            let is_in = rng.random_bool(0.8).then(|| rng.random_bool(0.4));
            // Written while it is away, or while it follows.
            let is_away = rng.random_bool(0.3);
            if is_away {
                drop(std::mem::replace(&mut changes, follow(token).await));
            }
            edit(&database, &id, is_in).await;
            if is_away {
                changes = follow(token).await;
            }
            let seq = update_seq().await;
            let told = told_up_to(&mut changes, seq).await;
            let left = match (had.contains_key(&id), is_in.is_some_and(|is_in| passes(&id, is_in))) {
                _ if seq == token => None,
                (_, true) => Some(false),
                (true, false) => Some(true),
                (false, false) => None,
            };
            let told_of: Vec<_> = told.iter().map(|change| (change.id.as_str(), change.left)).collect();
            let expected: Vec<_> = left.into_iter().map(|left| (id.as_str(), left)).collect();
            assert_eq!(told_of, expected, "{name}, round {round}");
            told.iter().for_each(|change| apply(&mut had, change));
            token = seq;
        }
        assert_eq!(had, defined(&database, &filter).await, "{name}");
    }
}

/// A revision that was made elsewhere, with those it came from, the newest first.
fn made_elsewhere(generation: u64, hashes: &[&str], deleted: bool, body: &str) -> Write {
    let hashes = hashes.iter().map(|hash| RevHash::parse(hash).unwrap()).collect();
    let body = scan_document(body.as_bytes(), &ScanLimits::default()).unwrap().body;
    let path = RevPath::new(generation, hashes).unwrap();
    Write::Edit(Edit::replicated(DocId::parse("a").unwrap(), path, deleted, body))
}

/// What passes the selector, from the beginning.
async fn selected(database: &Database) -> (Filter, Changes) {
    let (_, filter) = filters().into_iter().find(|(name, _)| *name == "selector").unwrap();
    let heartbeat = Some(Duration::from_millis(1));
    let options = ChangesOptions { heartbeat, ..following(&filter, Sequence::ZERO) };
    (filter, database.changes(options).await.unwrap())
}

/// Follows what passes to where the database stands.
async fn level(database: &Database) -> Changes {
    let (_, mut changes) = selected(database).await;
    let told = told_up_to(&mut changes, database.info().await.unwrap().counters.update_seq).await;
    assert!(matches!(&told[..], [change] if change.id.as_str() == "a" && !change.left), "{told:?}");
    changes
}

async fn assert_leaves(database: &Database, mut changes: Changes) {
    let told = told_up_to(&mut changes, database.info().await.unwrap().counters.update_seq).await;
    assert!(matches!(&told[..], [change] if change.id.as_str() == "a" && change.left), "{told:?}");
}

/// What was newest when the feed stood level had lost to what a history joined below it later.
#[tokio::test]
async fn a_document_leaves_whose_deleted_branch_was_joined_to_the_winner_s() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let of_winner = made_elsewhere(1, &["a"], false, r#"{"in": true}"#);
    let deleted_alone = made_elsewhere(2, &["b"], true, r#"{"why": "x"}"#);
    database.write(vec![of_winner]).await.unwrap();
    database.write(vec![deleted_alone]).await.unwrap();
    let changes = level(&database).await;
    database.write(vec![made_elsewhere(2, &["b", "a"], true, r#"{"why": "x"}"#)]).await.unwrap();
    database.write(vec![made_elsewhere(3, &["c", "b", "a"], false, r#"{"in": false}"#)]).await.unwrap();
    assert_leaves(&database, changes).await;
}

/// What it was before is not known any more when it changes twice.
#[tokio::test]
async fn a_document_leaves_whose_older_revisions_are_forgotten() {
    let (engine, _folder) = engine(|options| options.store.revs_limit = 1);
    let database = engine.create_database("db").await.unwrap();
    edit(&database, "a", Some(true)).await;
    let changes = level(&database).await;
    edit(&database, "a", Some(false)).await;
    edit(&database, "a", Some(false)).await;
    assert_leaves(&database, changes).await;
}

/// Of what changes several times between two looks, those documents alone are told to leave that the reader had then,
/// or that passed meanwhile.
#[tokio::test]
async fn who_stood_level_is_not_told_again_of_what_had_left_however_often_it_changes_then() {
    let mut rng = StdRng::seed_from_u64(seed());
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let (filter, mut changes) = selected(&database).await;
    let mut had = State::new();
    for round in 0..100 {
        let mut passed: BTreeSet<String> = had.keys().cloned().collect();
        for _ in 0..6 {
            // Documents with few revisions, all of which are at hand.
            let id = format!("m-{}-{}", round / 4, rng.random_range(0..3));
            let is_in = rng.random_bool(0.3);
            // None is deleted: of a revision without a body it is not known when it was written.
            edit(&database, &id, Some(is_in)).await;
            if is_in {
                passed.insert(id);
            }
        }
        let update_seq = database.info().await.unwrap().counters.update_seq;
        for change in told_up_to(&mut changes, update_seq).await {
            assert!(!change.left || passed.contains(change.id.as_str()), "round {round}: {change:?}, of {passed:?}");
            apply(&mut had, &change);
        }
        assert_eq!(had, defined(&database, &filter).await, "round {round}");
    }
}

/// It told others nothing of a version that they had been given before they joined it, and it had not.
#[tokio::test]
async fn who_is_behind_when_it_begins_reads_for_others_when_it_has_come_to_where_they_were() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let filter = filters().into_iter().find(|(name, _)| *name == "selector").unwrap().1;
    edit(&database, "m-0", Some(true)).await;
    let options = FeedOptions { since: Since::START, filter, leave: true, ..FeedOptions::live(FeedKind::Sse) };
    let mut feed = database.feed(options).await.unwrap();
    while feed.likeness().is_none() {
        soon(feed.next()).await.unwrap().unwrap();
    }
    let (place, reopening) = (feed.position(), feed.reopening());
    let seat = feed.take_seat().unwrap();

    edit(&database, "m-1", Some(true)).await;
    let newest = database.info().await.unwrap().counters.update_seq;
    let mut again = reopening.open(place, seat, FeedState::Live);
    assert_eq!(again.likeness(), None, "others may have been given what it has not");
    let row = soon(again.next()).await.unwrap().unwrap();
    assert!(matches!(row, FeedEvent::Change(_)), "{row:?}");
    assert!(again.position() >= newest && again.likeness().is_some());
    engine.shutdown().await.unwrap();
}

/// Of a document that was written before the time and deleted behind it, though its feed begins before it was written.
#[tokio::test]
async fn who_comes_back_by_a_time_is_told_what_has_left_since() {
    static NOW: AtomicU64 = AtomicU64::new(100);
    let (engine, _folder) = engine(|options| options.store.clock = || NOW.load(Ordering::Relaxed));
    let database = engine.create_database("db").await.unwrap();
    edit(&database, "m-first", Some(true)).await;
    NOW.store(200, Ordering::Relaxed);
    edit(&database, "m-had", Some(true)).await;
    NOW.store(201, Ordering::Relaxed);
    edit(&database, "m-had", None).await;
    NOW.store(300, Ordering::Relaxed);
    for (name, filter) in filters() {
        let since = Since::Time(SystemTime::UNIX_EPOCH + Duration::from_millis(200_500));
        let options = ChangesOptions { since, filter, leave: true, live: false, ..ChangesOptions::default() };
        let told: Vec<Change> =
            database.changes(options).await.unwrap().only_changes().map(Result::unwrap).collect().await;
        let left: Vec<&str> = told.iter().filter(|change| change.left).map(|change| change.id.as_str()).collect();
        let expected: &[&str] = if name == "ids" { &[] } else { &["m-had"] };
        assert_eq!(left, expected, "{name}");
    }
    // And once more where the feed broke off before it said anything: its token is a place then.
    let since = Since::Seq(Sequence::new(0, 1));
    let filter = filters().into_iter().find(|(name, _)| *name == "selector").unwrap().1;
    let options =
        ChangesOptions { since, began_at_time: true, filter, leave: true, live: false, ..ChangesOptions::default() };
    let told: Vec<Change> = database.changes(options).await.unwrap().only_changes().map(Result::unwrap).collect().await;
    assert!(told.iter().any(|change| change.left && change.id.as_str() == "m-had"), "{told:?}");
    engine.shutdown().await.unwrap();
}
