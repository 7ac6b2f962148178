//! What LMDB alone does with the very rows that Seqtide keeps of documents: the puts of inserts, synced and not, and
//! reading the feed's table from its beginning. What Seqtide takes beyond it is what HTTP, plans and feeds cost.

use std::path::Path;
use std::time::{Duration, Instant};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags};
use seqtide_bench::backfill::fill;
use seqtide_bench::documents;
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required, quantile};

use crate::ROUNDS;
use crate::seqtide::{DATABASE, Seqtide};

/// Documents whose rows are used, and documents that are read.
const DOCUMENTS: u64 = 200_000;
/// Documents a commit, and whether it is synced.
const WAYS: [(usize, bool); 5] = [(1, true), (16, true), (64, true), (1_000, true), (1_000, false)];
/// How long each way's turn is at most, all documents at most.
const TURN: Duration = Duration::from_secs(2);
const MAP_BYTES: usize = 4 << 30;
/// The tables that an insert puts a row into, and the one with the counters that every commit writes.
const TABLES: [&str; 4] = ["docs", "by_seq", "bodies", "meta"];
/// Where the rows of a document's tables go: random ids, and the right edges of two trees.
const FLAGS: [PutFlags; 3] = [PutFlags::empty(), PutFlags::APPEND, PutFlags::APPEND];

type Table = Database<'static, Bytes, Bytes>;
type Row = (Vec<u8>, Vec<u8>);

pub fn measure_all() -> Vec<Figure> {
    let runtime = current_thread();
    let mut seqtide = Seqtide::now(&runtime);
    eprintln!("lmdb: {DOCUMENTS} documents");
    runtime.block_on(fill(seqtide.server.address(), DATABASE, 0..DOCUMENTS)).expect("documents");
    // After an orderly end LMDB has all rows.
    seqtide.server.stop();
    let folder = seqtide.server.data_dir().join("databases").join(DATABASE);
    let rows = Rows::read(&folder);
    let mut figures: Vec<Figure> = WAYS.iter().map(|&(commit, synced)| inserts(&rows, commit, synced)).collect();
    figures.extend(scans(&folder));
    figures
}

/// Opens an environment with these tables, which are made where they are missing.
#[expect(unsafe_code, reason = "LMDB maps the file: nobody but this process has it")]
fn open(folder: &Path, flags: EnvFlags) -> (Env, [Table; TABLES.len()]) {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_dbs(16);
    // SAFETY: The server that had the folder has ended, or the folder was made for this; flags only say when to sync.
    let env = unsafe { options.flags(flags).open(folder) }.expect("an environment");
    let txn = env.write_txn().expect("a transaction");
    let created = env.create_databases_and_commit(txn, |opener, txn| {
        let tables = TABLES.map(|name| opener.create_database(txn, Some(name)).expect("a table"));
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tables))
    });
    let tables = created.expect("tables").unwrap_commit();
    (env, tables)
}

/// The rows of all documents, by document, and the row of counters.
struct Rows {
    documents: Vec<[Row; 3]>,
    counters: Row,
}

impl Rows {
    fn read(folder: &Path) -> Rows {
        let (env, [docs, by_seq, bodies, meta]) = open(folder, EnvFlags::empty());
        let txn = env.read_txn().expect("a transaction");
        let owned = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        let all = |table: Table| table.iter(&txn).expect("rows").map(move |row| owned(row.expect("a row")));
        let documents = (0..DOCUMENTS).zip(all(by_seq)).zip(all(bodies)).map(|((number, change), body)| {
            let id = documents::id(number).into_bytes();
            let head = docs.get(&txn, &id).expect("a row").expect("a document").to_vec();
            [(id, head), change, body]
        });
        let documents: Vec<_> = documents.collect();
        assert_eq!(documents.len() as u64, DOCUMENTS, "a row of each table for each document");
        Rows { documents, counters: all(meta).next().expect("counters") }
    }
}

/// Puts the documents' rows into an empty environment, so many documents a commit.
fn inserts(rows: &Rows, commit: usize, synced: bool) -> Figure {
    let name = if synced { "synced" } else { "not synced" };
    eprintln!("lmdb: {commit} a commit, {name}");
    let mut rates = (0..ROUNDS).map(|_| insert(rows, commit, synced)).collect::<Vec<f64>>();
    let what = format!("lmdb, {commit} a commit: {name}");
    Figure { what, value: quantile(&mut rates, 0.5), unit: "documents/s", required: Required::Nothing }
}

fn insert(rows: &Rows, commit: usize, synced: bool) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let (env, tables) = open(folder.path(), if synced { EnvFlags::empty() } else { EnvFlags::NO_SYNC });
    let started = Instant::now();
    let mut written = 0;
    for documents in rows.documents.chunks(commit) {
        if started.elapsed() > TURN {
            break;
        }
        let mut txn = env.write_txn().expect("a transaction");
        for document in documents {
            for ((table, flags), (key, value)) in tables.iter().zip(FLAGS).zip(document) {
                table.put_with_flags(&mut txn, flags, key, value).expect("a put");
            }
        }
        let [.., meta] = tables;
        meta.put(&mut txn, &rows.counters.0, &rows.counters.1).expect("a put");
        txn.commit().expect("a commit");
        written += documents.len();
    }
    written as f64 / started.elapsed().as_secs_f64()
}

/// Reads the feed's table from its beginning, alone and with a document's head or body for each row.
fn scans(folder: &Path) -> Vec<Figure> {
    let (env, [docs, by_seq, bodies, _]) = open(folder, EnvFlags::empty());
    let txn = env.read_txn().expect("a transaction");
    let ids: Vec<Vec<u8>> = (0..DOCUMENTS).map(|number| documents::id(number).into_bytes()).collect();
    let with = |get: &dyn Fn(usize, &[u8]) -> usize| {
        let mut rates: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                let rows = by_seq.iter(&txn).expect("rows").enumerate();
                let read = rows.map(|(number, row)| {
                    let (key, value) = row.expect("a row");
                    value.len() + get(number, key)
                });
                assert!(read.sum::<usize>() > 0, "there are rows");
                DOCUMENTS as f64 / started.elapsed().as_secs_f64()
            })
            .collect();
        quantile(&mut rates, 0.5)
    };
    let length = |table: Table, key: &[u8]| table.get(&txn, key).expect("a row").map_or(0, <[u8]>::len);
    let told = [
        ("feed's table", with(&|_, _| 0)),
        ("feed's table, the body of each", with(&|_, key| length(bodies, key))),
        ("feed's table, a random head of each", with(&|number, _| length(docs, &ids[number]))),
    ];
    let figure =
        |(what, value)| Figure { what: format!("lmdb, {what}"), value, unit: "rows/s", required: Required::Nothing };
    told.map(figure).into()
}
