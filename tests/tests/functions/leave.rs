//! `leave=true` by a function: who applies what comes has what the function lets pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use seqtide::functions::WorkerCommand;
use seqtide::{ChangesOptions, Engine, EngineOptions, Filter};
use serde_json::{Value, json};

use super::{design, fresh};
use seqtide_tests::doors::{
    CUTS_MIN, Door, EmbeddedDoor, EmbeddedStore, HttpDoor, Item, WebSocketDoor, follow_interrupted, follows,
};
use seqtide_tests::http::SOON;
use seqtide_tests::server::binary;
use seqtide_tests::workload::{Store, seed, write_at_random};
use seqtide_tests::{Database, Server};

/// The document written last: a reader that has it has come to the end.
const LAST: &str = "the-last";

/// Of what a document has, of how often it was written, and as a view.
fn functions() -> Value {
    json!({
        "filters": {
            "content": "function (doc) { return /^once|^the-last/.test(doc._id) || doc.n % 3 === 0; }",
            "revision": "function (doc, req) { return doc._id === 'the-last' || parseInt(doc._rev) % 2 == req.query.odd; }",
            "strict": "function (doc) { if (doc.bad) throw 'a bad one'; return doc.in; }",
        },
        "views": { "content": { "map": "function (doc) { if (/^once|^the-last/.test(doc._id) || doc.n % 3 === 0) emit(null); }" } },
    })
}

const QUERIES: [&str; 4] = [
    "filter=d/content",
    "filter=d/revision&query=%7B%22odd%22:1%7D",
    "view=d/content",
    "filter=d/content&selector=%7B%22_id%22:%7B%22$gt%22:%22doc-20%22%7D%7D",
];

/// The forms of `_feed`.
fn forms(server: &Server, database: &Database, query: &str) -> Vec<Arc<dyn Door>> {
    let options = format!("leave=true&heartbeat=20&{query}");
    vec![
        Arc::new(HttpDoor::sse(database, &options)),
        Arc::new(HttpDoor::lines(database, &options)),
        Arc::new(WebSocketDoor::new(server, database, &options)),
    ]
}

async fn next(items: &mut BoxStream<'static, Item>) -> Item {
    tokio::time::timeout(SOON, items.next()).await.expect("an item in time").expect("the feed goes on")
}

