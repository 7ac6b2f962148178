//! When a load with a pace sends, and what it says of that.

use std::time::Duration;

use seqtide_bench::current_thread;
use seqtide_bench::load::{self, Load, Pace};
use seqtide_bench::service::Publish;
use seqtide_bench::writers::Inserts;

use crate::fake::{Fake, Then, created};

const SHORT: Duration = Duration::from_millis(100);

/// So many connections that write at so many requests a second over all of them, to a server that answers; how many
/// connections it has seen.
fn paced(then: Then, connections: usize, rate: f64, length: Duration) -> (Load, usize) {
    let publish = Publish::Put("/db".to_owned());
    let mut senders: Vec<Inserts> =
        (0..connections).map(|place| Inserts::new(&publish, 0, place, connections)).collect();
    let runtime = current_thread().expect("a runtime");
    runtime.block_on(async {
        let fake = Fake::serve(then, |_| created("{}")).await;
        let load = load::run(fake.address, &mut senders, Pace::PerSecond(rate), length).await.expect("a load");
        (load, fake.connections())
    })
}

#[test]
fn a_connection_is_opened_when_its_first_request_is_due() {
    let (load, connections) = paced(Then::Open, 64, 1e-2, SHORT);
    assert_eq!((load.latency.count(), connections), (1, 1));
}

#[test]
fn a_connection_that_the_server_closed_while_it_rested_is_opened_anew() {
    let (load, connections) = paced(Then::Close, 1, 50.0, 5 * SHORT);
    assert_eq!(load.latency.count() + load.not_sent, 25);
    assert!(load.latency.count() > 1, "it goes on behind the first");
    assert_eq!(load.latency.count(), connections as u64);
}

#[test]
fn what_is_due_and_not_sent_by_the_end_is_told() {
    let (load, _) = paced(Then::Open, 2, 1e8, SHORT);
    assert_eq!(load.latency.count() + load.not_sent, 10_000_000);
    assert!(load.not_sent > 0, "nobody answers so many");
    let (load, _) = paced(Then::Open, 2, 1e-2, SHORT);
    assert_eq!((load.latency.count(), load.not_sent), (1, 0));
}

#[test]
fn a_load_that_is_answered_early_lasts_its_length_all_the_same() {
    let (load, _) = paced(Then::Open, 3, 1e-3, Duration::from_secs(1_000));
    assert_eq!((load.latency.count(), load.rate), (1, 1e-3));
}

#[test]
fn a_pace_at_which_the_second_request_is_never_due_sends_one() {
    for rate in [1e-20, f64::MIN_POSITIVE] {
        let (load, _) = paced(Then::Open, 2, rate, SHORT);
        assert_eq!(load.latency.count(), 1, "{rate} a second");
    }
}
