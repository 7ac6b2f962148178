use std::collections::BTreeSet;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use seqtide::storage::json::Body;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{Durability, Edit, Write};
use seqtide::{
    ChangeEvent, ChangesOptions, Database, EndReason, Engine, Error, FeedKind, FeedOptions, PutError, Since,
};

use crate::support::{engine, next_change, next_event, soon};

#[tokio::test]
async fn more_databases_than_may_be_open_take_turns_and_feeds_stay() {
    let (engine, _folder) = engine(|options| options.databases_open_max = 2);
    let mut databases = Vec::new();
    for n in 0..5 {
        databases.push(engine.create_database(&format!("db{n}")).await.unwrap());
    }
    let mut changes = databases[0].changes(ChangesOptions::default()).await.unwrap();
    for round in 0..6 {
        for database in &databases {
            soon(database.put(&format!("d{round}"), "{}")).await.unwrap();
            assert!(database.get(&format!("d{round}")).await.unwrap().is_some());
        }
        assert_eq!(next_change(&mut changes).await.id.as_str(), format!("d{round}"));
    }
    for database in &databases {
        assert_eq!(database.info().await.unwrap().counters.update_seq.version, 6);
    }
    let second = databases[1].changes(ChangesOptions::default()).await.unwrap();
    let refused = databases[2].put("one-too-many", "{}").await;
    assert!(matches!(refused, Err(PutError::Engine(Error::TooManyDatabases { databases_max: 2 }))), "{refused:?}");
    drop(second);
    databases[2].put("room-again", "{}").await.unwrap();
}

#[tokio::test]
async fn a_deletion_ends_feeds_and_a_successor_counts_on() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let old = database.put("a", "{}").await.unwrap();
    let mut changes = database.changes(ChangesOptions::default()).await.unwrap();
    engine.delete_database("db").await.unwrap();
    loop {
        match next_event(&mut changes).await {
            ChangeEvent::End { reason, seq, .. } => break assert_eq!((reason, seq), (EndReason::Deleted, old.seq)),
            other => assert!(matches!(other, ChangeEvent::Open { .. } | ChangeEvent::CaughtUp { .. }), "{other:?}"),
        }
    }
    assert!(matches!(database.get("a").await, Err(Error::NoDatabase)));
    assert!(matches!(engine.database("db"), Err(Error::NoDatabase)));

    engine.create_database("db").await.unwrap();
    assert!(database.get("a").await.unwrap().is_none(), "the handle serves the successor");
    let since_old = ChangesOptions { since: Since::Seq(old.seq), ..ChangesOptions::default() };
    let mut changes = database.changes(since_old).await.unwrap();
    let new = database.put("b", "{}").await.unwrap();
    assert!(new.seq > old.seq);
    assert_eq!(next_change(&mut changes).await.seq, new.seq, "no old token hides a new write");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_during_a_deletion_are_done_or_told_that_there_is_no_database() {
    let (engine, _folder) = engine(|_| {});
    for round in 0..10 {
        let database = engine.create_database("db").await.unwrap();
        let requests: Vec<_> = (0..40).map(|n| tokio::spawn(ask(database.clone(), n))).collect();
        soon(engine.delete_database("db")).await.unwrap();
        for answer in join_all(requests).await {
            match answer.unwrap() {
                Ok(()) | Err(Error::NoDatabase) => {}
                Err(other) => panic!("round {round}: {other}"),
            }
        }
    }
}

