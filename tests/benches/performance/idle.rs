//! Ten thousand subscribers to whom nothing is sent but heartbeats.

use std::time::Duration;

use seqtide_bench::idle::{self, Idle, Idled};
use seqtide_bench::open_files;
use seqtide_bench::service::{Service, Transport};
use seqtide_tests::bench::figure::{Figure, Required};
use seqtide_tests::bench::{current_thread, durable_streams};
use tokio::runtime::Runtime;

use crate::seqtide::Seqtide;

/// Two heartbeats of each.
const ASKED: Idle = Idle { subscribers: 10_000, length: Duration::from_secs(60) };
const HEARTBEAT_MS: u64 = 30_000;
/// `durable-streams` ends each feed after a minute.
const ASKED_OF_PEER: Idle = Idle { length: Duration::from_secs(10), ..ASKED };
/// Most anonymous memory of each, in bytes, and processor time of all, of a core's.
const BYTES_MAX: f64 = 800.0;
const CPU_PERCENT_MAX: f64 = 2.0;

pub fn measure_all() -> Vec<Figure> {
    open_files::allow_connections(ASKED.subscribers).expect("open files");
    let runtime = current_thread();
    let mut figures = Vec::new();
    for (name, transport) in [("sse", Transport::Sse), ("websocket", Transport::Websocket), ("lines", Transport::Lines)]
    {
        let seqtide = Seqtide::now(&runtime);
        let idled = wait(&runtime, name, &seqtide.beating(transport, HEARTBEAT_MS), &ASKED);
        assert!(idled.heartbeats >= ASKED.subscribers as u64, "{name}: {} heartbeats", idled.heartbeats);
        let required = [Required::AtMost(BYTES_MAX), Required::AtMost(CPU_PERCENT_MAX)];
        figures.extend(told(&format!("seqtide, {name}"), &idled, required));
    }
    let peer = durable_streams::start();
    let idled = wait(&runtime, peer.name, &peer.service, &ASKED_OF_PEER);
    figures.extend(told(peer.name, &idled, [Required::Nothing; 2]));
    figures
}

fn wait(runtime: &Runtime, what: &str, service: &Service, asked: &Idle) -> Idled {
    eprintln!("idle: {} subscribers, {what}", asked.subscribers);
    let idled = runtime.block_on(idle::run(service, asked)).expect("idle subscribers");
    assert_eq!(idled.feeds_ended, 0, "{what}: feeds that ended");
    idled
}

fn told(name: &str, idled: &Idled, [bytes, cpu]: [Required; 2]) -> [Figure; 2] {
    let figure = |what, value, unit, required| Figure { what: format!("idle, {name}: {what}"), value, unit, required };
    [
        figure("anonymous memory each", idled.anonymous_bytes_each, "bytes", bytes),
        figure("CPU, of a core", 100.0 * idled.cpu_share, "%", cpu),
    ]
}
