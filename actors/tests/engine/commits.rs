use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use seqtide::storage::Write;
use seqtide::storage::json::Body;
use seqtide::storage::model::doc_id::DocId;
use seqtide::{Database, Error, PutError};

use crate::support::{engine, soon};

fn edits(prefix: &str, count: usize) -> Vec<Write> {
    let id = |n| DocId::parse(&format!("{prefix}{n}")).unwrap();
    (0..count).map(|n| Write::Edit(seqtide::storage::Edit::interactive(id(n), None, false, Body::empty()))).collect()
}

async fn all_ids(database: &Database) -> usize {
    usize::try_from(database.info().await.unwrap().counters.docs).unwrap()
}

#[tokio::test]
async fn a_full_queue_refuses_and_loses_nothing_that_it_took() {
    let (engine, _folder) = engine(|options| options.write_queue_edits_max = 5);
    let database = engine.create_database("db").await.unwrap();
    // The first commit takes long enough for the others to arrive behind it.
    let (long, short) = tokio::join!(
        database.write(edits("long", 5_000)),
        join_all((0..200).map(|n| {
            let database = database.clone();
            async move { (n, database.put(&format!("short{n}"), "{}").await) }
        })),
    );
    long.unwrap();
    let mut taken = 0;
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
    assert!((5..200).contains(&taken), "{taken} were taken");
    assert_eq!(all_ids(&database).await, 5_000 + taken);
    database.put("later", "{}").await.expect("there is room again");
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
    assert_eq!(running.load(Ordering::SeqCst), 2);
    drop(shut);
    soon(database.read(|snapshot| snapshot.counters())).await.unwrap();
}
