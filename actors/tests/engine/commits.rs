use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use seqtide::storage::json::{Body, ScanLimits, scan_document};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::sequence::SeqFormat;
use seqtide::storage::{Edit, Outcome, Write};
use seqtide::{Database, Error, PutError};

use crate::support::{engine, soon};

fn edits(prefix: &str, count: usize) -> Vec<Write> {
    let id = |n| DocId::parse(&format!("{prefix}{n}")).unwrap();
    (0..count).map(|n| Write::Edit(Edit::interactive(id(n), None, false, Body::empty()))).collect()
}

async fn all_ids(database: &Database) -> usize {
    usize::try_from(database.info().await.unwrap().counters.docs).unwrap()
}

/// It was asked of the database again, which may be gone by then: a client was told of an error though it was written.
#[tokio::test]
async fn what_is_written_says_itself_how_its_sequence_is_written() {
    let (engine, _folder) = engine(|_| {});
    for format in [SeqFormat::Integer, SeqFormat::Versionstamp] {
        let database = engine.create_database_with("db", format).await.unwrap();
        let written = database.write(edits("d", 1)).await.unwrap();
        engine.delete_database("db").await.unwrap();
        assert!(database.seq_format().await.is_err());
        assert_eq!(written.seq_format, format);
    }
}

/// Writes that are asked for at once.
const WAVE: usize = 200;

#[tokio::test]
async fn a_full_queue_refuses_and_loses_nothing_that_it_took() {
    let (engine, _folder) = engine(|options| options.write_queue_edits_max = 5);
    let database = engine.create_database("db").await.unwrap();
    // While the first commit waits nothing is let in, and while it is made, which takes long enough, little is.
    let wave = async |number: usize| {
        let put = |n: usize| {
            let database = database.clone();
            async move { (n, database.put(&format!("short{n}"), "{}").await) }
        };
        join_all((number * WAVE..(number + 1) * WAVE).map(put)).await
    };
    let (long, short) = tokio::join!(database.write(edits("long", 5_000)), async {
        let mut short = Vec::new();
        for number in 0.. {
            short.extend(wave(number).await);
            if short.iter().any(|(_, written)| written.is_ok()) {
                break;
            }
        }
        short
    });
    long.unwrap();
    let (mut taken, all) = (0, short.len());
    for (n, written) in short {
        let found = database.get(&format!("short{n}")).await.unwrap().is_some();
        match written {
            Ok(_) => assert!(found, "short{n} was acknowledged"),
            Err(PutError::Engine(Error::WriteQueueFull { edits_max: 5, .. })) => {
                assert!(!found, "short{n} was refused")
            }
            Err(other) => panic!("{other}"),
        }
        taken += usize::from(found);
    }
    assert!((1..all).contains(&taken), "{taken} of {all} were taken");
    assert_eq!(all_ids(&database).await, 5_000 + taken);
    database.put("later", "{}").await.expect("there is room again");
}

/// Each that was given up took its room in the queue for good.
#[tokio::test]
async fn writes_that_nobody_waits_for_are_made_though_who_asked_is_gone() {
    let (engine, _folder) = engine(|options| options.write_queue_edits_max = 10);
    let database = engine.create_database("db").await.unwrap();
    database.put("first", "{}").await.unwrap();
    let mut refused = 0;
    for write in edits("later", 1_000) {
        // Asked once, then given up.
        match tokio::time::timeout(Duration::ZERO, database.write_later(write)).await {
            Ok(Err(Error::WriteQueueFull { .. })) => refused += 1,
            Ok(Err(other)) => panic!("{other}"),
            Ok(Ok(())) | Err(_) => {}
        }
    }
    let there_is_room = async {
        while let Err(full) = database.put("last", "{}").await {
            assert!(matches!(full, PutError::Engine(Error::WriteQueueFull { .. })), "{full}");
            tokio::task::yield_now().await;
        }
    };
    soon(there_is_room).await;
    assert_eq!(all_ids(&database).await, 1_000 - refused + 2);
}

#[tokio::test]
async fn a_request_s_writes_come_in_its_order_and_in_one_piece() {
    let (engine, _folder) = engine(|_| {});
    let database = engine.create_database("db").await.unwrap();
    let written = join_all((0..20).map(|n| {
        let database = database.clone();
        async move { database.write(edits(&format!("r{n}-"), 5)).await.unwrap() }
    }));
    for written in written.await {
        let last = written.seq.version;
        let seqs = written.outcomes.iter().map(|outcome| match outcome {
            seqtide::storage::Outcome::Written { seq, .. } => seq.version,
            other => panic!("{other:?}"),
        });
        assert_eq!(seqs.collect::<Vec<_>>(), (last - 4..=last).collect::<Vec<_>>());
    }
}

/// Reads that nobody waits for any more still hold their snapshots, of which there are only so many.
#[tokio::test]
async fn reads_that_are_given_up_are_counted_until_they_end() {
    let (engine, _folder) = engine(|options| options.store.readers_max = 10);
    let database = engine.create_database("db").await.unwrap();
    let running = Arc::new(AtomicUsize::new(0));
    // Opened by dropping its sender.
    let (shut, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    for _ in 0..15 {
        let (running, gate) = (Arc::clone(&running), Arc::clone(&gate));
        let read = database.read(move |_| {
            running.fetch_add(1, Ordering::SeqCst);
            let _opened = gate.lock().unwrap().recv();
            Ok(())
        });
        let _given_up = tokio::time::timeout(Duration::from_millis(20), read).await.unwrap_err();
    }
    let both_run = async {
        while running.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon(both_run).await;
    assert_eq!(running.load(Ordering::SeqCst), 2);
    drop(shut);
    soon(database.read(|snapshot| snapshot.counters())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sweeps_are_listed_with_their_database_until_they_have_freed_everything() {
    let (engine, _folder) = engine(|_| {});
    let swept = engine.create_database("swept").await.unwrap();
    engine.create_database("other").await.unwrap();
    let body = scan_document(b"{\"n\":1}", &ScanLimits::default()).unwrap().body;
    let id = |n| DocId::parse(&format!("d{n}")).unwrap();
    let made = (0..5_000).map(|n| Write::Edit(Edit::interactive(id(n), None, false, body.clone())));
    let made = swept.write(made.collect()).await.unwrap();
    let deleted = (0..).zip(made.outcomes).map(|(n, outcome)| match outcome {
        Outcome::Written { rev, .. } => Write::Edit(Edit::interactive(id(n), Some(rev), true, Body::empty())),
        other => panic!("{other:?}"),
    });
    swept.write(deleted.collect()).await.unwrap();
    assert_eq!((engine.tasks().await, swept.info().await.unwrap().counters.garbage_bytes), (vec![], 5_000 * 7));
    // A sweep may be over before it is looked for: it is asked for anew until it has been seen.
    let seen = soon(async {
        loop {
            swept.reclaim().await.unwrap();
            if let Some(task) = engine.tasks().await.pop() {
                return task.database;
            }
        }
    });
    assert_eq!(seen.await, *swept.name());
    soon(async {
        while !engine.tasks().await.is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let info = swept.info().await.unwrap();
    assert_eq!((info.counters.garbage_bytes, info.sweep), (0, None));
}
