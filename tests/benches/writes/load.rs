//! Closed loops: connections that stay open, each with one request under way, all on one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use seqtide_tests::connection::Connection;
use tokio::task::unconstrained;

/// What one connection sends.
pub trait Sender {
    /// The bytes of the next request; none when all were sent.
    fn next(&mut self) -> Option<&[u8]>;

    /// Takes the body of its answer.
    fn answered(&mut self, answer: &[u8]);
}

/// What a load came to.
pub struct Load {
    /// Requests answered a second.
    pub rate: f64,
    /// How long each took, in milliseconds, shortest first.
    millis: Vec<f32>,
}

impl Load {
    /// The time that so much of the requests took at most: 0.99 gives the slowest of a hundred.
    pub fn millis(&self, share: f64) -> f64 {
        f64::from(self.millis[((self.millis.len() - 1) as f64 * share).round() as usize])
    }
}

/// Sends for so long, or until all is sent, over a connection for each sender.
pub async fn run<S: Sender>(address: SocketAddr, senders: &mut [S], length: Duration) -> Load {
    let connections = join_all(senders.iter().map(|_| Connection::open(address))).await;
    let started = Instant::now();
    let loops =
        connections.into_iter().zip(senders).map(|(connection, sender)| send(connection, sender, started, length));
    let loops: FuturesUnordered<_> = loops.collect();
    // As one task they would share one task's budget, and be put off when it is spent.
    let mut millis: Vec<f32> = unconstrained(loops.concat()).await;
    let rate = millis.len() as f64 / started.elapsed().as_secs_f64();
    millis.sort_by(f32::total_cmp);
    Load { rate, millis }
}

async fn send(mut connection: Connection, sender: &mut impl Sender, started: Instant, length: Duration) -> Vec<f32> {
    let mut millis = Vec::new();
    let mut sent = Instant::now();
    while sent.duration_since(started) < length {
        let Some(request) = sender.next() else { break };
        let answer = connection.exchange(request).await;
        let answered = Instant::now();
        sender.answered(answer);
        millis.push(1e3 * answered.duration_since(sent).as_secs_f32());
        sent = Instant::now();
    }
    millis
}
