//! A thousand subscribers, sixteen writers of single durable documents: as fast as they are acknowledged, paced, and
//! over WebSockets. Each turn has a server of its own, which has nothing but this load.

use std::any::Any;
use std::time::Duration;

use seqtide_bench::fan_out::{self, FanOut, Fanned};
use seqtide_bench::load::Pace;
use seqtide_bench::open_files;
use seqtide_bench::service::{Service, Transport};
use seqtide_tests::bench::figure::{Figure, Required, quantile};
use seqtide_tests::bench::peer::Peer;
use seqtide_tests::bench::rounds::Rounds;
use seqtide_tests::bench::{bare_writer, current_thread, durable_streams, nchan, pouchdb_server};
use tokio::runtime::Runtime;

use crate::seqtide::Seqtide;

/// Rounds; all count, because each turn has a new server. There are more where sides are close to each other.
const ROUNDS: usize = 3;
const ROUNDS_PACED: usize = 5;
const ASKED: FanOut = FanOut {
    subscribers: 1_000,
    writers: 16,
    pace: Pace::AsAnswered,
    length: Duration::from_secs(8),
    patience: Duration::from_secs(30),
};
/// Documents a second where they are paced.
const PACED_PER_SEC: f64 = 50.0;

/// Least deliveries a second, longest half of all deliveries, and most anonymous memory.
const SSE_RATE_MIN: f64 = 2_200_000.0;
const P50_MS_MAX: f64 = 50.0;
const ANONYMOUS_MB_MAX: f64 = 60.0;
/// The same over WebSockets.
const WEBSOCKET_RATE_MIN: f64 = 1_200_000.0;
/// Longest deliveries where they are paced, of those of `durable-streams`, and least deliveries a second of processor
/// time, of the bare writer's.
const OVER_LOG_MAX: f64 = 1.0;
const OF_BARE_WRITER_MIN: f64 = 0.7;

/// Over Server-Sent Events, as fast as writes are acknowledged.
pub fn as_acknowledged() -> Vec<Figure> {
    let sides = [Side::SSE, Side::DURABLE_STREAMS, Side::NCHAN_SSE, Side::POUCHDB_SERVER, Side::BARE_WRITER];
    let turns = take("fan-out", ROUNDS, &sides, &ASKED);
    let mut figures = Figures::of("fan-out", &sides, &turns);
    figures.require("seqtide, deliveries", Required::AtLeast(SSE_RATE_MIN));
    figures.require("seqtide, p50", Required::AtMost(P50_MS_MAX));
    figures.require("seqtide, anonymous memory", Required::AtMost(ANONYMOUS_MB_MAX));
    figures.require("seqtide, faults", Required::AtMost(0.0));
    figures.list
}

/// Over Server-Sent Events, fifty documents a second.
pub fn paced() -> Vec<Figure> {
    let sides = [Side::SSE, Side::DURABLE_STREAMS, Side::BARE_WRITER, Side::NCHAN_SSE];
    let turns = take("paced", ROUNDS_PACED, &sides, &FanOut { pace: Pace::PerSecond(PACED_PER_SEC), ..ASKED });
    let mut figures = Figures::of("paced", &sides, &turns);
    figures.require("seqtide, faults", Required::AtMost(0.0));
    let [seqtide, log, bare, ..] = &turns.counted[..] else { unreachable!("there are four sides") };
    for (what, share) in [("p50", 0.5), ("p99", 0.99)] {
        let ratio = |one: &Fanned, other: &Fanned| one.receipt.millis(share) / other.receipt.millis(share);
        figures.ratio(&format!("{what}, over durable-streams"), seqtide, log, ratio, Required::AtMost(OVER_LOG_MAX));
    }
    let ratio = |one: &Fanned, other: &Fanned| of_cpu(one) / of_cpu(other);
    let what = "deliveries a CPU second, over the bare writer";
    figures.ratio(what, seqtide, bare, ratio, Required::AtLeast(OF_BARE_WRITER_MIN));
    figures.list
}

/// Over WebSockets, as fast as writes are acknowledged.
pub fn over_websockets() -> Vec<Figure> {
    let sides = [Side::WEBSOCKET, Side::NCHAN_WEBSOCKET];
    let turns = take("websocket", ROUNDS, &sides, &ASKED);
    let mut figures = Figures::of("websocket", &sides, &turns);
    figures.require("seqtide, deliveries", Required::AtLeast(WEBSOCKET_RATE_MIN));
    figures.require("seqtide, faults", Required::AtMost(0.0));
    figures.list
}

/// What came of all turns, by side.
struct Turns {
    counted: Vec<Vec<Fanned>>,
    /// What was lost, doubled, out of order and the like, in turns that do not count as well.
    faults: Vec<u64>,
}

