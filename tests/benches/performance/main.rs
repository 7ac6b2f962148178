//! What Seqtide is held to in speed, beside others in the same run: durable writes, catching up, fan-out, idle
//! subscribers, a large database, and how cost grows with documents.
//!
//! `cargo build --release && cargo bench -p seqtide-tests --bench performance [-- [--json] [PART...]]`. It fails when a
//! figure is not what it must be. `docs/performance.md` says what is measured.

mod backfill;
mod bulk;
mod fan_out;
mod growth;
mod idle;
mod large;
mod lmdb;
mod opening;
mod puts;
mod responder;
mod seqtide;
mod updates;

use std::process::ExitCode;

use seqtide_tests::bench::bare_writer;
use seqtide_tests::bench::parts::{self, Measure};

/// The parts, by name. New ones go here.
const PARTS: [(&str, Measure); 10] = [
    ("puts", puts::measure_all),
    ("lmdb", lmdb::measure_all),
    ("bulk", bulk::measure_all),
    ("backfill", backfill::measure_all),
    ("fan-out", fan_out::as_acknowledged),
    ("paced", fan_out::paced),
    ("websocket", fan_out::over_websockets),
    ("idle", idle::measure_all),
    ("large", large::measure_all),
    ("growth", growth::measure_all),
];

/// Rounds that count, after one that does not.
const ROUNDS: usize = 7;

fn main() -> ExitCode {
    bare_writer::become_one_if_asked();
    parts::run("performance", &PARTS)
}
