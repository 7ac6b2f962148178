//! Feeds of a database with an index against those of one without, which has seen the same writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use seqtide::storage::json::{Body, ScanLimits, scan_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::rev::{RevHash, RevId};
use seqtide::storage::model::rev_path::RevPath;
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{Edit, Write};
use seqtide::{
    Database, EndReason, FeedEvent, FeedIndexState, FeedKind, FeedMode, FeedOptions, Filter, IndexFields, Portion,
    RowShape, Selector, Since, Test,
};

use crate::support::{engine, soon};

const DOCUMENTS: usize = 300;
/// More versions than are walked past without looking at an index.
const REQUESTS: usize = 150;
const WRITES: usize = 20;

const VALUES: [&str; 14] = [
    "1",
    "1.0",
    "1.5",
    "-0.0",
    "0",
    "null",
    "true",
    "false",
    "\"a\"",
    "\"A\"",
    "\"\u{e1}\"",
    "\"a\u{301}\"",
    "{\"x\":1}",
    "[1,\"a\",[2],null]",
];

fn body(random: &mut StdRng) -> Body {
    let value = |random: &mut StdRng| match random.random_range(0..40) {
        0 => format!("[{}]", vec!["\"a\""; 1_001].join(",")),
        1 => format!("\"{}\"", "a".repeat(4_097)),
        2 => "36893488147419103232".to_owned(),
        _ => (*VALUES.choose(random).unwrap()).to_owned(),
    };
    let mut members = Vec::new();
    for member in ["v", "w", "plain"] {
        if random.random_bool(0.8) {
            members.push(format!("\"{member}\":{}", value(random)));
        }
    }
    members.push(format!("\"n\":{{\"x\":{}}}", value(random)));
    scan_document(format!("{{{}}}", members.join(",")).as_bytes(), &ScanLimits::default()).unwrap().body
}

