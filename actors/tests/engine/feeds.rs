use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use seqtide::storage::json::Body;
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::sequence::Sequence;
use seqtide::storage::{Edit, Write};
use seqtide::{
    Ahead, ChangesOptions, Database, EndReason, Error, Feed, FeedEvent, FeedKind, FeedMode, FeedOptions, Filter,
    Portion, Selector, Since, Turn,
};
use tokio_stream::StreamExt;

use crate::support::{engine, soon};

fn live() -> FeedOptions {
    FeedOptions::live(FeedKind::Embedded)
}

fn once() -> FeedOptions {
    FeedOptions { since: Since::START, mode: FeedMode::Once, ..live() }
}

fn doc_id(id: &str) -> DocId {
    DocId::parse(id).unwrap()
}

fn ids(ids: &[&str]) -> Filter {
    Filter::ids(ids.iter().map(|id| doc_id(id)))
}

async fn next(feed: &mut Feed) -> FeedEvent {
    soon(feed.next()).await.unwrap().expect("the feed goes on")
}

/// The versions of the rows up to the end, and the end's `seq` and `pending`.
async fn drained(database: &Database, options: FeedOptions) -> (Vec<u64>, EndReason, u64, u64) {
    let mut feed = database.feed(options).await.unwrap();
    let mut seqs = Vec::new();
    loop {
        match next(&mut feed).await {
            FeedEvent::Change(Portion::Rows(rows)) => seqs.extend(rows.iter().map(|row| row.change().seq.version)),
            FeedEvent::End { reason, seq, pending } => {
                assert!(soon(feed.next()).await.unwrap().is_none(), "nothing follows the end");
                return (seqs, reason, seq.version, pending.expect("they can be counted"));
            }
            _ => {}
        }
    }
}

async fn filled(database: &Database, ids: impl IntoIterator<Item = String>) {
    for id in ids {
        database.put(&id, "{}").await.unwrap();
    }
}

#[tokio::test]
async fn feeds_are_bounded_and_a_feed_that_is_left_makes_room() {
    let (engine, _folder) = engine(|options| options.feeds_max = 2);
    let database = engine.create_database("db").await.unwrap();
    let first = database.changes(ChangesOptions::default()).await.unwrap();
    let _second = database.feed(live()).await.unwrap();
    let refused = database.changes(ChangesOptions::default()).await.map(drop);
    assert!(matches!(refused, Err(Error::TooManyFeeds { feeds_max: 2 })), "{refused:?}");
    drop(first);
    let _third = database.changes(ChangesOptions::default()).await.unwrap();
    assert!(matches!(engine.database("db").unwrap().feed(live()).await, Err(Error::TooManyFeeds { .. })));
}

