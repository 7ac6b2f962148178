//! Random updates of the documents there are, sustained for a minute.

use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::ThreadRng;
use seqtide_bench::Error;
use seqtide_bench::documents::{self, Stamp};
use seqtide_bench::load::{self, Pace, Sender};
use seqtide_tests::bench::figure::{Figure, Required};
use tokio::runtime::Runtime;

use crate::large::CONNECTIONS;
use crate::seqtide::Seqtide;

const LENGTH: Duration = Duration::from_secs(60);
/// Least updates a second.
const RATE_MIN: f64 = 25_000.0;

/// A document's revision.
pub struct Rev {
    generation: u32,
    hash: [u8; 32],
}

impl Rev {
    /// Reads a revision as an answer has it.
    pub fn parse(text: &str) -> Rev {
        let parsed = text.split_once('-').and_then(|(generation, hash)| {
            Some(Rev { generation: generation.parse().ok()?, hash: hash.as_bytes().try_into().ok()? })
        });
        parsed.unwrap_or_else(|| panic!("{text} is no revision"))
    }
}

/// `revs` has the documents' revisions, by number. Each connection has documents of its own, so that none is refused.
pub fn measure(runtime: &Runtime, side: &Seqtide, revs: &mut [Rev]) -> Vec<Figure> {
    let share = revs.len().div_ceil(CONNECTIONS);
    let of_connection =
        |(number, revs)| Updates { first: (number * share) as u64, revs, at: 0, rng: rand::rng(), request: Vec::new() };
    let mut senders: Vec<Updates> = revs.chunks_mut(share).enumerate().map(of_connection).collect();
    let load = load::run(side.server.address(), &mut senders, Pace::AsAnswered, LENGTH);
    let load = runtime.block_on(load).expect("updates");
    let figure = |what: &str, value, unit, required| Figure {
        what: format!("{} updates{what}", side.name),
        value,
        unit,
        required,
    };
    vec![
        figure("", load.rate, "/s", Required::AtLeast(RATE_MIN)),
        figure(", median", load.latency.millis(0.5), "ms", Required::Nothing),
        figure(", p99", load.latency.millis(0.99), "ms", Required::Nothing),
        figure(", longest", load.latency.millis(1.0), "ms", Required::Nothing),
    ]
}

/// A connection that updates its documents at random.
struct Updates<'a> {
    /// The number of its first document.
    first: u64,
    revs: &'a mut [Rev],
    /// Which of them is being updated.
    at: usize,
    rng: ThreadRng,
    request: Vec<u8>,
}

impl Sender for Updates<'_> {
    fn next(&mut self, _at: Instant) -> Option<&[u8]> {
        self.at = self.rng.random_range(0..self.revs.len());
        let Rev { generation, hash } = &self.revs[self.at];
        let hash = str::from_utf8(hash).expect("hex digits");
        let member = format!(r#""_rev":"{generation}-{hash}","#);
        self.request.clear();
        let stamp = Stamp::of(self.first + self.at as u64);
        documents::write_update("/db", stamp, &member, &mut self.request);
        Some(&self.request)
    }

    fn answered(&mut self, answer: &[u8]) -> Result<(), Error> {
        let rev = documents::revs(answer).next().expect("a revision");
        self.revs[self.at] = Rev::parse(rev);
        Ok(())
    }
}
