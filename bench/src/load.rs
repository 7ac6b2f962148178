//! Loops of requests: connections that stay open, each with one request under way, all on one thread.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::stream::{FuturesUnordered, TryStreamExt};
use tokio::task::unconstrained;
use tokio::time::{sleep, sleep_until, timeout};

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

impl Pace {
    /// How long a load of this length lasted of which the last came after so long: one with a pace lasts to its end,
    /// where nothing may be due any more; any other sends to the end, or all there is.
    pub(crate) fn lasted(self, length: Duration, last: Duration) -> Duration {
        match self {
            Pace::AsAnswered => last,
            Pace::PerSecond(_) => last.max(length),
        }
    }
}

/// What a load came to.
pub struct Load {
    /// Requests answered a second.
    pub rate: f64,
    /// How long each took.
    pub latency: Latency,
    /// Requests that were due and not sent when the load was over: its pace was not kept.
    pub not_sent: u64,
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
/// When a request fails, or is not answered within half a minute of the end; without a pace, when nothing is answered
/// for so long.
pub async fn run<S: Sender>(
    address: SocketAddr,
    senders: &mut [S],
    pace: Pace,
    length: Duration,
) -> Result<Load, Error> {
    let mut lines: Vec<Line> = senders.iter().map(|_| Line { address, connection: None }).collect();
    if pace == Pace::AsAnswered {
        try_join_all(lines.iter_mut().map(Line::open)).await?;
    }
    let latency = RefCell::new(Latency::new()?);
    let (count, started) = (senders.len(), Instant::now());
    let loops: FuturesUnordered<_> = lines
        .into_iter()
        .zip(senders)
        .enumerate()
        .map(|(place, (line, sender))| send(line, sender, Schedule { pace, started, length, place, count }, &latency))
        .collect();
    // As one task they would share one task's budget, and be put off when it is spent.
    let all = unconstrained(loops.try_fold(0, async |all, not_sent| Ok(all + not_sent)));
    let late = |what: &str| Error::Late { what: what.to_owned(), limit: PATIENCE };
    let not_sent = tokio::select! {
        biased;
        done = timeout(length.saturating_add(PATIENCE), all) => {
            done.map_err(|_elapsed| late("the answers to the last requests"))??
        }
        () = silence(pace, &latency) => return Err(late("the next answer")),
    };
    let lasted = pace.lasted(length, started.elapsed());
    let latency = latency.into_inner();
    Ok(Load { rate: latency.count() as f64 / lasted.as_secs_f64(), latency, not_sent })
}

/// Ready when nothing was answered for so long that somebody waits for.
async fn silence(pace: Pace, latency: &RefCell<Latency>) {
    let mut before = None;
    loop {
        let answered = Some(latency.borrow().count());
        // With a pace there may be nothing to be answered.
        if pace == Pace::AsAnswered && before == answered {
            return;
        }
        before = answered;
        sleep(PATIENCE).await;
    }
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
    fn is_over(&self) -> bool {
        self.started.elapsed() >= self.length
    }

    /// When the request of this number is due, at so many a second over all connections; none where that is after the
    /// end.
    fn due(&self, number: u64, rate: f64) -> Option<Instant> {
        if self.due_from(number) == 0 {
            return None;
        }
        let before = self.place as u64 + number * self.count as u64;
        self.started.checked_add(Duration::try_from_secs_f64(before as f64 / rate).ok()?)
    }

    /// How many requests are due before the end, from the one of this number on; where there is no pace, none is.
    fn due_from(&self, number: u64) -> u64 {
        let Pace::PerSecond(rate) = self.pace else { return 0 };
        let length = self.length.as_secs_f64();
        let all = (rate * length).ceil() as u64;
        // The product may be rounded up to one more than there are.
        let all = if all > 0 && (all - 1) as f64 / rate >= length { all - 1 } else { all };
        all.saturating_sub(self.place as u64).div_ceil(self.count as u64).saturating_sub(number)
    }
}

/// A sender's way to the server.
struct Line {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Line {
    /// The connection, opened where there is none.
    async fn open(&mut self) -> Result<&mut Connection, Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        Ok(self.connection.insert(connection))
    }

    /// The connection after a rest: no server waits for ever, neither for the first request nor for the next one.
    async fn open_after_rest(&mut self) -> Result<&mut Connection, Error> {
        self.connection.take_if(|connection| !connection.is_open());
        self.open().await
    }
}

/// How many requests were due and not sent.
async fn send(
    mut line: Line,
    sender: &mut impl Sender,
    schedule: Schedule,
    latency: &RefCell<Latency>,
) -> Result<u64, Error> {
    let mut number = 0;
    while !schedule.is_over() {
        let (connection, at) = match schedule.pace {
            Pace::AsAnswered => (line.open().await?, Instant::now()),
            Pace::PerSecond(rate) => {
                let Some(due) = schedule.due(number, rate) else { break };
                let is_late = due < Instant::now();
                sleep_until(due.into()).await;
                let connection = line.open_after_rest().await?;
                // What the timer is late by, and what a new connection takes, is no fault of the server's.
                (connection, if is_late { due } else { Instant::now() })
            }
        };
        let Some(request) = sender.next(at) else { return Ok(0) };
        let answer = connection.exchange(request).await?;
        latency.borrow_mut().add(at.elapsed());
        sender.answered(answer)?;
        number += 1;
    }
    Ok(schedule.due_from(number))
}
