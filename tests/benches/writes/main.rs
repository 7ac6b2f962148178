//! Durable writes over HTTP: alone and in bulk, beside what Seqtide was before and beside `durable-streams`; updates
//! of a large database; opening it after a kill.
//!
//! `cargo build --release && cargo bench -p seqtide-tests --bench writes [-- [--json] [PART...]]`. It fails when a figure
//! is not what it must be. `docs/benchmarks.md` says what is measured.

mod bulk;
mod documents;
mod inserts;
mod large;
mod load;
mod opening;
mod puts;
mod responder;
mod seqtide;
mod updates;

use std::process::ExitCode;

use seqtide_tests::bench::parts::{self, Measure};

/// The parts, by name. New ones go here.
const PARTS: [(&str, Measure); 3] =
    [("puts", puts::measure_all), ("bulk", bulk::measure_all), ("large", large::measure_all)];

/// Rounds that count, after one that does not.
const ROUNDS: usize = 7;

fn main() -> ExitCode {
    parts::run("writes", &PARTS)
}
