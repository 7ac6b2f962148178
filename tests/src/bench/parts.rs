//! A bench of several parts: chosen on the command line, measured one after the other, told to people or kept as
//! records.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::figure::{Figure, Required};
use super::stolen::noting_stolen;

/// Measures a part.
pub type Measure = fn() -> Vec<Figure>;

/// Runs the parts that the arguments `[--json] [PART...]` name, or all of them; fails when a figure is missed.
pub fn run(bench: &str, parts: &[(&str, Measure)]) -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let (flags, wanted): (Vec<String>, Vec<String>) = args.into_iter().partition(|arg| arg.starts_with('-'));
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    if flags.iter().any(|flag| flag != "--json") || wanted.iter().any(|part| !names.contains(&part.as_str())) {
        eprintln!("unknown among {flags:?} {wanted:?}; there are --json and the parts {names:?}");
        return ExitCode::from(2);
    }
    let chosen = parts.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|part| part == name));
    let figures: Vec<Figure> = chosen.flat_map(|(name, measure)| with_stolen(name, *measure)).collect();
    if flags.is_empty() {
        figures.iter().for_each(Figure::print);
    } else {
        let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
        let results: Vec<Value> = figures.iter().map(Figure::to_json).collect();
        println!("{}", json!({ "bench": bench, "cores": cores, "results": results }));
    }
    ExitCode::from(u8::from(figures.iter().any(Figure::is_missed)))
}

/// A part's figures, and how much of the processors' time others had meanwhile, where that is known.
fn with_stolen(part: &str, measure: Measure) -> Vec<Figure> {
    let (mut figures, stolen) = noting_stolen(measure);
    let what = format!("{part}: time of the processors that was stolen");
    figures.extend(stolen.map(|stolen| Figure { what, value: 100.0 * stolen, unit: "%", required: Required::Nothing }));
    figures
}
