//! Durable writes: how many are acknowledged a second, and how long each takes.

use std::time::Duration;

use crate::Error;
use crate::load::{self, Load, Pace};
use crate::process::{Process, Usage, watched};
use crate::report::Report;
use crate::service::{Publish, Service};
use crate::writers::{Batches, Inserts};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Writes {
    /// Connections, each with one request under way.
    pub connections: usize,
    /// Documents of a request: one is a `PUT`, more are a `_bulk_docs`.
    pub batch: u64,
    /// When requests are sent.
    pub pace: Pace,
    /// How long.
    pub length: Duration,
}

/// What came of it.
pub struct Written {
    /// Requests that were answered, and how fast.
    pub requests: Load,
    /// What the server took, where its process is known.
    pub usage: Option<Usage>,
}

impl Written {
    /// For people and programs.
    pub fn report(&self, asked: &Writes) -> Report {
        Report::of("writes")
            .with("connections", asked.connections)
            .with("documents_a_request", asked.batch)
            .with("requests", self.requests.latency.count())
            .with("requests_per_sec", self.requests.rate)
            .with("documents_per_sec", self.requests.rate * asked.batch as f64)
            .with("not_sent", self.requests.not_sent)
            .with_latency("acknowledged", &self.requests.latency)
            .with_usage(self.usage)
    }
}

/// Writes new documents to a database of this name.
///
/// # Errors
/// When one is not written, or none was asked for in the time.
pub async fn run(service: &Service, database: &str, asked: &Writes) -> Result<Written, Error> {
    let Writes { connections, batch, pace, length } = *asked;
    let path = format!("/{database}");
    let process = service.pid.map(Process);
    let (requests, usage) = if batch == 1 {
        let publish = Publish::Put(path);
        let mut senders: Vec<Inserts> =
            (0..connections).map(|place| Inserts::new(&publish, 0, place, connections)).collect();
        watched(process, load::run(service.address, &mut senders, pace, length)).await?
    } else {
        let of_connection = |place| Batches::new(&path, batch, 0..u64::MAX, place, connections);
        let mut senders: Vec<Batches> = (0..connections).map(of_connection).collect();
        watched(process, load::run(service.address, &mut senders, pace, length)).await?
    };
    Ok(Written { requests: requests.of_some()?, usage })
}
