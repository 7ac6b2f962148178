//! The three kinds of write, in turn, round after round.

use serde_json::json;

use self::Kind::{Fresh, Insert, Long};

/// Rounds that count, after one that does not: each order as often.
const ROUNDS: usize = 8 * ORDERS.len();
/// For so many rounds documents are fresh; then there are others.
const FRESH_ROUNDS: usize = 7;
/// Least rate of updates with long histories, as a share of the rate with fresh ones.
pub const RATIO_MIN: f64 = 0.6;

/// A kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// New documents.
    Insert,
    /// Updates of documents that have few revisions.
    Fresh,
    /// Updates of documents with 1,000 revisions.
    Long,
}

/// What is to be written and measured next.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub kind: Kind,
    /// Whether there are to be other fresh documents from now on, made before anything is measured.
    pub renews_fresh: bool,
}

/// The orders in which the kinds come in rounds. Each kind follows either of the others equally often, also from one
/// round to the next: what one leaves to be merged or put into LMDB may be done while the next is measured.
const ORDERS: [[Kind; 3]; 6] = [
    [Insert, Fresh, Long],
    [Fresh, Long, Insert],
    [Long, Insert, Fresh],
    [Insert, Long, Fresh],
    [Long, Fresh, Insert],
    [Fresh, Insert, Long],
];

/// What was measured one way.
pub struct Comparison {
    /// Which way the writes went.
    pub way: String,
    /// Documents a second, the median of all rounds, in the order of [`Kind`]s.
    rates: [f64; 3],
    /// Rate of long over fresh, the median of all rounds.
    pub ratio: f64,
    /// The lowest and the highest ratio of a round.
    ratio_range: (f64, f64),
}

/// Compares the kinds; `write` writes documents of one kind and says how many a second.
pub fn compare(way: String, mut write: impl FnMut(Turn) -> f64) -> Comparison {
    eprintln!("{way}: {} rounds", ROUNDS + 1);
    let mut rounds: Vec<[f64; 3]> = Vec::new();
    for round in 0..=ROUNDS {
        let mut rates = [0.0; 3];
        for (at, kind) in ORDERS[round % ORDERS.len()].into_iter().enumerate() {
            let renews_fresh = at == 0 && round % FRESH_ROUNDS == 0;
            rates[kind as usize] = write(Turn { kind, renews_fresh });
        }
        rounds.push(rates);
    }
    let counted = &rounds[1..];
    let ratios: Vec<f64> = counted.iter().map(|[_, fresh, long]| long / fresh).collect();
    let of_kind = |kind: usize| median(counted.iter().map(|rates| rates[kind]).collect());
    let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = ratios.iter().copied().fold(0.0, f64::max);
    Comparison { way, rates: [0, 1, 2].map(of_kind), ratio: median(ratios), ratio_range: (lowest, highest) }
}

/// The mean of the two in the middle: rounds are an even number.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let above = values.len() / 2;
    (values[above - 1] + values[above]) / 2.0
}

/// For people.
pub fn print_table(comparisons: &[Comparison]) {
    println!("documents a second, medians of {ROUNDS} rounds; long/fresh with its lowest and highest round");
    println!("{:<30}{:>10}{:>10}{:>10}{:>12}", "", "insert", "fresh", "long", "long/fresh");
    for Comparison { way, rates: [insert, fresh, long], ratio, ratio_range: (lowest, highest) } in comparisons {
        println!("{way:<30}{insert:>10.0}{fresh:>10.0}{long:>10.0}{ratio:>12.2}  ({lowest:.2} to {highest:.2})");
    }
}

/// For records.
pub fn print_json(comparisons: &[Comparison]) {
    let rows = comparisons.iter().map(|found| {
        let [insert, fresh, long] = found.rates.map(f64::round);
        let (lowest, highest) = found.ratio_range;
        json!({
            "way": found.way, "insert": insert, "fresh": fresh, "long": long,
            "ratio": found.ratio, "ratio_lowest": lowest, "ratio_highest": highest,
        })
    });
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let rows: Vec<_> = rows.collect();
    println!(
        "{}",
        json!({ "bench": "long_history", "unit": "documents/s", "rounds": ROUNDS, "cores": cores, "results": rows })
    );
}