fn selector(random: &mut StdRng) -> String {
    let path = *["v", "w", "n.x", "plain", "_deleted", "_id"].choose(random).unwrap();
    let value = match path {
        "_deleted" => "true".to_owned(),
        "_id" => format!("\"d{}\"", random.random_range(0..DOCUMENTS)),
        _ => (*VALUES.choose(random).unwrap()).to_owned(),
    };
    let other = *VALUES.choose(random).unwrap();
    match random.random_range(0..9) {
        0 => format!(r#"{{"{path}":{{"$in":[{value},{other}]}}}}"#),
        1 => format!(r#"{{"{path}":{{"$in":[]}}}}"#),
        2 => format!(r#"{{"{path}":{{"$all":[{value}]}}}}"#),
        3 => format!(r#"{{"$or":[{{"{path}":{value}}},{{"{path}":{other}}}]}}"#),
        4 => format!(r#"{{"{path}":{value},"w":{{"$gte":{other}}}}}"#),
        5 => format!(r#"{{"{path}":{value},"w":{{"$eq":{other}}}}}"#),
        6 => format!(r#"{{"{path}":{{"$ne":{value}}}}}"#),
        _ => format!(r#"{{"{path}":{value}}}"#),
    }
}

/// The writes of a request, each of another document; some of them conflict.
async fn writes(database: &Database, random: &mut StdRng) -> Vec<Write> {
    let mut ids: Vec<usize> = (0..DOCUMENTS).collect();
    let mut writes = Vec::new();
    for _ in 0..WRITES {
        let id = DocId::parse(&format!("d{}", ids.swap_remove(random.random_range(0..ids.len())))).unwrap();
        let tree = database
            .read({
                let id = id.clone();
                move |snapshot| snapshot.tree(&id)
            })
            .await
            .unwrap();
        let leaf = tree.and_then(|found| found.tree.leaves().choose(random).map(|leaf| leaf.rev.clone()));
        writes.push(match random.random_range(0..20) {
            0 => Write::Purge { id, revs: leaf.into_iter().collect() },
            1 | 2 => {
                let hash = RevHash::parse(&format!("r{}", random.random_range(0..1_000_000))).unwrap();
                let path = RevPath::lone(RevId::new(random.random_range(1..4), hash));
                Write::Edit(Edit::replicated(id, path, random.random_bool(0.2), body(random)))
            }
            3 | 4 => Write::Edit(Edit::interactive(id, leaf, true, body(random))),
            _ => Write::Edit(Edit::interactive(id, leaf, false, body(random))),
        });
    }
    writes
}

/// All that a feed tells until it ends.
async fn told(database: &Database, options: FeedOptions) -> (Vec<String>, EndReason, Sequence, u64) {
    let mut feed = database.feed(options).await.unwrap();
    let mut told = Vec::new();
    loop {
        match soon(feed.next()).await.unwrap().expect("the feed goes on") {
            FeedEvent::Change(Portion::Rows(rows)) => told.extend(rows.iter().map(|row| format!("{:?}", row.change()))),
            FeedEvent::End { reason, seq, pending } => return (told, reason, seq, pending.unwrap()),
            _ => {}
        }
    }
}

fn options(random: &mut StdRng, newest: u64, selector: &str) -> FeedOptions {
    let since = if random.random_bool(0.5) { 0 } else { random.random_range(0..newest) };
    let mut filter = Filter::selector(Selector::from_json(selector).unwrap());
    if random.random_bool(0.2) {
        filter = Filter { test: Test { conflicts_only: true, ..filter.test }, ..filter };
    }
    if random.random_bool(0.2) {
        filter = Filter { ids: Filter::prefix("d1").ids, ..filter };
    }
    FeedOptions {
        since: Since::Seq(Sequence::new(0, since)),
        mode: FeedMode::Once,
        limit: random.random_bool(0.4).then(|| random.random_range(0..12)),
        descending: random.random_bool(0.3),
        shape: RowShape { all_leaves: random.random_bool(0.5), doc: random.random_bool(0.5), conflicts: false },
        filter,
        ..FeedOptions::live(FeedKind::Embedded)
    }
}

async fn compare(indexed: &Database, plain: &Database, random: &mut StdRng, times: usize) {
    let newest = plain.info().await.unwrap().counters.update_seq.version;
    for _ in 0..times {
        let selector = selector(random);
        let options = options(random, newest, &selector);
        let (found, expected) = (told(indexed, options.clone()).await, told(plain, options.clone()).await);
        assert_eq!(found, expected, "{selector} {options:?}");
    }
}

async fn until_ready(database: &Database) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while database.feed_index().await.unwrap().state != FeedIndexState::Ready {
        assert!(Instant::now() < deadline, "{:?}", database.feed_index().await);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_gets_ready_under_writers_that_never_pause() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let document = |n: usize| {
        let body = scan_document(format!("{{\"n\":{n}}}").as_bytes(), &ScanLimits::default()).unwrap().body;
        Write::Edit(Edit::interactive(DocId::parse(&format!("d{n}")).unwrap(), None, false, body))
    };
    database.write((0..5_000).map(document).collect()).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (database, stop) = (database.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return n;
                    }
                    database.put(&format!("w{writer}-{n}"), r#"{"n":1}"#).await.unwrap();
                }
                0
            })
        })
        .collect();
    database.set_feed_index(&IndexFields::parse(["n"]).unwrap()).await.unwrap();
    until_ready(&database).await;
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += soon(writer).await.unwrap();
    }
    // Not each of them: on a busy machine one may not have had its turn.
    assert!(written > 0, "they wrote meanwhile");
    engine.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_by_an_index_tells_what_it_would_tell_without() {
    let seed = std::env::var("SEQTIDE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("SEQTIDE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    // Nothing is in memory: without an index the disk is scanned.
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 1);
    let indexed = engine.create_database("indexed").await.unwrap();
    let plain = engine.create_database("plain").await.unwrap();
    let all = IndexFields::parse(["v", "w", "n.x", "_deleted", "_id"]).unwrap();
    let some = IndexFields::parse(["w", "v"]).unwrap();
    for request in 0..REQUESTS {
        match request {
            70 => drop(indexed.set_feed_index(&some).await.unwrap()),
            100 => drop(indexed.set_feed_index(&all).await.unwrap()),
            _ => {}
        }
        let writes = writes(&plain, &mut random).await;
        let (one, other) = (indexed.write(writes.clone()).await, plain.write(writes).await);
        assert_eq!(one.unwrap().seq, other.unwrap().seq);
        if request > 70 && request % 10 == 0 {
            compare(&indexed, &plain, &mut random, 10).await;
        }
    }
    until_ready(&indexed).await;
    compare(&indexed, &plain, &mut random, 300).await;
    let index = indexed.feed_index().await.unwrap();
    assert_eq!(index.fields, ["v", "w", "n.x", "_deleted", "_id"]);
    assert_eq!((index.rows_done, index.rows_total), (index.rows_total, plain.info().await.unwrap().counters.rows()));
    engine.shutdown().await.unwrap();
}
