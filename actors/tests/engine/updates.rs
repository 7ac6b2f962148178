use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{LocalEdit, Write};
use seqtide::{
    ChangeEvent, Changes, Databases, DbUpdate, EndReason, Engine, Error, Feed, FeedEvent, FeedMode, Portion, Since,
    UpdateKind, UpdatesOptions,
};
use tokio_stream::StreamExt;

use crate::support::{engine, soon};

fn from_start() -> UpdatesOptions {
    UpdatesOptions { since: Since::START, ..UpdatesOptions::default() }
}

fn once() -> UpdatesOptions {
    UpdatesOptions { mode: FeedMode::Once, ..from_start() }
}

fn since(seq: Sequence) -> UpdatesOptions {
    UpdatesOptions { since: Since::Seq(seq), ..once() }
}

/// All rows up to the end, as `kind name seq`, and the end's reason and sequence.
async fn told(engine: &Engine, options: UpdatesOptions) -> (Vec<String>, EndReason, u64) {
    let mut feed = engine.updates_feed(options).unwrap();
    let mut rows = Vec::new();
    loop {
        match next(&mut feed).await {
            FeedEvent::Change(Portion::Rows(page)) => rows.extend(page.iter().map(|row| text(row))),
            FeedEvent::End { reason, seq, .. } => return (rows, reason, seq.version),
            _ => {}
        }
    }
}

fn text(row: &DbUpdate) -> String {
    format!("{} {} {}", row.kind.name(), row.name, row.seq.version)
}

async fn next(feed: &mut Feed<Databases>) -> FeedEvent<DbUpdate> {
    soon(feed.next()).await.unwrap().expect("the feed goes on")
}

async fn next_event(updates: &mut Changes<DbUpdate>) -> ChangeEvent<DbUpdate> {
    soon(updates.next()).await.expect("the stream goes on").expect("it can be read")
}

#[tokio::test]
async fn databases_are_told_of_in_order_and_each_at_its_latest() {
    let (engine, _folder) = engine(|_| {});
    let a = engine.create_database("a").await.unwrap();
    let b = engine.create_database("b").await.unwrap();
    for (database, id) in [(&a, "x"), (&b, "x"), (&a, "y")] {
        database.put(id, "{}").await.unwrap();
    }
    let all = ["created a 1", "created b 2", "updated b 4", "updated a 5"];
    assert_eq!(told(&engine, once()).await, (all.map(str::to_owned).to_vec(), EndReason::CaughtUp, 5));
    engine.delete_database("a").await.unwrap();
    engine.create_database("a").await.unwrap();
    assert_eq!(told(&engine, since(Sequence::new(0, 4))).await.0, ["created a 7"]);

    let limited = UpdatesOptions { limit: Some(2), ..once() };
    assert_eq!(told(&engine, limited).await, (vec!["created b 2".into(), "updated b 4".into()], EndReason::Limit, 4));
    let backward = UpdatesOptions { descending: true, limit: Some(2), ..once() };
    assert_eq!(told(&engine, backward).await.0, ["created a 7", "updated b 4"]);
    let named = UpdatesOptions { prefix: Some("b".into()), ..once() };
    assert_eq!(told(&engine, named).await, (vec!["created b 2".into(), "updated b 4".into()], EndReason::CaughtUp, 7));
    assert_eq!(engine.update_seq(), Sequence::new(0, 7));
}

