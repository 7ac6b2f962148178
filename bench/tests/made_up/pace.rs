//! When a load with a pace sends, and what it says of that.

use std::time::{Duration, Instant};

use seqtide_bench::load::{self, Load, Pace, Sender};
use seqtide_bench::service::Publish;
use seqtide_bench::writers::Inserts;
use seqtide_bench::{Error, current_thread};

use crate::fake::{Fake, Then, created};

const SHORT: Duration = Duration::from_millis(100);

/// Longer than any test: what is due is sent, however busy the machine is.
const LONG: Duration = Duration::from_secs(1_000);

/// Sends no more than so many.
struct Few<'a> {
    inserts: Inserts<'a>,
    left: u64,
}

impl Sender for Few<'_> {
    fn next(&mut self, at: Instant) -> Option<&[u8]> {
        self.left = self.left.checked_sub(1)?;
        self.inserts.next(at)
    }

    fn answered(&mut self, answer: &[u8]) -> Result<(), Error> {
        self.inserts.answered(answer)
    }
}

/// So many connections that write at so many requests a second over all of them, to a server that answers; how many
/// connections it has seen.
fn paced(then: Then, connections: usize, rate: f64, length: Duration) -> (Load, usize) {
    few(u64::MAX, then, connections, rate, length)
}

/// The same, with so many requests of each at most.
fn few(each: u64, then: Then, connections: usize, rate: f64, length: Duration) -> (Load, usize) {
    let publish = Publish::Put("/db".to_owned());
    let inserts = |place| Inserts::new(&publish, 0, place, connections);
    let mut senders: Vec<Few> = (0..connections).map(|place| Few { inserts: inserts(place), left: each }).collect();
    let runtime = current_thread().expect("a runtime");
    runtime.block_on(async {
        let fake = Fake::serve(then, |_| created("{}")).await;
        let load = load::run(fake.address, &mut senders, Pace::PerSecond(rate), length).await.expect("a load");
        (load, fake.connections())
    })
}

#[test]
fn a_connection_is_opened_when_its_first_request_is_due() {
    let (load, connections) = paced(Then::Open, 64, 1e-3, LONG);
    assert_eq!((load.latency.count(), connections), (1, 1));
}

#[test]
fn a_connection_that_the_server_closed_while_it_rested_is_opened_anew() {
    let (load, connections) = few(5, Then::Close, 1, 50.0, LONG);
    assert_eq!((load.latency.count(), connections), (5, 5));
}

#[test]
fn what_is_due_and_not_sent_by_the_end_is_told() {
    let (load, _) = paced(Then::Open, 2, 1e8, SHORT);
    assert_eq!(load.latency.count() + load.not_sent, 10_000_000);
    assert!(load.not_sent > 0, "nobody answers so many");
    let (load, _) = paced(Then::Open, 2, 1e-3, LONG);
    assert_eq!((load.latency.count(), load.not_sent), (1, 0));
    // As floating numbers 100 · 1.1 is more than 110.
    let (load, _) = paced(Then::Open, 1, 100.0, Duration::from_millis(1_100));
    assert_eq!(load.latency.count() + load.not_sent, 110);
}

#[test]
fn a_load_that_is_answered_early_lasts_its_length_all_the_same() {
    let (load, _) = paced(Then::Open, 3, 1e-3, LONG);
    assert_eq!((load.latency.count(), load.rate), (1, 1e-3));
}

#[test]
fn a_pace_at_which_the_second_request_is_never_due_sends_one() {
    for rate in [1e-20, f64::MIN_POSITIVE] {
        let (load, _) = paced(Then::Open, 2, rate, LONG);
        assert_eq!(load.latency.count(), 1, "{rate} a second");
    }
}
