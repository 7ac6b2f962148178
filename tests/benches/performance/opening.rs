//! What opening a database takes after the server was killed at full load: from starting it to the first answered read.

use std::time::{Duration, Instant};

use seqtide_bench::connection::Connection;
use seqtide_bench::documents;
use seqtide_bench::load::{self, Pace};
use seqtide_bench::service::{Service, Transport};
use seqtide_bench::writers::Inserts;
use seqtide_tests::bench::figure::{Figure, Required};
use tokio::runtime::Runtime;

use crate::large::CONNECTIONS;
use crate::seqtide::Seqtide;

const KILLS: usize = 5;
/// How long the load goes on before each.
const LOAD: Duration = Duration::from_secs(5);
/// Longest time an opening may take, in seconds.
const SECS_MAX: f64 = 1.0;

/// The slowest of all openings. Writes new documents, numbered from `first` on.
pub fn measure(runtime: &Runtime, side: &mut Seqtide, first: u64) -> Figure {
    let mut next = first;
    let mut slowest: f64 = 0.0;
    for _ in 0..KILLS {
        let acknowledged = runtime.block_on(kill_at_full_load(side, &mut next));
        let started = Instant::now();
        side.server.restart_on_same_port_and_data();
        runtime.block_on(async {
            let mut connection = Connection::open(side.server.address()).await.expect("a connection");
            for (read, number) in acknowledged.into_iter().enumerate() {
                let path = format!("/db/{}", documents::id(number));
                connection.request("GET", &path, "").await.expect("what was acknowledged");
                if read == 0 {
                    slowest = slowest.max(started.elapsed().as_secs_f64());
                }
            }
        });
    }
    let what = format!("{} opened after a kill, slowest", side.name);
    Figure { what, value: slowest, unit: "s", required: Required::AtMost(SECS_MAX) }
}

/// Kills the server while every connection waits for an answer; the last document that each had acknowledged.
async fn kill_at_full_load(side: &mut Seqtide, next: &mut u64) -> Vec<u64> {
    let Service { publish, .. } = side.service(Transport::Sse);
    let mut senders: Vec<Inserts> =
        (0..CONNECTIONS).map(|place| Inserts::new(&publish, *next, place, CONNECTIONS)).collect();
    let load = load::run(side.server.address(), &mut senders, Pace::AsAnswered, Duration::MAX);
    let kill = async {
        tokio::time::sleep(LOAD).await;
        side.server.kill();
    };
    tokio::select! {
        ended = load => panic!("it should go on until it is dropped: {:?}", ended.err()),
        () = kill => {}
    }
    *next = senders.iter().map(Inserts::end).max().expect("there are connections");
    senders.iter().map(|sender| sender.acknowledged.expect("a write that was answered")).collect()
}
