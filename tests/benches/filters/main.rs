//! What filters cost: feeds that wait for something else, feeds that wait for the same, feeds that come from far back,
//! and looking at documents.
//!
//! `cargo build --release && cargo bench -p seqtide-tests --bench filters [-- [--json] [PART...]]`. It fails when a
//! figure is not what it must be. `docs/performance.md` says what is measured.

mod catch_up;
mod idle;
mod matching;
mod shared;
mod subscribers;

use std::process::ExitCode;

use seqtide_tests::bench::parts::{self, Measure};

/// The parts, by name. New ones go here.
const PARTS: [(&str, Measure); 4] = [
    ("matching", matching::measure_all),
    ("shared", shared::measure_all),
    ("catch-up", catch_up::measure_all),
    ("idle", idle::measure_all),
];

fn main() -> ExitCode {
    parts::run("filters", &PARTS)
}
