//! What filters cost: feeds that wait for something else, feeds that wait for the same, feeds that come from far back,
//! and looking at documents.
//!
//! `cargo build --release && cargo bench -p seqtide-tests --bench filters [-- [--json] [PART...]]`. It fails when a
//! figure is not what it must be. `docs/benchmarks.md` says what is measured.

mod catch_up;
mod figure;
mod idle;
mod matching;
mod shared;
mod subscribers;

use std::process::ExitCode;

use figure::Figure;
use serde_json::{Value, json};

/// Measures a part.
type Measure = fn() -> Vec<Figure>;

/// The parts, by name. New ones go here.
const PARTS: [(&str, Measure); 4] = [
    ("matching", matching::measure_all),
    ("shared", shared::measure_all),
    ("catch-up", catch_up::measure_all),
    ("idle", idle::measure_all),
];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let (flags, wanted): (Vec<String>, Vec<String>) = args.into_iter().partition(|arg| arg.starts_with('-'));
    let names = PARTS.map(|(name, _)| name);
    if flags.iter().any(|flag| flag != "--json") || wanted.iter().any(|part| !names.contains(&part.as_str())) {
        eprintln!("unknown among {flags:?} {wanted:?}; there are --json and the parts {names:?}");
        return ExitCode::from(2);
    }
    let parts = PARTS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| part == name));
    let figures: Vec<Figure> = parts.flat_map(|(_, measure)| measure()).collect();
    if flags.is_empty() {
        figures.iter().for_each(Figure::print);
    } else {
        let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
        let results: Vec<Value> = figures.iter().map(Figure::to_json).collect();
        println!("{}", json!({ "bench": "filters", "cores": cores, "results": results }));
    }
    ExitCode::from(u8::from(figures.iter().any(Figure::is_missed)))
}
