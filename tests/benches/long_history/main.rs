//! Updates of documents with 1,000 revisions beside updates of fresh ones and beside inserts.
//!
//! `cargo build --release && cargo bench -p seqtide-tests --bench long_history [-- --json]`. It fails when a long
//! history costs more than it may. `docs/performance.md` says what is measured.

mod comparison;
mod http;
mod store;

use std::ops::RangeFrom;
use std::process::ExitCode;

use mimalloc::MiMalloc;

use comparison::{Comparison, RATIO_MIN};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How many revisions a long history has: CouchDB's and Seqtide's default limit, so that each update also cuts one off.
const LONG: u64 = 1000;
/// How many of the long histories are made by updates here; the others are replicated.
const UPDATED_HERE: usize = 16;
/// Documents of a kind that there are.
const DOCUMENTS: usize = 4000;
/// One update in so many moves ancestors out of its document's head.
const CHUNK: usize = 24;

/// From which document on long histories are updated, time after time, before anything is measured: otherwise all of
/// them would move ancestors in one turn.
fn staggered() -> impl Iterator<Item = RangeFrom<usize>> {
    (1..CHUNK).map(|apart| DOCUMENTS * apart / CHUNK..)
}

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let json = match args.as_slice() {
        [] => false,
        [only] if only == "--json" => true,
        other => {
            eprintln!("unknown arguments {other:?}; the only one there is: --json");
            return ExitCode::from(2);
        }
    };
    let mut comparisons = store::compare();
    comparisons.extend(http::compare());
    if json {
        comparison::print_json(&comparisons)
    } else {
        comparison::print_table(&comparisons)
    }
    let slow: Vec<&Comparison> = comparisons.iter().filter(|found| found.ratio < RATIO_MIN).collect();
    for found in &slow {
        eprintln!(
            "{}: long histories at {:.2} of fresh ones, at least {RATIO_MIN} is required",
            found.way, found.ratio
        );
    }
    ExitCode::from(u8::from(!slow.is_empty()))
}
