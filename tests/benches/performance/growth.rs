//! How cost grows with documents: writing to a hundred thousand and to ten million, the memory both take, and opening
//! the large one.

use std::time::{Duration, Instant};

use seqtide_bench::backfill::fill;
use seqtide_bench::connection::Connection;
use seqtide_bench::documents;
use seqtide_bench::load::{self, Pace};
use seqtide_bench::process::Process;
use seqtide_bench::service::{Service, Transport};
use seqtide_bench::writers::Inserts;
use seqtide_tests::bench::current_thread;
use seqtide_tests::bench::figure::{Figure, Required};
use seqtide_tests::bench::rounds::undisturbed;
use seqtide_tests::workload::setting;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::large::{CONNECTIONS, SCALE};
use crate::seqtide::{DATABASE, Seqtide};

const FEW: u64 = 100_000;
const MANY: u64 = 10_000_000;
/// How long is written to each.
const LENGTH: Duration = Duration::from_secs(20);
/// How often its memory is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What filling took has been given back when the memory has not fallen for so long.
const STANDS_STILL: Duration = Duration::from_secs(12);
/// Least rate beside many documents, of that beside few.
const RATE_MIN: f64 = 0.5;
/// Most anonymous memory beside many, of that beside few: "does not grow", and what an allocator varies by.
const MEMORY_MAX: f64 = 1.25;
/// Longest opening of the large database, in milliseconds.
const OPENING_MS_MAX: f64 = 100.0;

pub fn measure_all() -> Vec<Figure> {
    let runtime = current_thread();
    let many = setting(SCALE).unwrap_or(MANY);
    // Each, and each that is measured again, has a new server.
    let turn = |documents| format!("growth: {documents} documents");
    let few = undisturbed(&turn(FEW), || grown(&runtime, &Seqtide::now(&runtime), FEW));
    let (large, opening_ms) = undisturbed(&turn(many), || {
        let mut seqtide = Seqtide::now(&runtime);
        (grown(&runtime, &seqtide, many), opening_ms(&runtime, &mut seqtide))
    });
    let figure = |what: &str, value, unit, required| {
        let required = if many == MANY { required } else { Required::Unmeasured("SEQTIDE_BENCH_DOCS is set") };
        Figure { what: format!("growth: {what}"), value, unit, required }
    };
    let told = |what: &str, value, unit| Figure {
        required: Required::Nothing,
        ..figure(what, value, unit, Required::Nothing)
    };
    vec![
        told(&format!("PUTs beside {FEW} documents"), few.rate, "/s"),
        told(&format!("PUTs beside {many} documents"), large.rate, "/s"),
        figure("PUTs, many over few", large.rate / few.rate, "times", Required::AtLeast(RATE_MIN)),
        told(&format!("anonymous memory, {FEW} documents"), few.anonymous_mb, "MB"),
        told(&format!("anonymous memory, {many} documents"), large.anonymous_mb, "MB"),
        figure("memory, many over few", large.anonymous_mb / few.anonymous_mb, "times", Required::AtMost(MEMORY_MAX)),
        figure("opening", opening_ms, "ms", Required::AtMost(OPENING_MS_MAX)),
    ]
}

/// What was found at a number of documents.
struct Grown {
    rate: f64,
    /// On average: it rises while rows wait for LMDB, and falls when it has them.
    anonymous_mb: f64,
}

/// Writes so many documents, then single ones.
fn grown(runtime: &Runtime, seqtide: &Seqtide, documents: u64) -> Grown {
    let Service { address, publish, .. } = seqtide.service(Transport::Sse);
    let process = Process(seqtide.server.pid());
    let anonymous_mb = || process.anonymous_bytes().expect("the server") as f64 / 1e6;
    runtime.block_on(fill(address, DATABASE, 0..documents)).expect("documents");
    runtime.block_on(stands_still(anonymous_mb));
    let insert = |place| Inserts::new(&publish, documents, place, CONNECTIONS);
    let mut senders: Vec<Inserts> = (0..CONNECTIONS).map(insert).collect();
    let mut seen = Vec::new();
    let looks = async {
        loop {
            seen.push(anonymous_mb());
            sleep(LOOK_EVERY).await;
        }
    };
    let load = load::run(address, &mut senders, Pace::AsAnswered, LENGTH);
    let load = runtime.block_on(async { tokio::select!(load = load => load, never = looks => never) });
    Grown { rate: load.expect("writes").rate, anonymous_mb: seen.iter().sum::<f64>() / seen.len() as f64 }
}

/// Waits until a value has not fallen for a while.
async fn stands_still(value: impl Fn() -> f64) {
    let (mut least, mut since) = (value(), Instant::now());
    while since.elapsed() < STANDS_STILL {
        sleep(LOOK_EVERY).await;
        let now = value();
        if now < least {
            (least, since) = (now, Instant::now());
        }
    }
}

/// The first read of a document, by a server that was started again after an orderly end.
fn opening_ms(runtime: &Runtime, seqtide: &mut Seqtide) -> f64 {
    seqtide.server.stop();
    seqtide.server.restart_on_same_port_and_data();
    runtime.block_on(async {
        let mut connection = Connection::open(seqtide.server.address()).await.expect("a connection");
        let started = Instant::now();
        connection.request("GET", &format!("/{DATABASE}/{}", documents::id(0)), "").await.expect("a document");
        1e3 * started.elapsed().as_secs_f64()
    })
}
