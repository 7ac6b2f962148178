//! Single durable `PUT`s of new documents, beside durable appends of the same bytes to `durable-streams`, and beside
//! `pouchdb-server`, which syncs nothing.

use std::any::Any;
use std::cell::Cell;
use std::time::Duration;

use seqtide_bench::load::{self, Load, Pace};
use seqtide_bench::service::{FeedRequest, Publish, Service, Transport};
use seqtide_bench::writers::Inserts;
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required, quantile};
use seqtide_tests::bench::peer::Peer;
use seqtide_tests::bench::rounds::Rounds;
use seqtide_tests::bench::{durable_streams, pouchdb_server};
use tokio::runtime::Runtime;

use crate::seqtide::Seqtide;
use crate::{ROUNDS, responder};

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// How long each side's turn is in a round.
const TURN: Duration = Duration::from_secs(2);
/// Longest time that 99 of 100 writes may take.
const P99_MS_MAX: f64 = 10.0;
/// Least rate, as a multiple of that of `durable-streams`.
const OVER_LOG_MIN: f64 = 1.0;

pub fn measure_all() -> Vec<Figure> {
    let runtime = current_thread();
    // Each with servers of its own: what fewer connections have written, and how fast, is no matter.
    CONNECTIONS.iter().flat_map(|&connections| measure(&runtime, connections)).collect()
}

fn sides(runtime: &Runtime) -> Vec<Side> {
    let mut sides = vec![
        Side::seqtide(Seqtide::now(runtime)),
        Side::peer(durable_streams::start(), Required::AtLeast(OVER_LOG_MIN)),
        Side::peer(pouchdb_server::start(), Required::Nothing),
    ];
    sides.extend(Seqtide::before(runtime).map(Side::seqtide));
    sides
}

/// The first side is held against the others.
fn measure(runtime: &Runtime, connections: usize) -> Vec<Figure> {
    let sides = sides(runtime);
    let what = format!("puts: {connections} connections");
    let rounds = Rounds { sides: sides.len(), rounds: ROUNDS, warm_up: true };
    let turns = rounds.take(&what, |side| sides[side].turn(runtime, connections));
    let ceiling = Side::responder().turn(runtime, connections);
    let figure = |what: &str, mut values: Vec<f64>, unit, required| {
        let what = format!("puts, {connections} at once: {what}");
        Figure { what, value: quantile(&mut values, 0.5), unit, required }
    };
    let mut figures = Vec::new();
    for (side, loads) in sides.iter().zip(&turns) {
        let rates: Vec<f64> = loads.iter().map(|load| load.rate).collect();
        eprintln!("{what}, {}, a second: {rates:.0?}", side.name);
        let slowest = loads.iter().map(|load| load.latency.millis(0.99)).collect();
        figures.push(figure(side.name, rates, "/s", Required::Nothing));
        figures.push(figure(&format!("{}, p99", side.name), slowest, "ms", side.p99));
    }
    for (other, loads) in sides.iter().zip(&turns).skip(1) {
        let ratios = turns[0].iter().zip(loads).map(|(now, other)| now.rate / other.rate).collect();
        figures.push(figure(&format!("{} over {}", sides[0].name, other.name), ratios, "times", other.outdone));
    }
    figures.push(figure("ceiling of the load", vec![ceiling.rate], "/s", Required::Nothing));
    figures
}

/// Somebody who takes writes.
struct Side {
    name: &'static str,
    service: Service,
    /// The number of the next document.
    next: Cell<u64>,
    /// How long its slowest writes may take.
    p99: Required,
    /// How many times its rate Seqtide must reach.
    outdone: Required,
    _running: Box<dyn Any>,
}

impl Side {
    fn new(name: &'static str, service: Service, running: impl Any) -> Side {
        let (next, _running) = (Cell::new(0), Box::new(running));
        Side { name, service, next, p99: Required::Nothing, outdone: Required::Nothing, _running }
    }

    fn seqtide(seqtide: Seqtide) -> Side {
        let p99 = if seqtide.is_judged { Required::AtMost(P99_MS_MAX) } else { Required::Nothing };
        Side { p99, ..Side::new(seqtide.name, seqtide.service(Transport::Sse), seqtide) }
    }

    fn peer(peer: Peer, outdone: Required) -> Side {
        Side { outdone, ..Side::new(peer.name, peer.service.clone(), peer) }
    }

    fn responder() -> Side {
        let publish = Publish::Put("/db".to_owned());
        let feed = FeedRequest { bytes: Vec::new(), live: b"", has_sequences: false };
        Side::new("ceiling", Service { address: responder::start(), pid: None, publish, feed }, ())
    }

    fn turn(&self, runtime: &Runtime, connections: usize) -> Load {
        let Service { address, publish, .. } = &self.service;
        let insert = |place| Inserts::new(publish, self.next.get(), place, connections);
        let mut senders: Vec<Inserts> = (0..connections).map(insert).collect();
        let load = runtime.block_on(load::run(*address, &mut senders, Pace::AsAnswered, TURN)).expect("writes");
        self.next.set(senders.iter().map(Inserts::end).max().expect("there are connections"));
        load
    }
}
