//! Ten thousand subscribers, each waiting for its own: a write that concerns one of them, beside the same write where
//! there is only that one.

use std::time::Instant;

use rand::Rng;
use seqtide_bench::connection::Connection;
use seqtide_bench::open_files;
use seqtide_bench::process::Process;
use seqtide_tests::Server;
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required, quantile};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::subscribers::Subscribers;

const MANY: usize = 10_000;
/// Rounds that count, after one that does not.
const ROUNDS: usize = 8;
/// Writes of each side in a round.
const WRITES: usize = 250;
/// What a write may cost beside many, as a multiple of what it costs beside one.
const RATIO_MAX: f64 = 1.5;

pub fn measure_all() -> Vec<Figure> {
    open_files::allow_connections(MANY).expect("open files");
    let runtime = current_thread();
    let mut sides = [1, MANY].map(|subscribers| Side::start(&runtime, subscribers));
    for round in 0..=ROUNDS {
        eprintln!("idle: round {round} of {ROUNDS}");
        for turn in 0..sides.len() {
            sides[(round + turn) % 2].write(&runtime, round > 0);
        }
    }
    let mut figures: Vec<Figure> = Vec::new();
    let mut medians = Vec::new();
    for side in &mut sides {
        let (median, p99) = (quantile(&mut side.millis, 0.5), quantile(&mut side.millis, 0.99));
        let cpu = 1e3 * side.cpu_secs / side.millis.len() as f64;
        let of = |what: &str| format!("idle: {what}, {} subscribers", side.subscribers);
        for (what, value) in [("PUT, median", median), ("PUT, p99", p99), ("CPU a write", cpu)] {
            figures.push(Figure { what: of(what), value, unit: "ms", required: Required::Nothing });
        }
        medians.push((median, cpu));
    }
    let [one, many] = medians[..] else { unreachable!("there are two sides") };
    for (what, value) in [("PUT, median", many.0 / one.0), ("CPU a write", many.1 / one.1)] {
        let what = format!("idle: {what}, {MANY} over 1");
        figures.push(Figure { what, value, unit: "times", required: Required::AtMost(RATIO_MAX) });
    }
    figures
}

/// A server with its subscribers, and what its writes cost.
struct Side {
    server: Server,
    subscribers: usize,
    feeds: Subscribers,
    written: usize,
    millis: Vec<f64>,
    cpu_secs: f64,
}

impl Side {
    fn start(runtime: &Runtime, subscribers: usize) -> Side {
        eprintln!("idle: opening {subscribers} feeds");
        let server = Server::start();
        let mut writer = runtime.block_on(Connection::open(server.address())).expect("a connection");
        runtime.block_on(writer.request("PUT", "/db", "")).expect("an answer");
        let feeds = Subscribers::open(&server, subscribers, |owner| json!({ "owner": owner }));
        Side { server, subscribers, feeds, written: 0, millis: Vec::new(), cpu_secs: 0.0 }
    }

    /// Writes documents, each for one subscriber, and waits for it there.
    fn write(&mut self, runtime: &Runtime, counts: bool) {
        // A new one each round: the server closes one that is idle while the other side writes.
        let mut writer = runtime.block_on(Connection::open(self.server.address())).expect("a connection");
        let process = Process(self.server.pid());
        let cpu_secs = || process.cpu_secs().expect("the server");
        let cpu_before = cpu_secs();
        for _ in 0..WRITES {
            let owner = rand::rng().random_range(0..self.subscribers);
            let id = format!("d{}", self.written);
            let body = json!({ "owner": owner, "pad": "x".repeat(100) }).to_string();
            let started = Instant::now();
            runtime.block_on(writer.request("PUT", &format!("/db/{id}"), &body)).expect("an answer");
            let millis = 1e3 * started.elapsed().as_secs_f64();
            let row = self.feeds.next();
            assert_eq!((row.subscriber, row.id), (owner, id));
            self.written += 1;
            self.millis.extend(counts.then_some(millis));
        }
        self.feeds.assert_no_more();
        if counts {
            self.cpu_secs += cpu_secs() - cpu_before;
        }
    }
}
