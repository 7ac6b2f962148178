//! `seqtide bench`: loads from the command line, against a server that is there or one of its own.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use futures_util::{Stream, StreamExt};
use serde_json::json;

use crate::connection::Connection;
use crate::fan_out::{self, FanOut};
use crate::idle::{self, Idle};
use crate::load::Pace;
use crate::own_server::OwnServer;
use crate::report::Report;
use crate::service::{Seqtide, Transport};
use crate::writes::{self, Writes};
use crate::{Error, backfill, current_thread, open_files};

/// What is to be measured, and of whom.
#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    load: Asked,
}

#[derive(Debug, Subcommand)]
enum Asked {
    /// Writers of single documents and subscribers that get all of them
    ///
    /// Each subscriber counts what is lost, doubled and out of order, and how long a document took from being sent to
    /// its arrival. Exits with 1 where anything was lost, doubled or out of order.
    FanOut {
        /// Open feeds
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
        subscribers: u32,
        /// Connections that write, each waiting for its answer
        #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
        writers: u32,
        /// What carries the feeds
        #[arg(long, value_enum, default_value_t = Transport::Sse)]
        transport: Transport,
        #[command(flatten)]
        pace: Paced,
        /// How long is written, in seconds
        #[arg(long, default_value_t = 10.0, value_parser = above_zero)]
        secs: f64,
        /// How long what was written may take to arrive, in seconds
        #[arg(long, default_value_t = 30.0, value_parser = above_zero)]
        patience_secs: f64,
        #[command(flatten)]
        common: Common,
    },
    /// Durable writes of new documents: acknowledgements a second, and how long each took
    Writes {
        /// Connections that write, each waiting for its answer
        #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
        connections: u32,
        /// Documents of a request: one is a PUT, more are a _bulk_docs
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
        batch: u64,
        #[command(flatten)]
        pace: Paced,
        /// How long is written, in seconds
        #[arg(long, default_value_t = 10.0, value_parser = above_zero)]
        secs: f64,
        #[command(flatten)]
        common: Common,
    },
    /// One reader of _changes from the beginning, without and with documents: rows and bytes a second
    ///
    /// Exits with 1 where a reading lacked rows, had more than there are, or had them out of order.
    Backfill {
        /// Documents that are written beforehand
        #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
        documents: u64,
        /// How often is read, each way; of speeds the median counts, of lost rows the worst
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        #[command(flatten)]
        common: Common,
    },
    /// Subscribers to whom nothing is sent but heartbeats: memory each, and the server's processor time
    ///
    /// A server that is there must be on this machine and named by --pid, too.
    Idle {
        /// Open feeds
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        subscribers: u32,
        /// What carries the feeds
        #[arg(long, value_enum, default_value_t = Transport::Sse)]
        transport: Transport,
        /// Time between heartbeats, in milliseconds
        #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
        heartbeat_ms: u64,
        /// How long they wait once all are open, in seconds
        #[arg(long, default_value_t = 60.0, value_parser = above_zero)]
        secs: f64,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
struct Paced {
    /// Documents or requests a second over all connections; without it each is sent once the one before was answered
    #[arg(long, value_parser = above_zero)]
    rate: Option<f64>,
}

impl Paced {
    fn pace(&self) -> Pace {
        self.rate.map_or(Pace::AsAnswered, Pace::PerSecond)
    }
}

#[derive(Debug, Args)]
struct Common {
    /// A Seqtide that is there; without it one is started on a temporary folder, with the settings of the environment
    #[arg(long, value_name = "IP:PORT")]
    address: Option<SocketAddr>,
    /// The process of that server, where it is on this machine: its processor time and memory are measured
    #[arg(long, requires = "address")]
    pid: Option<u32>,
    /// The database that is made for the load and deleted behind it
    #[arg(long, default_value = "seqtide-bench")]
    database: String,
    /// One line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// A number above zero.
fn above_zero(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1e9 => Ok(value),
        _ => Err("it should be a number above 0, and below 1,000,000,000".to_owned()),
    }
}

/// Measures and prints, until it is done or, by `terminated`, asked to end: then nothing of its own is left behind.
/// 0: all is well; 1: something went wrong under the load, such as a document that was lost, or nothing was measured.
pub fn run<S: Stream<Item = ()> + Unpin>(bench: &Bench, terminated: impl FnOnce() -> io::Result<S>) -> ExitCode {
    let measured = current_thread().and_then(|runtime| runtime.block_on(measure(&bench.load, terminated)));
    let Measured { report, mut faults } = measured.unwrap_or_else(Measured::failed);
    if let Some(report) = report {
        let text = if bench.load.common().json { report.json() + "\n" } else { report.table() };
        faults.extend(print(&text).err().map(|why| format!("the report could not be written: {why}")));
    }
    for fault in &faults {
        eprintln!("seqtide: {fault}");
    }
    ExitCode::from(u8::from(!faults.is_empty()))
}

/// Prints to standard output, whose reader may have gone away: then nobody wants it.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

impl Asked {
    fn common(&self) -> &Common {
        match self {
            Asked::FanOut { common, .. }
            | Asked::Writes { common, .. }
            | Asked::Backfill { common, .. }
            | Asked::Idle { common, .. } => common,
        }
    }

    /// How many are open at once.
    fn connections(&self) -> usize {
        let connections = match self {
            Asked::FanOut { subscribers, writers, .. } => subscribers.saturating_add(*writers),
            Asked::Writes { connections, .. } => *connections,
            Asked::Backfill { .. } => backfill::FILLING as u32,
            Asked::Idle { subscribers, .. } => *subscribers,
        };
        connections as usize
    }

    /// What it asks of the server that listens there, with this process.
    fn of(&self, address: SocketAddr, pid: Option<u32>) -> Seqtide<'_> {
        let (transport, heartbeat_ms) = match self {
            Asked::FanOut { transport, .. } => (*transport, NO_HEARTBEATS_MS),
            Asked::Idle { transport, heartbeat_ms, .. } => (*transport, *heartbeat_ms),
            Asked::Writes { .. } | Asked::Backfill { .. } => (Transport::Sse, NO_HEARTBEATS_MS),
        };
        Seqtide { address, pid, database: &self.common().database, transport, heartbeat_ms }
    }
}

/// Longer than a load takes, in milliseconds.
const NO_HEARTBEATS_MS: u64 = 3_600_000;

/// What a load came to.
struct Measured {
    /// None where the load failed.
    report: Option<Report>,
    /// What went wrong.
    faults: Vec<String>,
}

impl Measured {
    fn new(report: Report, fault: Option<&str>) -> Measured {
        Measured { report: Some(report), faults: fault.into_iter().map(str::to_owned).collect() }
    }

