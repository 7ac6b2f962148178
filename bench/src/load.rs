//! Loops of requests: connections that stay open, each with one request under way, all on one thread.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::stream::{FuturesUnordered, TryStreamExt};
use tokio::task::unconstrained;
use tokio::time::{sleep_until, timeout};

use crate::Error;
use crate::connection::Connection;
use crate::latency::Latency;

/// How long the last answers may take once nothing more is sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one connection sends.
pub trait Sender {
    /// The bytes of the next request, which counts as sent at this time; none when all were sent.
    fn next(&mut self, at: Instant) -> Option<&[u8]>;

    /// Takes the body of its answer.
    ///
    /// # Errors
    /// When it is not what was asked for; the load then ends.
    fn answered(&mut self, answer: &[u8]) -> Result<(), Error>;
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each once the one before it on its connection was answered.
    AsAnswered,
    /// So many a second over all connections. One that is late because the one before it was answered late counts from
    /// when it should have been sent: who waits in front of a busy server waits for it, too.
    PerSecond(f64),
}

/// What a load came to.
pub struct Load {
    /// Requests answered a second.
    pub rate: f64,
    /// How long each took.
    pub latency: Latency,
}

impl Load {
    /// Itself, if anything was answered.
    ///
    /// # Errors
    /// When nothing was.
    pub fn of_some(self) -> Result<Load, Error> {
        if self.latency.count() > 0 { Ok(self) } else { Err(Error::Nothing) }
    }
}

/// Sends for so long, or until all is sent, over a connection for each sender.
///
/// # Errors
/// When a request fails, or is not answered within half a minute of the end.
pub async fn run<S: Sender>(
    address: SocketAddr,
    senders: &mut [S],
    pace: Pace,
    length: Duration,
) -> Result<Load, Error> {
    let connections = try_join_all(senders.iter().map(|_| Connection::open(address))).await?;
    let latency = RefCell::new(Latency::new()?);
    let (count, started) = (senders.len(), Instant::now());
    let loops: FuturesUnordered<_> = connections
        .into_iter()
        .zip(senders)
        .enumerate()
        .map(|(place, (connection, sender))| {
            send(connection, sender, Schedule { pace, started, length, place, count }, &latency)
        })
        .collect();
    // As one task they would share one task's budget, and be put off when it is spent.
    let all = unconstrained(loops.try_collect::<()>());
    let late = |_| Error::Late { what: "the answers to the last requests".to_owned(), limit: PATIENCE };
    timeout(length.saturating_add(PATIENCE), all).await.map_err(late)??;
    let latency = latency.into_inner();
    Ok(Load { rate: latency.count() as f64 / started.elapsed().as_secs_f64(), latency })
}

/// When one connection of many sends.
struct Schedule {
    pace: Pace,
    started: Instant,
    length: Duration,
    place: usize,
    count: usize,
}

impl Schedule {
    /// Waits until the request of this number is due; the time from which it counts, or none when it comes after the
    /// end.
    async fn wait(&self, number: u64) -> Option<Instant> {
        let mut at = Instant::now();
        if let Pace::PerSecond(rate) = self.pace {
            let before = self.place as u64 + number * self.count as u64;
            let due = self.started.checked_add(Duration::from_secs_f64(before as f64 / rate))?;
            if due.duration_since(self.started) < self.length && due > at {
                sleep_until(due.into()).await;
                // What the timer is late by is no fault of the server's.
                at = Instant::now();
            } else {
                at = due;
            }
        }
        (at.duration_since(self.started) < self.length).then_some(at)
    }
}

async fn send(
    mut connection: Connection,
    sender: &mut impl Sender,
    schedule: Schedule,
    latency: &RefCell<Latency>,
) -> Result<(), Error> {
    let mut number = 0;
    while let Some(at) = schedule.wait(number).await {
        let Some(request) = sender.next(at) else { break };
        let answer = connection.exchange(request).await?;
        latency.borrow_mut().add(at.elapsed());
        sender.answered(answer)?;
        number += 1;
    }
    Ok(())
}
