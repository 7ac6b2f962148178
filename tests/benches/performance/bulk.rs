//! `_bulk_docs` of 1,000 new documents.

use std::time::{Duration, Instant};
use std::vec;

use seqtide_bench::load::{self, Pace, Sender};
use seqtide_bench::{Error, documents};
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required, quantile};
use seqtide_tests::bench::rounds::Rounds;

use crate::ROUNDS;
use crate::seqtide::Seqtide;

const DOCUMENTS: u64 = 1_000;
/// Requests of each side in a round.
const REQUESTS: usize = 48;
/// Connections they come over, and the least documents a second.
const WAYS: [(usize, Required); 2] = [(1, Required::Nothing), (4, Required::AtLeast(100_000.0))];

pub fn measure_all() -> Vec<Figure> {
    let runtime = current_thread();
    let sides: Vec<Seqtide> = [Some(Seqtide::now(&runtime)), Seqtide::before(&runtime)].into_iter().flatten().collect();
    let mut written = 0;
    let mut figures = Vec::new();
    for (connections, required) in WAYS {
        let rounds = Rounds { sides: sides.len(), rounds: ROUNDS, warm_up: true };
        let rates = rounds.take(&format!("bulk: {connections} connections"), |side| {
            let mut senders: Vec<Prepared> =
                (0..connections).map(|_| Prepared::new(&mut written, REQUESTS / connections)).collect();
            let load = load::run(sides[side].server.address(), &mut senders, Pace::AsAnswered, Duration::MAX);
            runtime.block_on(load).expect("documents").rate * DOCUMENTS as f64
        });
        for (side, mut rates) in sides.iter().zip(rates) {
            let what = format!("bulk, {connections} at once: {}", side.name);
            let required = if side.is_judged { required } else { Required::Nothing };
            figures.push(Figure { what, value: quantile(&mut rates, 0.5), unit: "documents/s", required });
        }
    }
    figures
}

/// Requests made beforehand, so that making them is not measured.
struct Prepared {
    requests: vec::IntoIter<Vec<u8>>,
    under_way: Vec<u8>,
}

impl Prepared {
    fn new(written: &mut u64, requests: usize) -> Prepared {
        let request = || {
            let mut request = Vec::new();
            documents::write_bulk("/db", *written..*written + DOCUMENTS, &mut request);
            *written += DOCUMENTS;
            request
        };
        let requests: Vec<Vec<u8>> = std::iter::repeat_with(request).take(requests).collect();
        Prepared { requests: requests.into_iter(), under_way: Vec::new() }
    }
}

impl Sender for Prepared {
    fn next(&mut self, _at: Instant) -> Option<&[u8]> {
        self.under_way = self.requests.next()?;
        Some(&self.under_way)
    }

    fn answered(&mut self, answer: &[u8]) -> Result<(), Error> {
        documents::expect_revs(answer, DOCUMENTS)
    }
}