/// What is told up to a place: ids, and whether they have left.
async fn told_up_to(items: &mut BoxStream<'static, Item>, place: u64) -> Vec<(String, bool)> {
    let mut told = Vec::new();
    loop {
        let item = next(items).await;
        if let Some(row) = item.row() {
            told.push((row["id"].as_str().expect("an id").to_owned(), row["left"] == json!(true)));
            assert!(row["left"] != json!(true) || row.get("doc").is_none(), "{row}");
        }
        if item.token().is_some_and(|token| !follows(&place.to_string(), token)) {
            return told;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_a_function_lets_pass_no_more_is_told_once_on_every_form() {
    let (server, database) = fresh().await;
    design(&database, "d", &functions()).await;
    // Each filter lets pass what it is told of with `true`; a document that was not there before is new.
    let steps: [(&str, Option<u32>, Option<bool>); 8] = [
        ("a", Some(3), Some(false)),
        ("b", Some(1), None),
        ("a", Some(6), Some(false)),
        ("a", Some(1), Some(true)),
        ("a", Some(2), None),
        ("b", None, None),
        ("a", Some(9), Some(false)),
        ("a", None, Some(true)),
    ];
    let since = database.info().await["update_seq"].as_u64().expect("a number");
    let mut feeds = Vec::new();
    for query in ["filter=d/content&include_docs=true", "view=d/content&prefix=a"] {
        for form in forms(&server, &database, query) {
            let mut items = form.open(Some(since.to_string()), usize::MAX).await;
            told_up_to(&mut items, since).await;
            feeds.push((form.name(), query, items));
        }
    }
    let mut revs: BTreeMap<&str, String> = BTreeMap::new();
    for (step, (id, n, told)) in steps.into_iter().enumerate() {
        let mut body = json!({ "n": n, "_deleted": n.is_none() });
        if let Some(rev) = revs.get(id) {
            body["_rev"] = json!(rev);
        }
        let written = database.request("PUT", &format!("/{id}")).json(&body).send().await;
        assert!([200, 201].contains(&written.status), "{}", written.text());
        revs.insert(id, written.rev());
        let expected: Vec<(String, bool)> = told.into_iter().map(|left| (id.to_owned(), left)).collect();
        for (form, query, items) in &mut feeds {
            assert_eq!(told_up_to(items, written.seq()).await, expected, "step {step}, {query}, {form}");
        }
    }
    // Who comes back after all of it, and over a connection of many.
    let since = since + 3;
    let back = database.get(&format!("/_feed?since={since}&leave=true&filter=d/content&live=false")).expect(200).await;
    let row = format!(
        "{{\"seq\":{},\"id\":\"a\",\"changes\":[{{\"rev\":\"{}\"}}],\"deleted\":true,\"left\":true}}",
        since + 5,
        revs["a"]
    );
    assert_eq!(back.text().lines().filter(|line| line.contains("left")).collect::<Vec<_>>(), [row.as_str()]);
    let subscription =
        json!({ "subscribe": "db", "since": since, "leave": true, "filter": "d/content", "live": false });
    let mut many = database.api.post("/_feed/many").json(&json!({ "subscriptions": subscription })).open().await;
    let told = many.until(|text| text.contains("\"end\"") && text.ends_with('\n')).await;
    assert!(told.contains(&row[1..]), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leave_is_sent_where_what_was_before_is_gone() {
    let (_server, database) = fresh().await;
    design(&database, "d", &functions()).await;
    let given = database.put("a", &json!({ "n": 3 })).await;
    database.put("a", &json!({ "_rev": given.rev(), "n": 1 })).await;
    database.post("/_compact").json(&json!({})).expect(202).await;
    let compacted = async {
        while database.info().await["compact_running"] == json!(true) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, compacted).await.expect("it is swept");
    let path = format!("/_feed?since={}&leave=true&live=false&filter=d/content", given.seq());
    let told = database.get(&path).expect(200).await;
    assert!(told.text().contains("\"left\":true"), "{}", told.text());
    let never_had = database.get("/_feed?since=0&leave=true&live=false&filter=d/content").expect(200).await;
    assert!(!never_had.text().contains("\"id\""), "{}", never_had.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_throws_about_what_was_before_ends_the_feed_as_about_what_is() {
    let (_server, database) = fresh().await;
    design(&database, "d", &functions()).await;
    let fixed = database.put("fixed", &json!({ "bad": true })).await;
    let bad = database.put("bad", &json!({ "bad": true })).await;
    let path = format!("/_feed?since={}&leave=true&filter=d/strict", bad.seq());
    let mut feed = database.get(&path).open().await;
    feed.until(|text| text.contains("caught-up")).await;
    // What passes has not left: nobody is asked what it was.
    database.put("fixed", &json!({ "_rev": fixed.rev(), "in": true })).await;
    feed.until(|text| text.contains("\"fixed\"")).await;
    database.put("bad", &json!({ "_rev": bad.rev(), "in": false })).await;
    let told = feed.until(|text| text.contains("\"error\"") && text.ends_with('\n')).await;
    let last = told.lines().last().expect("an event");
    assert!(last.starts_with("{\"event\":\"error\",\"error\":\"function_failed\""), "{last}");
    assert!(last.contains("filters.strict of _design/d") && last.contains("a bad one"), "{last}");
    assert!(last.contains("bad"), "{last}");
}

/// What a reader has: revisions by id.
type State = BTreeMap<String, String>;

fn apply(state: &mut State, row: &Value) {
    let id = row["id"].as_str().expect("an id").to_owned();
    let rev = row["changes"][0]["rev"].as_str().expect("a rev").to_owned();
    match row["left"] == json!(true) {
        true => drop(state.remove(&id)),
        false => {
            assert_ne!(row["deleted"], json!(true), "what is deleted has left: {row}");
            state.insert(id, rev);
        }
    }
}

/// Names what is not the same.
fn assert_same(state: &State, defined: &State, who: &str) {
    let ids: BTreeSet<&String> = state.keys().chain(defined.keys()).collect();
    let of = |id: &&String| (state.get(*id).cloned(), defined.get(*id).cloned());
    let differ: Vec<_> = ids.iter().filter(|id| of(id).0 != of(id).1).map(|id| (id, of(id))).collect();
    assert!(differ.is_empty(), "{who}: what the reader has, and ought to: {differ:?}");
}

/// Follows a door to the last document, however it is interrupted.
async fn follow(door: Arc<dyn Door>, seed: u64) -> (State, usize) {
    let mut state = State::new();
    let take = |item: &Item, _: &str| {
        item.row().into_iter().for_each(|row| apply(&mut state, row));
        state.contains_key(LAST)
    };
    let opened = follow_interrupted(&*door, seed, take).await;
    (state, opened)
}

/// Writes at random, conflicts too, while readers follow; gives what each has in the end.
async fn follow_what_is_written(
    store: Arc<dyn Store>,
    doors: Vec<Arc<dyn Door>>,
    reclaim: impl AsyncFn(),
) -> Vec<(&'static str, State)> {
    let seed = seed();
    let readers: Vec<_> = (0..)
        .zip(doors)
        .map(|(number, door)| (door.name(), tokio::spawn(follow(door, seed ^ (1000 + number)))))
        .collect();
    let writing = write_at_random(Arc::clone(&store), seed, 3, 200);
    tokio::pin!(writing);
    loop {
        tokio::select! {
            () = &mut writing => break,
            () = tokio::time::sleep(Duration::from_millis(100)) => reclaim().await,
        }
    }
    store.write(vec![json!({ "_id": LAST })], true).await;
    let (mut states, mut opened) = (Vec::new(), 0);
    for (name, reader) in readers {
        let read = tokio::time::timeout(Duration::from_secs(90), reader).await;
        let (state, times) = read.unwrap_or_else(|_| panic!("{name} never came to the end")).expect("a reader");
        opened += times;
        states.push((name, state));
    }
    assert!(opened >= CUTS_MIN * states.len(), "they were cut too seldom to prove anything: {opened}");
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_readers_end_with_what_a_function_lets_pass_however_they_were_interrupted() {
    for query in QUERIES {
        let (server, database) = fresh().await;
        design(&database, "d", &functions()).await;
        let doors = forms(&server, &database, &format!("{query}&snapshot=true"));
        let reclaim = async || drop(database.post("/_compact").json(&json!({})).expect(202).await);
        let states = follow_what_is_written(Arc::new(database.clone()), doors, reclaim).await;
        let now = database.get(&format!("/_feed?snapshot=true&live=false&{query}")).expect(200).await;
        let mut defined = State::new();
        let rows = now.text().lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        rows.filter(|row| row.get("id").is_some()).for_each(|row| apply(&mut defined, &row));
        assert!(defined.len() > 1, "something passes {query}: {defined:?}");
        for (form, state) in states {
            assert_same(&state, &defined, &format!("{query}, {form}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inside_the_program_readers_end_with_what_a_function_lets_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = EngineOptions::new(folder.path());
    options.tail_bytes_max = 20_000;
    options.functions.worker = Some(WorkerCommand::new(binary(), ["js-worker"]));
    let engine = Engine::start_with(options).expect("an engine");
    for name in ["filtered", "viewed"] {
        let database = engine.create_database(name).await.expect("a database");
        database.put("_design/d", functions().to_string()).await.expect("it is written");
        let odd = serde_json::from_str(r#"{"odd": 1}"#).expect("JSON");
        let function = match name {
            "filtered" => database.filter_function("d", "revision", odd).await,
            _ => database.view_function("d", "content").await,
        };
        let function = function.expect("a function");
        let (filter, heartbeat) = (Filter::function(function), Some(Duration::from_millis(20)));
        let options = ChangesOptions { filter, heartbeat, snapshot: true, leave: true, ..ChangesOptions::default() };
        let doors: Vec<Arc<dyn Door>> =
            (0..2).map(|_| Arc::new(EmbeddedDoor::new(&database, options.clone())) as Arc<dyn Door>).collect();
        let reclaim = async || database.reclaim().await.expect("it is begun");
        let states = follow_what_is_written(Arc::new(EmbeddedStore::new(&database)), doors, reclaim).await;
        let now = EmbeddedDoor::new(&database, ChangesOptions { live: false, leave: false, ..options });
        let mut defined = State::new();
        let rows: Vec<Item> = now.open(None, usize::MAX).await.collect().await;
        rows.iter().filter_map(Item::row).for_each(|row| apply(&mut defined, row));
        for (name, state) in states {
            assert_same(&state, &defined, name);
        }
    }
    engine.shutdown().await.expect("an orderly end");
}