async fn ask(database: Database, n: usize) -> Result<(), Error> {
    match n % 3 {
        0 => database.get("d0").await.map(drop),
        1 => database.changes(ChangesOptions::default()).await.map(drop),
        _ => match database.put(&format!("d{n}"), "{}").await {
            Err(PutError::Engine(error)) => Err(error),
            Err(other) => panic!("{other}"),
            Ok(_) => Ok(()),
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_feeds_and_keeps_all_that_was_acknowledged() {
    let (engine, folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let mut changes = database.changes(ChangesOptions::default()).await.unwrap();
    let writers: Vec<_> = (0..200)
        .map(|n| {
            let database = database.clone();
            tokio::spawn(async move { (n, database.put(&format!("d{n}"), "{}").await) })
        })
        .collect();
    let mut seen = BTreeSet::from([next_change(&mut changes).await.id.to_string()]);
    soon(engine.shutdown()).await.unwrap();

    let mut acknowledged = BTreeSet::new();
    for answer in join_all(writers).await {
        match answer.unwrap() {
            (n, Ok(_)) => drop(acknowledged.insert(format!("d{n}"))),
            (_, Err(PutError::Engine(Error::Stopped))) => {}
            (n, Err(other)) => panic!("d{n}: {other}"),
        }
    }
    let token = loop {
        match next_event(&mut changes).await {
            ChangeEvent::Change(change) => drop(seen.insert(change.id.to_string())),
            ChangeEvent::End { reason, seq, .. } => {
                assert_eq!(reason, EndReason::Shutdown);
                break seq;
            }
            _ => {}
        }
    };
    let engine = Engine::start(folder.path()).unwrap();
    let rest = ChangesOptions { since: Since::Seq(token), live: false, ..ChangesOptions::default() };
    let mut changes = engine.database("db").unwrap().changes(rest).await.unwrap();
    loop {
        match next_event(&mut changes).await {
            ChangeEvent::Change(change) => assert!(seen.insert(change.id.to_string()), "{} twice", change.id),
            ChangeEvent::End { .. } => break,
            _ => {}
        }
    }
    let lost: Vec<_> = acknowledged.difference(&seen).collect();
    assert!(lost.is_empty(), "acknowledged, but not to be had: {lost:?}");
}

#[tokio::test]
async fn a_shutdown_whose_end_cannot_be_noted_fails_and_frees_the_folder() {
    let (engine, folder) = engine(|_| {});
    engine.create_database("db").await.unwrap().put("a", "{}").await.unwrap();
    let in_the_way = folder.path().join("catalogue.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(matches!(engine.shutdown().await, Err(Error::Storage(_))));
    std::fs::remove_dir(&in_the_way).unwrap();
    let next = Engine::start(folder.path()).unwrap();
    assert!(next.database("db").unwrap().get("a").await.unwrap().is_some());
    engine.shutdown().await.unwrap();
    next.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_metrics_keeps_no_database_from_being_closed_to_open_another() {
    let (engine, _folder) = engine(|options| options.databases_open_max = 2);
    let mut databases = Vec::new();
    for n in 0..3 {
        databases.push(engine.create_database(&format!("db{n}")).await.unwrap());
    }
    let (stop, stopped) = mpsc::channel::<()>();
    let measuring = {
        let engine = engine.clone();
        thread::spawn(move || {
            while stopped.try_recv() == Err(TryRecvError::Empty) {
                engine.measure()
            }
        })
    };
    for n in 0..100 {
        for database in &databases {
            soon(database.put(&format!("d{n}"), "{}")).await.unwrap();
        }
    }
    drop(stop);
    measuring.join().unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_be_deleted_stays_and_no_feed_is_told_that_it_is_gone() {
    let (engine, folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let ended = async || {
        let mut changes = database.changes(ChangesOptions::default()).await.unwrap();
        let deleted = engine.delete_database("db").await;
        loop {
            if let ChangeEvent::End { reason, .. } = next_event(&mut changes).await {
                return (deleted, reason);
            }
        }
    };
    let in_the_way = folder.path().join("catalogue.json.new");
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(matches!(ended().await, (Err(Error::Storage(_)), EndReason::Shutdown)));
    database.put("a", "{}").await.unwrap();
    std::fs::remove_dir(&in_the_way).unwrap();
    assert!(matches!(ended().await, (Ok(()), EndReason::Deleted)));
    assert!(matches!(database.put("b", "{}").await, Err(PutError::Engine(Error::NoDatabase))));
}

#[tokio::test]
async fn a_function_that_is_not_there_is_named() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let design = database.put("_design/d", r#"{"filters":{},"views":{"v":{}}}"#).await.unwrap();
    let query = serde_json::value::RawValue::from_string("{}".to_owned()).unwrap();
    let said = |error: Result<_, Error>| error.map(drop).unwrap_err().to_string();
    assert_eq!(said(database.filter_function("nope", "f", &query).await), "there is no _design/nope");
    assert_eq!(said(database.filter_function("d", "f", &query).await), "_design/d has no filters.f");
    assert_eq!(said(database.view_function("d", "v").await), "_design/d has no views.v.map");
    database.delete("_design/d", design.rev).await.unwrap();
    assert_eq!(said(database.filter_function("d", "f", &query).await), "_design/d is deleted");
}

#[tokio::test]
async fn handles_feeds_and_streams_can_be_printed() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let changes = database.changes(ChangesOptions::default()).await.unwrap();
    let feed = database.feed(FeedOptions::live(FeedKind::Embedded)).await.unwrap();
    let printed = format!("{engine:?} {database:?} {changes:?} {feed:?}");
    let expected = r#"Engine { .. } Database { name: "db", .. } Changes { .. } Feed { database: Some("db"), .. }"#;
    assert_eq!(printed, expected);
    assert!(matches!(engine.create_database("db").await.unwrap_err(), Error::DatabaseExists));
}

#[tokio::test]
async fn an_engine_that_is_dropped_leaves_no_feed_waiting() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let mut changes = database.changes(ChangesOptions::default()).await.unwrap();
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::Open { .. }));
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::CaughtUp { .. }));
    drop((engine, database));
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::End { reason: EndReason::Shutdown, .. }));
}

/// What was queued was lost without a word, and all there was counted as relaxed durability after a crash.
#[tokio::test]
async fn the_drop_of_the_last_handle_is_an_orderly_end() {
    let (engine, folder) = engine(|options| options.store.durability = Durability::Relaxed);
    let database = engine.create_database("db").await.unwrap();
    for n in 0..5_000 {
        let id = DocId::parse(&format!("d{n}")).unwrap();
        database.write_later(Write::Edit(Edit::interactive(id, None, false, Body::empty()))).await.unwrap();
    }
    drop((engine, database));
    let free_again = async {
        loop {
            match Engine::start(folder.path()) {
                Ok(engine) => return engine,
                Err(_in_use) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    let engine = soon(free_again).await;
    let counters = engine.database("db").unwrap().info().await.unwrap().counters;
    assert_eq!((counters.docs, counters.update_seq), (5_000, Sequence::new(0, 5_000)));
    engine.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_database_is_there_for_all_who_need_it_with_what_it_has() {
    let (engine, _folder) = engine(|_| {});
    let all = join_all((0..8).map(|_| engine.ensure_database("orders"))).await;
    for (at, orders) in all.into_iter().enumerate() {
        orders.unwrap().put(&format!("o-{at}"), "{}").await.unwrap();
    }
    let again = engine.ensure_database("orders").await.unwrap();
    assert_eq!(again.info().await.unwrap().counters.docs, 8);
    assert!(matches!(engine.ensure_database("Orders").await, Err(Error::BadName(_))));
    engine.shutdown().await.unwrap();
    assert!(matches!(engine.ensure_database("more").await, Err(Error::Stopped)));
}
