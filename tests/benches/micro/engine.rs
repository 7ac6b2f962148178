//! The engine by itself: encoding rows that were read from the disk, and feeds that read from the tail and from the
//! disk.

use std::path::Path;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use seqtide::storage::{Edit, Write};
use seqtide::{Database, Engine, FeedEvent, FeedKind, FeedMode, FeedOptions, Portion, Row, RowShape, Since};
use seqtide_tests::bench::current_thread;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::documents::{id, scanned};

const DOCUMENTS: u64 = 1_000;
const WITH_DOCS: RowShape = RowShape { all_leaves: false, doc: true, conflicts: false };

/// An engine with a database of a thousand documents, in the tail as they are after being written.
struct Running {
    runtime: Runtime,
    database: Database,
    engine: Engine,
    _folder: TempDir,
}

impl Running {
    fn start() -> Running {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = current_thread();
        let engine = Engine::start(folder.path()).expect("an engine");
        let database = runtime.block_on(async {
            let database = engine.create_database("db").await.expect("a database");
            let body = scanned();
            // Without a feed little would stay in the tail.
            let options = FeedOptions::live(FeedKind::Embedded);
            let _follows = database.feed(options).await.expect("a feed");
            let edit = |number| Write::Edit(Edit::interactive(id(number), None, false, body.clone()));
            database.write((0..DOCUMENTS).map(edit).collect()).await.expect("a commit");
            database
        });
        Running { runtime, database, engine, _folder: folder }
    }

    /// The same after an orderly end: nothing is in the tail.
    fn start_again() -> Running {
        let Running { runtime, engine, _folder, .. } = Running::start();
        runtime.block_on(engine.shutdown()).expect("an end");
        drop(engine);
        let path: &Path = _folder.path();
        let engine = Engine::start(path).expect("an engine");
        let database = engine.database("db").expect("a database");
        Running { runtime, database, engine, _folder }
    }

    /// All rows, from the beginning.
    fn rows(&self) -> Vec<Arc<Row>> {
        let options = FeedOptions {
            since: Since::START,
            mode: FeedMode::Once,
            shape: WITH_DOCS,
            ..FeedOptions::live(FeedKind::Embedded)
        };
        self.runtime.block_on(async {
            let mut feed = self.database.feed(options).await.expect("a feed");
            let mut rows = Vec::new();
            while let Some(event) = feed.next().await.expect("a feed that can be read") {
                if let FeedEvent::Change(Portion::Rows(page)) = event {
                    rows.extend(page);
                }
            }
            assert_eq!(rows.len() as u64, DOCUMENTS);
            rows
        })
    }
}

#[divan::bench]
fn feed_of_a_thousand_from_the_tail(bencher: Bencher) {
    let running = Running::start();
    bencher.counter(ItemsCount::new(DOCUMENTS)).bench_local(|| running.rows());
}

#[divan::bench]
fn feed_of_a_thousand_from_the_disk(bencher: Bencher) {
    let running = Running::start_again();
    bencher.counter(ItemsCount::new(DOCUMENTS)).bench_local(|| running.rows());
}

/// Rows from the disk are new ones: none has been encoded before.
#[divan::bench(sample_count = 30, sample_size = 1)]
fn encode_a_thousand_rows(bencher: Bencher) {
    let running = Running::start_again();
    bencher
        .counter(ItemsCount::new(DOCUMENTS))
        .with_inputs(|| running.rows())
        .bench_local_values(|rows| rows.iter().map(|row| row.frame(WITH_DOCS).sse().len()).sum::<usize>());
}
