//! Every door tells the same story: whatever is written, and wherever a reader is cut, it sees sequences rise and
//! ends with each document's row.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use seqtide::{ChangesOptions, Engine};
use seqtide_tests::doors::{
    CUTS_MIN, Door, EmbeddedDoor, EmbeddedStore, HttpDoor, Item, WebSocketDoor, follow_interrupted, follows,
};
use seqtide_tests::workload::{Store, seed, write_at_random};
use seqtide_tests::{Database, Server};

const WRITERS: u64 = 4;
const REQUESTS: usize = 150;
const READERS_A_DOOR: u64 = 2;
const DEADLINE: Duration = Duration::from_secs(180);

/// The document written last: a reader that has seen its row has come to the end.
const LAST: &str = "the-last";

/// What one reader has seen.
struct Seen {
    rows: BTreeMap<String, Value>,
    opened: usize,
}

/// Follows a door to the last document, however it is interrupted.
async fn follow(door: Arc<dyn Door>, seed: u64) -> Seen {
    let mut rows = BTreeMap::new();
    let take = |item: &Item, earlier: &str| {
        if let Some(row) = item.row() {
            let later = item.token().expect("a row has one");
            assert!(follows(later, earlier), "{}: {later} after {earlier}", door.name());
            rows.insert(row["id"].as_str().expect("an id").to_owned(), row.clone());
        } else if let Some(later) = item.token() {
            assert!(!follows(earlier, later), "{}: an event at {later} after {earlier}", door.name());
        }
        rows.contains_key(LAST)
    };
    let opened = follow_interrupted(&*door, seed, take).await;
    Seen { rows, opened }
}

/// Writes at random while readers follow through these doors, and compares what each has seen with `_changes`.
async fn agree(store: Arc<dyn Store>, doors: Vec<Arc<dyn Door>>) {
    let seed = seed();
    let readers: Vec<_> = (0..READERS_A_DOOR)
        .flat_map(|number| {
            doors.iter().enumerate().map(move |(index, door)| (door, seed + number * 100 + index as u64))
        })
        .map(|(door, seed)| (door.name(), tokio::spawn(follow(Arc::clone(door), seed))))
        .collect();
    write_at_random(Arc::clone(&store), seed, WRITERS, REQUESTS).await;
    store.write(vec![json!({ "_id": LAST })], true).await;

    let rows = store.rows().await;
    let seqs: Vec<String> = rows.iter().map(|row| row["seq"].to_string()).collect();
    assert!(seqs.is_sorted_by(|earlier, later| follows(later, earlier)), "{seqs:?}");
    let by_id: BTreeMap<String, Value> =
        rows.iter().map(|row| (row["id"].as_str().expect("an id").to_owned(), row.clone())).collect();
    assert_eq!(by_id.len(), rows.len(), "one row a document");
    for (name, reader) in readers {
        let seen =
            tokio::time::timeout(DEADLINE, reader).await.unwrap_or_else(|_| panic!("{name} never came to the end"));
        let seen = seen.unwrap_or_else(|error| panic!("{name}: {error}"));
        for (id, row) in &by_id {
            assert_eq!(seen.rows.get(id), Some(row), "{name}, opened {} times: {id}", seen.opened);
        }
        assert_eq!(seen.rows.len(), by_id.len(), "{name} saw documents that are not there");
        assert!(seen.opened >= CUTS_MIN, "{name} was cut too seldom to prove anything: {}", seen.opened);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_every_door_ends_with_each_document_s_row() {
    let server = Server::start();
    let database = Database::create(&server, "db").await;
    let options = "style=all_docs&heartbeat=20";
    let doors: Vec<Arc<dyn Door>> = vec![
        Arc::new(HttpDoor::continuous(&database, options)),
        Arc::new(HttpDoor::eventsource(&database, options)),
        Arc::new(HttpDoor::sse(&database, options)),
        Arc::new(HttpDoor::lines(&database, options)),
        Arc::new(WebSocketDoor::new(&server, &database, options)),
    ];
    agree(Arc::new(database), doors).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inside_the_program_the_stream_ends_with_each_document_s_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::start(folder.path()).expect("an engine");
    let database = engine.create_database("db").await.expect("a database");
    let heartbeat = Some(Duration::from_millis(20));
    let options = ChangesOptions { all_leaves: true, heartbeat, ..ChangesOptions::default() };
    let door = EmbeddedDoor::new(&database, options);
    agree(Arc::new(EmbeddedStore::new(&database)), vec![Arc::new(door)]).await;
    engine.shutdown().await.expect("an orderly end");
}
