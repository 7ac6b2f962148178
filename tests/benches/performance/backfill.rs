//! Catching up: one reader of `_changes` from the beginning, without and with documents.

use seqtide_bench::backfill::{self, Backfill};
use seqtide_bench::service::Transport;
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required};
use seqtide_tests::bench::rounds::undisturbed;

use crate::seqtide::{DATABASE, Seqtide};

/// Documents in the database, and rounds.
const ASKED: Backfill = Backfill { documents: 1_000_000, rounds: 7 };
/// Least rows a second, without and with documents.
const ROWS_MIN: f64 = 1_500_000.0;
const ROWS_WITH_DOCS_MIN: f64 = 1_000_000.0;

pub fn measure_all() -> Vec<Figure> {
    let runtime = current_thread();
    let sides = [Some(Seqtide::now(&runtime)), Seqtide::before(&runtime)].into_iter().flatten();
    sides.flat_map(|side| measure(&side, &runtime)).collect()
}

fn measure(side: &Seqtide, runtime: &tokio::runtime::Runtime) -> [Figure; 4] {
    let address = side.service(Transport::Lines).address;
    runtime.block_on(backfill::fill(address, DATABASE, 0..ASKED.documents)).expect("documents");
    let filled = undisturbed(&format!("backfill: {} documents, {} readings", ASKED.documents, ASKED.rounds), || {
        let filled = runtime.block_on(backfill::read_all(address, DATABASE, &ASKED)).expect("a backfill");
        assert_eq!(filled.fault(), None, "{}: {filled:?}", side.name);
        filled
    });
    let figure = |what: &str, value, unit, required| {
        let what = format!("backfill, {what}: {}", side.name);
        Figure { what, value, unit, required: if side.is_judged { required } else { Required::Nothing } }
    };
    let ways = [("changes", filled.changes, ROWS_MIN), ("with documents", filled.with_docs, ROWS_WITH_DOCS_MIN)];
    let [changes, with_docs] = ways.map(|(what, reads, least)| {
        let read = reads.median;
        [
            figure(what, read.rows_per_sec(), "rows/s", Required::AtLeast(least)),
            figure(what, read.bytes_per_sec() / 1e6, "MB/s", Required::Nothing),
        ]
    });
    let ([rows, bytes], [rows_with_docs, bytes_with_docs]) = (changes, with_docs);
    [rows, bytes, rows_with_docs, bytes_with_docs]
}