    fn failed(why: Error) -> Measured {
        Measured { report: None, faults: vec![why.to_string()] }
    }
}

async fn measure<S: Stream<Item = ()> + Unpin>(
    asked: &Asked,
    terminated: impl FnOnce() -> io::Result<S>,
) -> Result<Measured, Error> {
    let mut terminated = terminated().map_err(|source| Error::io("signals", source))?;
    // First: a server that is started gets what is allowed here.
    open_files::allow_connections(asked.connections())?;
    match asked.common().address {
        Some(address) => measure_there(asked, address, &mut terminated).await,
        None => measure_own(asked, &mut terminated).await,
    }
}

/// On a server of its own, whose data nobody keeps.
async fn measure_own(asked: &Asked, mut terminated: impl Stream<Item = ()> + Unpin) -> Result<Measured, Error> {
    let program = std::env::current_exe().map_err(|source| Error::io("the path of this program", source))?;
    let own = unless(&mut terminated, OwnServer::start(&program)).await?;
    let seqtide = asked.of(own.address, Some(own.pid()));
    let measured = unless(&mut terminated, async {
        seqtide.create(Connection::open(own.address).await?).await?;
        load(asked, &seqtide).await
    });
    let measured = measured.await;
    own.end(terminated.next()).await;
    measured
}

/// On a server that is there, which keeps nothing of it.
async fn measure_there(
    asked: &Asked,
    address: SocketAddr,
    mut terminated: impl Stream<Item = ()> + Unpin,
) -> Result<Measured, Error> {
    let seqtide = asked.of(address, asked.common().pid);
    let connection = unless(&mut terminated, Connection::open(address)).await?;
    // A database is made, and its deletion asked for, whether the answer is waited for or not: a signal that comes
    // meanwhile ends the load, and one that comes behind it the wait.
    seqtide.create(connection).await?;
    let measured = unless(&mut terminated, load(asked, &seqtide)).await;
    let deleted = seqtide.delete(terminated.next()).await;
    let mut measured = measured.unwrap_or_else(Measured::failed);
    measured.faults.extend(deleted.err().map(|why| why.to_string()));
    Ok(measured)
}

/// What something comes to, unless it is interrupted.
async fn unless<T>(
    mut interrupted: impl Stream<Item = ()> + Unpin,
    done: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        // What came while nobody looked counts before anything is begun.
        biased;
        _ = interrupted.next() => Err(Error::Interrupted("nothing was measured".to_owned())),
        done = done => done,
    }
}

async fn load(asked: &Asked, seqtide: &Seqtide<'_>) -> Result<Measured, Error> {
    let length = Duration::from_secs_f64;
    match asked {
        Asked::FanOut { subscribers, writers, pace, secs, patience_secs, .. } => {
            let asked = FanOut {
                subscribers: *subscribers as usize,
                writers: *writers as usize,
                pace: pace.pace(),
                length: length(*secs),
                patience: length(*patience_secs),
            };
            let fanned = fan_out::run(&seqtide.service(), &asked).await?;
            let report = fanned.report(&asked).with("transport", json!(seqtide.transport));
            Ok(Measured::new(report, fanned.fault()))
        }
        Asked::Writes { connections, batch, pace, secs, .. } => {
            let (connections, pace) = (*connections as usize, pace.pace());
            let asked = Writes { connections, batch: *batch, pace, length: length(*secs) };
            let written = writes::run(&seqtide.service(), seqtide.database, &asked).await?;
            Ok(Measured::new(written.report(&asked), None))
        }
        Asked::Backfill { documents, rounds, .. } => {
            let asked = backfill::Backfill { documents: *documents, rounds: *rounds as usize };
            let filled = backfill::run(seqtide.address, seqtide.database, &asked).await?;
            Ok(Measured::new(filled.report(&asked), filled.fault()))
        }
        Asked::Idle { subscribers, secs, .. } => {
            let asked = Idle { subscribers: *subscribers as usize, length: length(*secs) };
            let idled = idle::run(&seqtide.service(), &asked).await?;
            let report = idled.report(&asked).with("transport", json!(seqtide.transport));
            Ok(Measured::new(report, idled.fault()))
        }
    }
}