fn take(what: &str, rounds: usize, sides: &[Side], asked: &FanOut) -> Turns {
    open_files::allow_connections(asked.subscribers + asked.writers).expect("open files");
    let runtime = current_thread();
    let rounds = Rounds { sides: sides.len(), rounds, warm_up: false };
    let mut faults = vec![0; sides.len()];
    let counted = rounds.take(what, |side| {
        let running = (sides[side].start)(&runtime);
        let asked = FanOut { subscribers: sides[side].subscribers, ..*asked };
        let fanned = runtime.block_on(fan_out::run(&running.service, &asked)).expect("a load");
        let Fanned { lost, doubled, misordered, unwritten, feeds_ended, .. } = fanned;
        faults[side] += lost + doubled + misordered + unwritten + feeds_ended;
        fanned
    });
    Turns { counted, faults }
}

fn of_cpu(fanned: &Fanned) -> f64 {
    fanned.rate_of_cpu().expect("its process is known")
}

/// Somebody who fans documents out.
#[derive(Clone, Copy)]
struct Side {
    name: &'static str,
    start: fn(&Runtime) -> Running,
    subscribers: usize,
}

/// A server, ended when dropped.
struct Running {
    service: Service,
    _server: Box<dyn Any>,
}

impl Side {
    const SSE: Side = Side::new("seqtide", |runtime| Running::seqtide(runtime, Transport::Sse));
    const WEBSOCKET: Side = Side::new("seqtide", |runtime| Running::seqtide(runtime, Transport::Websocket));
    const DURABLE_STREAMS: Side = Side::new("durable-streams", |_| Running::peer(durable_streams::start()));
    const NCHAN_SSE: Side = Side::new("nchan", |_| Running::peer(nchan::start(Transport::Sse)));
    const NCHAN_WEBSOCKET: Side = Side::new("nchan", |_| Running::peer(nchan::start(Transport::Websocket)));
    const BARE_WRITER: Side = Side::new("bare writer", |_| Running::peer(bare_writer::start()));
    /// With each feed it takes longer to open another one: a thousand take minutes.
    const POUCHDB_SERVER: Side =
        Side { subscribers: 100, ..Side::new("pouchdb-server (100)", |_| Running::peer(pouchdb_server::start())) };

    const fn new(name: &'static str, start: fn(&Runtime) -> Running) -> Side {
        Side { name, start, subscribers: ASKED.subscribers }
    }
}

impl Running {
    fn seqtide(runtime: &Runtime, transport: Transport) -> Running {
        let seqtide = Seqtide::now(runtime);
        Running { service: seqtide.service(transport), _server: Box::new(seqtide) }
    }

    fn peer(peer: Peer) -> Running {
        Running { service: peer.service.clone(), _server: Box::new(peer) }
    }
}

/// The figures of a part.
struct Figures {
    part: &'static str,
    list: Vec<Figure>,
}

/// What is told of each side: its name, its unit, and how it is found.
type Told = (&'static str, &'static str, fn(&Fanned) -> f64);

const TOLD: [Told; 7] = [
    ("deliveries", "/s", Fanned::rate),
    ("deliveries a CPU second", "/s", of_cpu),
    ("acknowledged", "/s", |fanned| fanned.writes.rate),
    ("p50", "ms", |fanned| fanned.receipt.millis(0.5)),
    ("p99", "ms", |fanned| fanned.receipt.millis(0.99)),
    ("p99.9", "ms", |fanned| fanned.receipt.millis(0.999)),
    ("anonymous memory", "MB", |fanned| fanned.usage.map_or(f64::NAN, |usage| usage.anonymous_bytes_max as f64 / 1e6)),
];

impl Figures {
    /// The medians of every side, and all its faults.
    fn of(part: &'static str, sides: &[Side], turns: &Turns) -> Figures {
        let mut figures = Figures { part, list: Vec::new() };
        for ((side, counted), faults) in sides.iter().zip(&turns.counted).zip(&turns.faults) {
            let mut told =
                |what, value, unit| figures.add(&format!("{}, {what}", side.name), value, unit, Required::Nothing);
            for (what, unit, of) in TOLD {
                told(what, quantile(&mut counted.iter().map(of).collect::<Vec<f64>>(), 0.5), unit);
            }
            told("faults", *faults as f64, "");
        }
        figures
    }

    fn add(&mut self, what: &str, value: f64, unit: &'static str, required: Required) {
        self.list.push(Figure { what: format!("{}: {what}", self.part), value, unit, required });
    }

    /// The median of what one side is to another in each round.
    fn ratio(
        &mut self,
        what: &str,
        one: &[Fanned],
        other: &[Fanned],
        ratio: impl Fn(&Fanned, &Fanned) -> f64,
        required: Required,
    ) {
        let mut ratios: Vec<f64> = one.iter().zip(other).map(|(one, other)| ratio(one, other)).collect();
        self.add(&format!("seqtide, {what}"), quantile(&mut ratios, 0.5), "times", required);
    }

    fn require(&mut self, what: &str, required: Required) {
        let what = format!("{}: {what}", self.part);
        let figure = self.list.iter_mut().find(|figure| figure.what == what);
        figure.unwrap_or_else(|| panic!("{what} is not measured")).required = required;
    }
}