/// It slept until the next commit that changed a document, or its heartbeat.
#[tokio::test]
async fn what_waited_for_room_wakes_a_feed_when_there_is_some_whatever_the_commit_does() {
    let (engine, folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let in_the_way = folder.path().join("catalogue.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    database.put("a", "{}").await.unwrap();
    let mut feed = engine.updates_feed(UpdatesOptions { heartbeat: None, ..from_start() }).unwrap();
    while !matches!(next(&mut feed).await, FeedEvent::CaughtUp { .. }) {}
    std::fs::remove_dir(&in_the_way).unwrap();
    // It waits when the commit is made.
    let (event, refused) = tokio::join!(biased; next(&mut feed), database.put("a", "{}"));
    refused.unwrap_err();
    let FeedEvent::Change(Portion::Rows(page)) = event else { panic!("{event:?}") };
    let rows: Vec<_> = page.iter().map(|row| text(row)).collect();
    assert_eq!(rows, ["updated db 2"]);
}

#[tokio::test]
async fn only_commits_that_change_documents_are_updates() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let put = database.put("a", "{}").await.unwrap();
    let before = engine.update_seq();
    assert!(database.put("a", "{}").await.is_err(), "a conflict");
    database.write(vec![Write::RevsLimit(7)]).await.unwrap();
    let id = seqtide::storage::model::doc_id::LocalId::parse("_local/x").unwrap().unwrap();
    let body = Some(seqtide::storage::json::Body::empty());
    database.write(vec![Write::Local(LocalEdit { id, base: None, checked: true, body })]).await.unwrap();
    assert_eq!(engine.update_seq(), before);
    database.delete("a", put.rev).await.unwrap();
    assert!(engine.update_seq() > before);
}

#[tokio::test]
async fn a_live_feed_is_woken_and_a_filtered_one_moves_on() {
    let (engine, _folder) = engine(|_| {});
    let mut all = engine.updates(UpdatesOptions::default()).unwrap();
    let beating = UpdatesOptions {
        prefix: Some("wanted".into()),
        heartbeat: Some(Duration::from_millis(20)),
        ..UpdatesOptions::default()
    };
    let mut wanted = engine.updates(beating).unwrap();
    assert!(matches!(next_event(&mut all).await, ChangeEvent::Open { .. }));
    assert_eq!(next_event(&mut all).await, ChangeEvent::CaughtUp { seq: Sequence::ZERO });
    let other = engine.create_database("other").await.unwrap();
    assert!(matches!(next_event(&mut all).await, ChangeEvent::Change(update) if text(&update) == "created other 1"));
    other.put("a", "{}").await.unwrap();
    assert!(matches!(next_event(&mut all).await, ChangeEvent::Change(update) if text(&update) == "updated other 2"));
    loop {
        match next_event(&mut wanted).await {
            ChangeEvent::Heartbeat { seq, pending } if seq == Sequence::new(0, 2) => break assert_eq!(pending, 0),
            ChangeEvent::Change(update) => panic!("{update:?}"),
            _ => {}
        }
    }
    engine.create_database("wanted").await.unwrap();
    let mut wanted = wanted.only_changes();
    assert_eq!(text(&soon(wanted.next()).await.unwrap().unwrap()), "created wanted 3");
}

/// A reader that falls behind is told less, and its memory does not grow with what it misses.
#[tokio::test]
async fn a_slow_reader_gets_the_latest_rows_and_no_queue() {
    let (engine, _folder) = engine(|_| {});
    let mut feed = engine.updates_feed(from_start()).unwrap();
    for name in ["a", "b"] {
        let database = engine.create_database(name).await.unwrap();
        for n in 0..100 {
            database.put(&format!("d{n}"), "{}").await.unwrap();
        }
    }
    for n in 0..20 {
        engine.create_database(&format!("short-{n}")).await.unwrap();
        engine.delete_database(&format!("short-{n}")).await.unwrap();
    }
    assert!(matches!(next(&mut feed).await, FeedEvent::Open { .. }));
    let FeedEvent::Change(Portion::Rows(rows)) = next(&mut feed).await else { panic!("rows come first") };
    assert_eq!(rows.len(), 4 + 20, "of 242 updates");
    let rows: Vec<String> = rows[..4].iter().map(|row| text(row)).collect();
    assert_eq!(rows, ["created a 1", "updated a 101", "created b 102", "updated b 202"]);
    assert!(matches!(next(&mut feed).await, FeedEvent::CaughtUp { seq } if seq == Sequence::new(0, 242)));
}

#[tokio::test]
async fn an_orderly_restart_changes_no_token() {
    let (first, folder) = engine(|_| {});
    let database = first.create_database("a").await.unwrap();
    database.put("x", "{}").await.unwrap();
    first.create_database("b").await.unwrap();
    let before = told(&first, once()).await;
    soon(first.shutdown()).await.unwrap();
    assert!(first.updates(from_start()).is_ok(), "who comes late is told of the end, not refused");
    let second = Engine::start(folder.path()).unwrap();
    assert_eq!(told(&second, once()).await, before);
    second.database("b").unwrap().put("x", "{}").await.unwrap();
    assert_eq!(told(&second, since(Sequence::new(0, before.2))).await.0, ["updated b 4"]);
}

#[tokio::test]
async fn a_token_from_the_future_is_rewound_or_refused() {
    let (engine, _folder) = engine(|_| {});
    engine.create_database("a").await.unwrap();
    for ahead in [Sequence::new(0, 2), Sequence::new(1, 0)] {
        let mut feed = engine.updates_feed(since(ahead)).unwrap();
        assert!(feed.is_ahead());
        assert!(matches!(next(&mut feed).await, FeedEvent::Rewind { since, .. } if since == ahead));
        assert!(
            matches!(next(&mut feed).await, FeedEvent::Change(Portion::Rows(rows)) if text(&rows[0]) == "created a 1")
        );
        let refused = engine.updates(UpdatesOptions { ahead: seqtide::Ahead::Refuse, ..since(ahead) }).map(drop);
        assert!(matches!(refused, Err(Error::Ahead { update_seq, .. }) if update_seq == Sequence::new(0, 1)));
    }
}

#[tokio::test]
async fn feeds_of_updates_are_bounded_with_all_others_and_end_with_the_engine() {
    let (engine, _folder) = engine(|options| options.feeds_max = 2);
    let database = engine.create_database("a").await.unwrap();
    let changes = database.changes(Default::default()).await.unwrap();
    let mut updates = engine.updates(UpdatesOptions::default()).unwrap();
    assert!(matches!(engine.updates(from_start()).map(drop), Err(Error::TooManyFeeds { feeds_max: 2 })));
    drop(changes);
    let mut second = engine.updates(from_start()).unwrap();
    engine.end_feeds();
    assert!(matches!(next_event(&mut second).await, ChangeEvent::Open { .. }));
    assert!(matches!(next_event(&mut second).await, ChangeEvent::End { reason: EndReason::Shutdown, .. }));
    drop((engine, database));
    loop {
        match next_event(&mut updates).await {
            ChangeEvent::End { reason, seq, .. } => break assert_eq!((reason, seq.version), (EndReason::Shutdown, 1)),
            other => assert!(matches!(other, ChangeEvent::Open { .. } | ChangeEvent::CaughtUp { .. }), "{other:?}"),
        }
    }
    assert!(soon(updates.next()).await.is_none(), "nothing follows the end");
}

const WRITERS: u64 = 4;

/// Makes, writes to and deletes databases of its own; gives what happened last to each.
async fn churn(engine: Engine, number: u64, seed: u64) -> BTreeMap<String, UpdateKind> {
    let mut rng = StdRng::seed_from_u64(seed ^ number);
    let mut last = BTreeMap::new();
    for step in 0..60 {
        let name = format!("w{number}-{}", rng.random_range(0..3));
        let exists = matches!(last.get(&name), Some(UpdateKind::Created | UpdateKind::Updated));
        let kind = match (exists, rng.random_range(0..4)) {
            (false, _) => {
                engine.create_database(&name).await.unwrap();
                UpdateKind::Created
            }
            (true, 0) => {
                engine.delete_database(&name).await.unwrap();
                UpdateKind::Deleted
            }
            (true, _) => {
                engine.database(&name).unwrap().put(&format!("d{step}"), "{}").await.unwrap();
                UpdateKind::Updated
            }
        };
        last.insert(name, kind);
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_know_at_the_end_what_happened_last_to_each_database() {
    let seed = crate::model::seed();
    let (engine, _folder) = engine(|options| options.databases_open_max = 6);
    let readers: Vec<_> = [1, 40]
        .map(|pause| {
            let mut feed = engine.updates_feed(from_start()).unwrap();
            tokio::spawn(async move {
                let (mut known, mut position) = (BTreeMap::new(), 0);
                loop {
                    match next(&mut feed).await {
                        FeedEvent::Change(Portion::Rows(rows)) => {
                            for row in rows {
                                assert!(row.seq.version > position, "{row:?} after {position}");
                                position = row.seq.version;
                                known.insert(row.name.to_string(), row.kind);
                            }
                        }
                        FeedEvent::End { .. } => panic!("the engine goes on"),
                        _ => {}
                    }
                    if known.contains_key("last") {
                        return known;
                    }
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            })
        })
        .into_iter()
        .collect();
    let writers: Vec<_> = (0..WRITERS).map(|number| tokio::spawn(churn(engine.clone(), number, seed))).collect();
    let mut expected = BTreeMap::new();
    for writer in writers {
        expected.extend(soon(writer).await.unwrap());
    }
    engine.create_database("last").await.unwrap();
    expected.insert("last".to_owned(), UpdateKind::Created);
    for reader in readers {
        assert_eq!(soon(reader).await.unwrap(), expected);
    }
}
