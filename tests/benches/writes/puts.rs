//! Single durable `PUT`s of new documents, beside durable appends of the same bytes to `durable-streams`.

use std::any::Any;
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::durable_streams::DurableStreams;
use seqtide_tests::bench::figure::{Figure, Required, quantile};
use tokio::runtime::Runtime;

use crate::inserts::Inserts;
use crate::load::{self, Load};
use crate::seqtide::Seqtide;
use crate::{ROUNDS, documents, responder};

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// How long each side's turn is in a round.
const TURN: Duration = Duration::from_secs(2);
/// Longest time that 99 of 100 writes may take.
const P99_MS_MAX: f64 = 10.0;
/// Least rate, as a multiple of the rival's.
const OVER_RIVAL_MIN: f64 = 1.0;

pub fn measure_all() -> Vec<Figure> {
    let runtime = current_thread();
    let now = Side::seqtide(Seqtide::now(&runtime));
    let others: Vec<Side> =
        [Side::rival(&runtime)].into_iter().chain(Seqtide::before(&runtime).map(Side::seqtide)).collect();
    CONNECTIONS.iter().flat_map(|&connections| measure(&runtime, &now, &others, connections)).collect()
}

fn measure(runtime: &Runtime, now: &Side, others: &[Side], connections: usize) -> Vec<Figure> {
    let sides: Vec<&Side> = std::iter::once(now).chain(others).collect();
    let mut turns: Vec<Vec<Load>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 0..=ROUNDS {
        eprintln!("puts: {connections} connections, round {round} of {ROUNDS}");
        for turn in 0..sides.len() {
            let side = (round + turn) % sides.len();
            let load = sides[side].turn(runtime, connections);
            turns[side].extend((round > 0).then_some(load));
        }
    }
    let ceiling = Side::responder().turn(runtime, connections);
    let figure = |what: &str, mut values: Vec<f64>, unit, required| {
        let what = format!("puts, {connections} at once: {what}");
        Figure { what, value: quantile(&mut values, 0.5), unit, required }
    };
    let mut figures = Vec::new();
    for (side, loads) in sides.iter().zip(&turns) {
        let slowest = loads.iter().map(|load| load.millis(0.99)).collect();
        figures.push(figure(side.name, loads.iter().map(|load| load.rate).collect(), "/s", Required::Nothing));
        figures.push(figure(&format!("{}, p99", side.name), slowest, "ms", side.p99));
    }
    for (other, loads) in others.iter().zip(&turns[1..]) {
        let ratios = turns[0].iter().zip(loads).map(|(now, other)| now.rate / other.rate).collect();
        figures.push(figure(&format!("{} over {}", now.name, other.name), ratios, "times", other.outdone));
    }
    figures.push(figure("ceiling of the load", vec![ceiling.rate], "/s", Required::Nothing));
    figures
}

/// Somebody who takes writes.
struct Side {
    name: &'static str,
    address: SocketAddr,
    /// Writes the request with the document of this number.
    write: fn(u64, &mut Vec<u8>),
    /// The number of the next document.
    next: Cell<u64>,
    /// How long its slowest writes may take.
    p99: Required,
    /// How many times its rate Seqtide must reach.
    outdone: Required,
    _running: Box<dyn Any>,
}

impl Side {
    fn new(name: &'static str, address: SocketAddr, write: fn(u64, &mut Vec<u8>), running: impl Any) -> Side {
        let (next, _running) = (Cell::new(0), Box::new(running));
        Side { name, address, write, next, p99: Required::Nothing, outdone: Required::Nothing, _running }
    }

    fn seqtide(seqtide: Seqtide) -> Side {
        let p99 = if seqtide.is_judged { Required::AtMost(P99_MS_MAX) } else { Required::Nothing };
        let side = Side::new(seqtide.name, seqtide.server.address(), documents::write_put, seqtide.server);
        Side { p99, ..side }
    }

    fn rival(runtime: &Runtime) -> Side {
        let rival = DurableStreams::start();
        runtime.block_on(rival.create("/stream"));
        let side = Side::new("durable-streams", rival.address(), documents::write_append, rival);
        Side { outdone: Required::AtLeast(OVER_RIVAL_MIN), ..side }
    }

    fn responder() -> Side {
        Side::new("ceiling", responder::start(), documents::write_put, ())
    }

    fn turn(&self, runtime: &Runtime, connections: usize) -> Load {
        let mut senders: Vec<Inserts> = (0..connections).map(|_| Inserts::new(&self.next, self.write)).collect();
        runtime.block_on(load::run(self.address, &mut senders, TURN))
    }
}
