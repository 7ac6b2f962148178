use std::time::Duration;

use seqtide::storage::model::sequence::Sequence;
use seqtide::{ChangeEvent, ChangesOptions, Drain, EndReason, Error, FeedKind, FeedState, Filter, Since};

use crate::support::{engine, next_change, next_event};

#[tokio::test]
async fn a_program_sees_its_streams_and_ends_one() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let options = ChangesOptions { since: Since::START, filter: Filter::prefix("a"), ..Default::default() };
    let mut changes = database.changes(options).await.unwrap();
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::Open { .. }));
    assert_eq!(next_event(&mut changes).await, ChangeEvent::CaughtUp { seq: Sequence::ZERO });
    database.put("a", "{}").await.unwrap();
    let change = next_change(&mut changes).await;
    let feeds = engine.feeds();
    assert_eq!(feeds.len(), 1);
    let feed = &feeds[0];
    assert_eq!((feed.about.kind, feed.record.rows, feed.position), (FeedKind::Embedded, 1, change.seq));
    assert_eq!(feed.about.database.as_ref().map(|name| name.as_str()), Some("db"));
    assert_eq!((feed.about.filter.as_deref(), feed.client), (Some("prefix: \"a\""), None));
    assert_eq!(feed.state, FeedState::Live);
    assert!(!engine.end_feed(feed.record.id + 1));
    assert!(engine.end_feed(feed.record.id));
    let ended = next_event(&mut changes).await;
    assert_eq!(ended, ChangeEvent::End { reason: EndReason::Revoked, seq: change.seq, pending: Some(0) });
    drop(changes);
    assert!(engine.feeds().is_empty());
}

#[tokio::test]
async fn a_stream_that_is_not_read_is_behind_by_what_was_written() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    for number in 0..2500 {
        database.put(&format!("d{number}"), "{}").await.unwrap();
    }
    let mut changes = database.changes(ChangesOptions { since: Since::START, ..Default::default() }).await.unwrap();
    let first = next_change(&mut changes).await;
    assert_eq!(first.seq.version, 1);
    let feeds = engine.feeds();
    assert_eq!(feeds[0].state, FeedState::CatchingUp);
    let behind = engine.rows_behind(&feeds).await;
    // It was given a page, of which it has taken one row.
    assert_eq!(behind, [2500 - feeds[0].record.rows]);
    assert!(behind[0] > 0, "one page is not all");
}

/// Who was told that it has an hour had an hour.
#[tokio::test]
async fn a_feed_that_is_told_again_ends_by_what_comes_first() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let mut changes = database.changes(ChangesOptions::default()).await.unwrap();
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::Open { .. }));
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::CaughtUp { .. }));
    engine.drain_feeds(Duration::from_secs(3600));
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::Draining { .. }));
    engine.drain_feeds(Duration::ZERO);
    let ended = next_event(&mut changes).await;
    assert!(matches!(ended, ChangeEvent::End { reason: EndReason::Shutdown, .. }), "{ended:?}");
}

#[tokio::test]
async fn streams_are_told_that_the_engine_stops_and_none_is_opened() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let mut changes = database.changes(ChangesOptions::default()).await.unwrap();
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::Open { .. }));
    assert!(matches!(next_event(&mut changes).await, ChangeEvent::CaughtUp { .. }));
    let over = Duration::from_millis(200);
    engine.drain_feeds(over);
    let refused = database.changes(ChangesOptions::default()).await.map(drop);
    let latest = over * 2 + Drain::STARTS_WITHIN;
    assert!(matches!(refused, Err(Error::Draining { retry }) if retry <= latest), "{refused:?}");
    let told = next_event(&mut changes).await;
    assert!(matches!(told, ChangeEvent::Draining { retry, .. } if retry <= latest), "{told:?}");
    let ended = next_event(&mut changes).await;
    assert!(matches!(ended, ChangeEvent::End { reason: EndReason::Shutdown, .. }), "{ended:?}");
}