#[tokio::test]
async fn a_filtered_feed_s_heartbeats_pass_what_does_not_concern_it() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let selector = Filter::selector(Selector::from_json(r#"{"_id":"mine"}"#).unwrap());
    for filter in [ids(&["mine"]), Filter::prefix("mine"), selector, Filter::conflicts_only()] {
        let heartbeat = Some(Duration::from_millis(10));
        let mut feed = database.feed(FeedOptions { filter, heartbeat, ..live() }).await.unwrap();
        filled(&database, (0..20).map(|n| format!("{:?}-{n}", feed.position()))).await;
        let mut position = feed.position();
        loop {
            match next(&mut feed).await {
                FeedEvent::Heartbeat { seq, pending } => {
                    assert!(seq >= position, "{seq:?} after {position:?}");
                    position = seq;
                    if pending == 0 {
                        break;
                    }
                }
                other => assert!(
                    matches!(
                        other,
                        FeedEvent::Open { .. } | FeedEvent::CaughtUp { .. } | FeedEvent::Change(Portion::Nothing)
                    ),
                    "{other:?}"
                ),
            }
        }
        assert_eq!(position, database.info().await.unwrap().counters.update_seq);
    }
}

/// It held up all who wrote, in other databases too.
#[tokio::test(flavor = "multi_thread")]
async fn what_takes_many_steps_is_seen_in_order_with_what_does_not() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let body = |zeros: usize, end: &str| format!(r#"{{"a":"{}1{}{end}"}}"#, "0".repeat(zeros), "01".repeat(490));
    let put = async |id: &str, body: String| {
        let begin = match database.get(id).await.unwrap() {
            Some(document) => format!(r#"{{"_rev":"{}","#, document.rev),
            None => "{".to_owned(),
        };
        database.put(id, body.replacen('{', &begin, 1)).await.unwrap();
    };
    let until = "last";
    for leave in [false, true] {
        let selector = Selector::from_json(r#"{"a":{"$regex":"(?-u)1[01]{980}x|end"}}"#).unwrap();
        let options = FeedOptions { filter: Filter::selector(selector), leave, ..live() };
        let mut feeds = Vec::new();
        for _ in 0..3 {
            let mut feed = database.feed(options.clone()).await.unwrap();
            while !matches!(next(&mut feed).await, FeedEvent::CaughtUp { .. }) {}
            feeds.push(feed);
        }
        put("one", body(5_000, "x")).await;
        put("small", r#"{"a":"1"}"#.to_owned()).await;
        put("none", body(5_000, "y")).await;
        put("two", body(6_000, "x")).await;
        put("one", body(5_000, "z")).await;
        put(until, r#"{"a":"end"}"#.to_owned()).await;
        for mut feed in feeds {
            let mut seen = Vec::new();
            while seen.last().is_none_or(|(id, _)| id != until) {
                if let FeedEvent::Change(Portion::Rows(rows)) = next(&mut feed).await {
                    seen.extend(rows.iter().map(|row| (row.change().id.to_string(), row.left())));
                }
            }
            // What it was given before the document changed again may have been left out.
            seen.retain(|(id, left)| id != "one" || *left);
            let left = leave.then_some(("one", true));
            let expected: Vec<_> = [Some(("two", false)), left, Some((until, false))].into_iter().flatten().collect();
            let seen: Vec<_> = seen.iter().map(|(id, left)| (id.as_str(), *left)).collect();
            assert_eq!(seen, expected, "{leave}");
        }
        for id in ["one", "two", "none", "small", until] {
            put(id, r#"{"b":1}"#.to_owned()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn since_now_misses_nothing_that_is_written_once_the_feed_is_open() {
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 10_000);
    let database = engine.create_database("db").await.unwrap();
    let noise = tokio::spawn({
        let database = database.clone();
        async move { filled(&database, (0..400).map(|n| format!("noise-{n}"))).await }
    });
    for round in 0..40 {
        let mut feed = database.feed(live()).await.unwrap();
        let start = feed.position().version;
        let last = database.put(&format!("after-{round}"), "{}").await.unwrap().seq.version;
        let mut seen = Vec::new();
        while seen.last().is_none_or(|seen| *seen < last) {
            if let FeedEvent::Change(Portion::Rows(rows)) = next(&mut feed).await {
                seen.extend(rows.iter().map(|row| row.change().seq.version));
            }
        }
        // Each document is written once: no row ever moves.
        let all: Vec<u64> = (start + 1..=*seen.last().unwrap()).collect();
        assert_eq!(seen, all, "round {round}");
    }
    noise.await.unwrap();
}

#[tokio::test]
async fn a_list_of_ids_is_read_alike_whether_its_documents_are_looked_up_or_the_feed_is_scanned() {
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 0);
    let database = engine.create_database("db").await.unwrap();
    filled(&database, (1..=100).map(|n| format!("d{n}"))).await;
    let strangers: Vec<String> = (0..100).map(|n| format!("x{n}")).collect();
    for strangers in [&strangers[..1], &strangers] {
        let names = ["d3", "d7", "d50"].into_iter().chain(strangers.iter().map(String::as_str));
        let filter = ids(&names.collect::<Vec<_>>());
        let options = FeedOptions { filter, ..once() };
        assert_eq!(drained(&database, options.clone()).await, (vec![3, 7, 50], EndReason::CaughtUp, 100, 0));
        let limited = FeedOptions { limit: Some(2), ..options.clone() };
        assert_eq!(drained(&database, limited.clone()).await, (vec![3, 7], EndReason::Limit, 7, 93));
        let after = FeedOptions { since: Since::Seq(Sequence::new(0, 7)), ..limited };
        assert_eq!(drained(&database, after).await, (vec![50], EndReason::CaughtUp, 100, 0));
        let exactly = FeedOptions { limit: Some(3), ..options.clone() };
        assert_eq!(drained(&database, exactly).await, (vec![3, 7, 50], EndReason::Limit, 50, 50));
        let up_to_the_last = FeedOptions { filter: ids(&["d3", "d100"]), limit: Some(2), ..once() };
        assert_eq!(drained(&database, up_to_the_last).await, (vec![3, 100], EndReason::Limit, 100, 0));
        let back = FeedOptions { descending: true, limit: Some(2), ..options.clone() };
        assert_eq!(drained(&database, back).await, (vec![50, 7], EndReason::Limit, 7, 6));
        let all_back = FeedOptions { descending: true, limit: Some(3), ..options };
        assert_eq!(drained(&database, all_back).await, (vec![50, 7, 3], EndReason::Limit, 3, 2));
    }
}

#[tokio::test]
async fn limits_and_pending_are_exact_from_the_tail_and_from_the_disk() {
    for tail_bytes_max in [0, 5_000, 64 << 20] {
        let (engine, _folder) = engine(|options| options.tail_bytes_max = tail_bytes_max);
        let database = engine.create_database("db").await.unwrap();
        filled(&database, (1..=30).map(|n| format!("d{n}"))).await;
        let options = FeedOptions { limit: Some(4), ..once() };
        assert_eq!(drained(&database, options.clone()).await, (vec![1, 2, 3, 4], EndReason::Limit, 4, 26));
        let since = Since::Seq(Sequence::new(0, 27));
        let (seqs, reason, seq, pending) = drained(&database, FeedOptions { since, ..options.clone() }).await;
        assert_eq!((seqs, reason, seq, pending), (vec![28, 29, 30], EndReason::CaughtUp, 30, 0));
        let back = FeedOptions { descending: true, ..options };
        assert_eq!(drained(&database, back).await, (vec![30, 29, 28, 27], EndReason::Limit, 27, 26));
        let poll = FeedOptions { mode: FeedMode::Longpoll, limit: Some(0), descending: true, ..once() };
        assert_eq!(drained(&database, poll).await.0, Vec::<u64>::new());
    }
}

/// A future that is dropped before it is ready takes nothing with it: neither rows, nor a heartbeat, nor the end.
#[tokio::test]
async fn nothing_is_lost_when_waiting_is_given_up_at_any_moment() {
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 0);
    let database = engine.create_database("db").await.unwrap();
    filled(&database, (0..300).map(|n| format!("d{n}"))).await;
    let options = FeedOptions { since: Since::START, limit: Some(200), heartbeat: Some(Duration::ZERO), ..live() };
    let mut feed = database.feed(options).await.unwrap();
    let (mut seen, mut beats) = (BTreeSet::new(), 0);
    let ended = loop {
        // Polled once, then dropped, every other time.
        let event = match futures_util::FutureExt::now_or_never(feed.next()) {
            Some(event) => event,
            None => match tokio::time::timeout(Duration::from_micros(50), feed.next()).await {
                Ok(event) => event,
                Err(_given_up) => soon(feed.next()).await,
            },
        };
        match event.unwrap().expect("the end comes first") {
            FeedEvent::Change(Portion::Rows(rows)) => seen.extend(rows.iter().map(|row| row.change().seq.version)),
            FeedEvent::Heartbeat { .. } => beats += 1,
            FeedEvent::End { reason, seq, pending } => break (reason, seq.version, pending),
            _ => {}
        }
    };
    assert_eq!(seen, (1..=200).collect());
    assert_eq!(ended, (EndReason::Limit, 200, Some(100)));
    assert!(beats > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longpoll_ends_though_writes_never_do() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let writes = tokio::spawn({
        let database = database.clone();
        async move {
            for n in 0.. {
                database.put(&format!("d{n}"), "{}").await.unwrap();
            }
        }
    });
    let mut feed = database.feed(FeedOptions { mode: FeedMode::Longpoll, ..live() }).await.unwrap();
    let mut given = false;
    for _ in 0..20 {
        match next(&mut feed).await {
            FeedEvent::End { reason, .. } => {
                assert!(given);
                assert_eq!(reason, EndReason::CaughtUp);
                writes.abort();
                return;
            }
            FeedEvent::Change(Portion::Rows(_)) => given = true,
            _ => {}
        }
        // A reader slower than the writers.
        let newest = database.info().await.unwrap().counters.update_seq;
        soon(async {
            while database.info().await.unwrap().counters.update_seq == newest {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    panic!("the longpoll goes on and on");
}

#[tokio::test]
async fn an_end_that_is_given_up_while_it_counts_what_is_behind_comes_again() {
    // One read at a time.
    let (engine, _folder) = engine(|options| options.store.readers_max = 9);
    let database = engine.create_database("db").await.unwrap();
    filled(&database, (0..5).map(|n| format!("d{n}"))).await;
    let mut feed = database.feed(FeedOptions { since: Since::START, limit: Some(2), ..live() }).await.unwrap();
    assert!(matches!(next(&mut feed).await, FeedEvent::Open { seq: Sequence::ZERO, .. }));
    assert!(matches!(next(&mut feed).await, FeedEvent::Change(Portion::Rows(rows)) if rows.len() == 2));
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let (running, runs) = tokio::sync::oneshot::channel();
    let read = tokio::spawn({
        let database = database.clone();
        async move {
            let read = database.read(move |_| {
                running.send(()).unwrap();
                let _opened = gate.recv();
                Ok(())
            });
            read.await
        }
    });
    soon(runs).await.unwrap();
    assert!(futures_util::FutureExt::now_or_never(feed.next()).is_none());
    drop(open);
    assert!(matches!(next(&mut feed).await, FeedEvent::End { reason: EndReason::Limit, pending: Some(3), .. }));
    read.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_live_feed_that_has_to_read_the_disk_says_how_far_it_is_behind_and_when_it_is_back() {
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 20_000);
    let database = engine.create_database("db").await.unwrap();
    filled(&database, (0..50).map(|n| format!("first-{n}"))).await;
    let mut feed = database.feed(FeedOptions { since: Since::START, ..live() }).await.unwrap();
    let mut said = Vec::new();
    for round in 0..3 {
        // While nobody reads it.
        if round > 0 {
            filled(&database, (0..50).map(|n| format!("d{n}-{round}"))).await;
        }
        let newest = database.info().await.unwrap().counters.update_seq;
        while feed.position() < newest
            || futures_util::FutureExt::now_or_never(feed.next()).is_some_and(|event| {
                said.extend(note(&event.unwrap().unwrap()));
                true
            })
        {
            if feed.position() < newest {
                said.extend(note(&next(&mut feed).await));
            }
        }
    }
    assert_eq!(said, ["caught up", "50 behind", "live", "50 behind", "live"]);
}

fn note(event: &FeedEvent) -> Option<String> {
    match event {
        FeedEvent::CaughtUp { .. } => Some("caught up".to_owned()),
        FeedEvent::Lagging { lag, .. } => {
            assert!(lag.seconds.is_some_and(|seconds| seconds < 60), "{lag:?}");
            Some(format!("{} behind", lag.rows))
        }
        FeedEvent::Live { .. } => Some("live".to_owned()),
        _ => None,
    }
}

#[tokio::test]
async fn what_is_rewritten_while_a_snapshot_is_read_comes_behind_its_end() {
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 0);
    let database = engine.create_database("db").await.unwrap();
    filled(&database, (0..800).map(|n| format!("d{n:03}"))).await;
    let mut feed = database.feed(FeedOptions { snapshot: true, ..live() }).await.unwrap();
    assert!(matches!(next(&mut feed).await, FeedEvent::Open { seq: Sequence::ZERO, .. }));
    let FeedEvent::Change(Portion::Rows(first)) = next(&mut feed).await else { panic!("rows come first") };
    assert!(first.len() < 700, "{} rows in a page", first.len());
    let (rewritten, deleted) = ("d750", "d760");
    for (id, again) in [(rewritten, true), (deleted, false)] {
        let document = database.get(id).await.unwrap().unwrap();
        match again {
            true => database.put(id, format!("{{\"_rev\":\"{}\"}}", document.rev)).await.unwrap(),
            false => database.delete(id, document.rev).await.unwrap(),
        };
    }
    let (mut within, mut behind, mut end) = (first.len(), Vec::new(), None);
    while behind.len() < 2 {
        match next(&mut feed).await {
            FeedEvent::Change(Portion::Rows(rows)) if end.is_none() => within += rows.len(),
            FeedEvent::Change(Portion::Rows(rows)) => behind.extend(rows.iter().map(|row| row.change().id.to_string())),
            FeedEvent::SnapshotEnd { seq } => end = Some(seq.version),
            _ => {}
        }
    }
    assert_eq!((within, end, behind), (798, Some(800), vec![rewritten.to_owned(), deleted.to_owned()]));
}

#[tokio::test]
async fn a_feed_begins_at_a_time() {
    static NOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(100);
    let (engine, _folder) = engine(|options| options.store.clock = || NOW.load(std::sync::atomic::Ordering::Relaxed));
    let database = engine.create_database("db").await.unwrap();
    for now in [100, 200, 300] {
        NOW.store(now, std::sync::atomic::Ordering::Relaxed);
        filled(&database, [format!("at-{now}")]).await;
    }
    for (secs, seqs) in [(0, vec![1, 2, 3]), (101, vec![2, 3]), (200, vec![2, 3]), (300, vec![3]), (301, vec![])] {
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let options = FeedOptions { since: Since::Time(time), ..once() };
        assert_eq!(drained(&database, options).await, (seqs, EndReason::CaughtUp, 3, 0), "since {secs}");
    }
    // Whoever comes back by a time has something, however early that is: what is deleted is told.
    let rev = database.get("at-100").await.unwrap().unwrap().rev;
    database.delete("at-100", rev).await.unwrap();
    let since = Since::Time(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let options = FeedOptions { since, snapshot: true, ..once() };
    assert_eq!(drained(&database, options).await, (vec![2, 3, 4], EndReason::CaughtUp, 4, 0));
    let began_at_time = FeedOptions { since: Since::START, began_at_time: true, snapshot: true, ..once() };
    assert_eq!(drained(&database, began_at_time).await.0, [2, 3, 4], "nor is it lost when the feed is resumed");
    let before_1970 = std::time::SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    let options = FeedOptions { since: Since::Time(before_1970), ..once() };
    assert_eq!(drained(&database, options).await.0, [2, 3, 4]);
}

#[tokio::test]
async fn a_feed_that_goes_back_begins_at_a_place_wherever_others_would() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    filled(&database, (1..=5).map(|n| format!("d{n}"))).await;
    let back = FeedOptions { descending: true, ..once() };
    let from = |seq| FeedOptions { until: Some(Sequence::new(0, seq)), ..back.clone() };
    assert_eq!(drained(&database, from(3)).await, (vec![3, 2, 1], EndReason::CaughtUp, 1, 0));
    assert_eq!(drained(&database, from(9)).await.0, [5, 4, 3, 2, 1]);
    let since = Since::Seq(Sequence::new(0, 99));
    for ahead in [Ahead::Echo, Ahead::Rewind, Ahead::Refuse] {
        let feed = database.feed(FeedOptions { since, ahead, snapshot: true, ..back.clone() }).await.unwrap();
        assert!(!feed.is_ahead());
        let mut feed = feed;
        let (opened, begins) = (next(&mut feed).await, Sequence::new(0, 5));
        assert!(matches!(opened, FeedEvent::Open { seq, .. } if seq == begins), "{opened:?}");
        assert!(matches!(next(&mut feed).await, FeedEvent::Change(Portion::Rows(rows)) if rows.len() == 5));
        assert!(matches!(next(&mut feed).await, FeedEvent::CaughtUp { .. }));
    }
    engine.shutdown().await.unwrap();
}

#[tokio::test]
async fn who_waits_before_it_has_read_misses_nothing() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    filled(&database, ["a".to_owned()]).await;
    let mut feed = database.feed(FeedOptions { since: Since::START, ..live() }).await.unwrap();
    soon(feed.wait(None)).await;
    assert_eq!(feed.position(), Sequence::ZERO);
    assert!(matches!(next(&mut feed).await, FeedEvent::Open { .. }));
    soon(feed.wait(None)).await;
    assert!(matches!(next(&mut feed).await, FeedEvent::Change(Portion::Rows(_))));
    engine.shutdown().await.unwrap();
}

/// It waited for a thread of the runtime that asks, on which others may wait for the feed.
#[test]
fn a_feed_of_many_ids_is_opened_where_its_runtime_has_no_thread_to_spare() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || released.recv().is_err());
    runtime.block_on(async {
        let (engine, _folder) = engine(|_| {});
        let database = engine.create_database("db").await.unwrap();
        let filter = Filter::ids((0..5_000).map(|n| doc_id(&format!("{n}"))));
        let mut feed = soon(database.feed(FeedOptions { filter, ..live() })).await.unwrap();
        filled(&database, ["4999".to_owned()]).await;
        while !matches!(next(&mut feed).await, FeedEvent::Change(Portion::Rows(_))) {}
        engine.shutdown().await.unwrap();
    });
    drop(release);
}

#[tokio::test]
async fn a_feed_that_reads_what_is_in_memory_lets_others_have_their_turns() {
    let (engine, _folder) = engine(|options| options.tail_bytes_max = 256 << 20);
    let database = engine.create_database("db").await.unwrap();
    // Without a feed little would be in memory.
    let _follows = database.feed(live()).await.unwrap();
    for batch in 0..60 {
        let edit = |n| Write::Edit(Edit::interactive(doc_id(&format!("{batch}-{n}")), None, false, Body::empty()));
        database.write((0..5_000).map(edit).collect()).await.unwrap();
    }
    let mut feed = database.feed(once()).await.unwrap();
    let read = async {
        let mut rows = 0;
        while let Some(event) = feed.next().await.unwrap() {
            if let FeedEvent::Change(Portion::Rows(some)) = event {
                rows += some.len();
            }
        }
        rows
    };
    let mut read = pin!(read);
    assert!(read.as_mut().now_or_never().is_none(), "300,000 rows in one go");
    assert_eq!(soon(read).await, 300_000);
    engine.shutdown().await.unwrap();
}

/// Nor does one that gives none of it, whose pages count for little and may take long.
#[tokio::test]
async fn a_feed_that_passes_over_what_is_in_memory_lets_others_have_their_turns() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let _follows = database.feed(live()).await.unwrap();
    let edit = |n| Write::Edit(Edit::interactive(doc_id(&format!("{n}")), None, false, Body::empty()));
    database.write((0..5_000).map(edit).collect()).await.unwrap();
    let filter = Filter::selector(Selector::from_json(r#"{"never": 1}"#).unwrap());
    let mut feed = database.feed(FeedOptions { filter, ..once() }).await.unwrap();
    let read = async {
        while let Some(event) = feed.next().await.unwrap() {
            assert!(!matches!(event, FeedEvent::Change(_)), "{event:?}");
        }
    };
    let mut read = pin!(read);
    assert!(read.as_mut().now_or_never().is_none(), "5,000 documents in one go");
    soon(read).await;
    engine.shutdown().await.unwrap();
}

/// It was said to be none.
#[tokio::test]
async fn how_much_is_left_when_the_engine_stops_is_not_known() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let mut feed = database.feed(FeedOptions { since: Since::START, ..live() }).await.unwrap();
    filled(&database, ["a".to_owned()]).await;
    engine.shutdown().await.unwrap();
    assert!(matches!(next(&mut feed).await, FeedEvent::Open { .. }));
    let end = next(&mut feed).await;
    assert!(
        matches!(end, FeedEvent::End { reason: EndReason::Shutdown, seq: Sequence::ZERO, pending: None }),
        "{end:?}"
    );
}

/// Has a feed take turns until it has given all there is.
async fn until_it_waits(feed: &mut Feed) {
    while !matches!(soon(feed.turn()).await.unwrap(), Turn::Waits(_)) {}
}

#[tokio::test]
async fn a_place_that_is_come_to_between_a_turn_and_the_wait_ends_a_feed_that_nobody_wakes() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let options = FeedOptions { until: Some(Sequence::new(0, 2)), filter: ids(&["x"]), ..live() };
    let mut feed = database.feed(options).await.unwrap();
    until_it_waits(&mut feed).await;
    filled(&database, ["a".to_owned(), "b".to_owned()]).await;
    soon(feed.wait(None)).await;
    assert!(matches!(next(&mut feed).await, FeedEvent::End { reason: EndReason::Until, .. }));
    engine.shutdown().await.unwrap();
}

#[tokio::test]
async fn who_may_read_no_rows_waits_on_where_its_place_has_been_come_to() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let (until, mode) = (Some(Sequence::new(0, 1)), FeedMode::Longpoll);
    let mut feed = database.feed(FeedOptions { until, mode, limit: Some(0), ..live() }).await.unwrap();
    until_it_waits(&mut feed).await;
    filled(&database, ["a".to_owned()]).await;
    soon(feed.wait(None)).await;
    until_it_waits(&mut feed).await;
    let waits = pin!(feed.wait(None));
    assert!(waits.now_or_never().is_none(), "it is woken again and again");
    engine.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_stream_that_has_ended_says_so_again() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    database.put("a", "{}").await.unwrap();
    let once = ChangesOptions { since: Since::START, live: false, ..ChangesOptions::default() };
    let mut changes = database.changes(once.clone()).await.unwrap();
    while soon(changes.next()).await.is_some() {}
    assert!(soon(changes.next()).await.is_none());
    let mut changes = database.changes(once).await.unwrap().only_changes();
    assert_eq!(soon(changes.next()).await.unwrap().unwrap().id.as_str(), "a");
    for _ in 0..3 {
        assert!(soon(changes.next()).await.is_none());
    }
}
