//! A large database: a minute of random updates, then what opening it takes after kills.

use std::ops::Range;
use std::time::{Duration, Instant};

use seqtide_bench::Error;
use seqtide_bench::documents;
use seqtide_bench::load::{self, Pace, Sender};
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required};
use seqtide_tests::bench::rounds::undisturbed;
use seqtide_tests::workload::setting;
use tokio::runtime::Runtime;

use crate::opening;
use crate::seqtide::Seqtide;
use crate::updates::{self, Rev};

/// Connections of all loads here.
pub const CONNECTIONS: usize = 64;
/// Documents in the database.
const DOCUMENTS: u64 = 3_000_000;
/// Names another number of documents, for a quick look.
pub const SCALE: &str = "SEQTIDE_BENCH_DOCS";

/// Requests under way while it is filled, and documents of each.
const FILLING: u64 = 4;
const BATCH: u64 = 1_000;

pub fn measure_all() -> Vec<Figure> {
    let documents = setting(SCALE).unwrap_or(DOCUMENTS);
    let runtime = current_thread();
    let mut figures = measure(&runtime, Seqtide::now, documents);
    if Seqtide::before(&runtime).is_some() {
        let before = |runtime: &Runtime| Seqtide::before(runtime).expect("it was there");
        figures.extend(measure(&runtime, before, documents));
    }
    if documents != DOCUMENTS {
        for figure in figures.iter_mut().filter(|figure| figure.required != Required::Nothing) {
            figure.required = Required::Unmeasured("SEQTIDE_BENCH_DOCS is set");
        }
    }
    figures
}

/// One side after the other: each has the machine and the disk for itself. What is measured again has a new server:
/// what was done to the database before is no matter.
fn measure(runtime: &Runtime, start: impl Fn(&Runtime) -> Seqtide, documents: u64) -> Vec<Figure> {
    undisturbed(&format!("large: {documents} documents"), || {
        let mut side = start(runtime);
        let mut revs = fill(runtime, &side, documents);
        assert_eq!(revs.len() as u64, documents, "revisions");
        let mut figures = updates::measure(runtime, &side, &mut revs);
        figures.push(opening::measure(runtime, &mut side, documents));
        for figure in &mut figures {
            figure.what = format!("large ({documents}): {}", figure.what);
            if !side.is_judged {
                figure.required = Required::Nothing;
            }
        }
        figures
    })
}

/// Writes the documents; their revisions, by number.
fn fill(runtime: &Runtime, side: &Seqtide, documents: u64) -> Vec<Rev> {
    let share = documents.div_ceil(FILLING);
    let of_connection = |number| Filling::new(number * share..documents.min((number + 1) * share));
    let mut senders: Vec<Filling> = (0..FILLING).map(of_connection).collect();
    let load = load::run(side.server.address(), &mut senders, Pace::AsAnswered, Duration::MAX);
    runtime.block_on(load).expect("documents");
    senders.into_iter().flat_map(|sender| sender.revs).collect()
}

/// A connection that writes its share of the documents.
struct Filling {
    rest: Range<u64>,
    request: Vec<u8>,
    revs: Vec<Rev>,
}

impl Filling {
    fn new(share: Range<u64>) -> Filling {
        Filling { rest: share, request: Vec::new(), revs: Vec::new() }
    }
}

impl Sender for Filling {
    fn next(&mut self, _at: Instant) -> Option<&[u8]> {
        let batch = self.rest.start..self.rest.end.min(self.rest.start + BATCH);
        self.rest.start = batch.end;
        self.request.clear();
        (!batch.is_empty()).then(|| {
            documents::write_bulk("/db", batch, &mut self.request);
            self.request.as_slice()
        })
    }

    fn answered(&mut self, answer: &[u8]) -> Result<(), Error> {
        self.revs.extend(documents::revs(answer).map(Rev::parse));
        Ok(())
    }
}
