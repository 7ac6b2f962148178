//! Subscribers that wait: what each costs the server while nothing is written.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use memchr::memmem::Finder;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use crate::Error;
use crate::feed::{self, Feed, Reader, Room, without};
use crate::process::Process;
use crate::report::Report;
use crate::service::Service;

/// How Seqtide's heartbeats say what they are.
const HEARTBEAT: &[u8] = br#"{"event":"heartbeat""#;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    /// Open feeds.
    pub subscribers: usize,
    /// How long they wait, once all are open.
    pub length: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub struct Idled {
    /// Anonymous memory that the server had more, for each subscriber, in bytes.
    pub anonymous_bytes_each: f64,
    /// The server's processor time, of one core's.
    pub cpu_share: f64,
    /// Heartbeats that came.
    pub heartbeats: u64,
    /// Feeds that ended by themselves.
    pub feeds_ended: u64,
}

impl Idled {
    /// What went wrong, if anything did.
    pub fn fault(&self) -> Option<&'static str> {
        (self.feeds_ended > 0).then_some(feed::ENDED)
    }

    /// For people and programs.
    pub fn report(&self, asked: &Idle) -> Report {
        Report::of("idle")
            .with("subscribers", asked.subscribers)
            .with("secs", asked.length.as_secs_f64())
            .with("server_anonymous_bytes_each", self.anonymous_bytes_each)
            .with("server_cpu_percent_of_a_core", 100.0 * self.cpu_share)
            .with("heartbeats", self.heartbeats)
            .with("feeds_ended", self.feeds_ended)
    }
}

/// Opens the feeds and waits.
///
/// # Errors
/// When the server's process is not known, or feeds cannot be opened.
pub async fn run(service: &Service, asked: &Idle) -> Result<Idled, Error> {
    let process = service.pid.map(Process).ok_or_else(|| {
        Error::Usage("what idle subscribers cost is asked of the server's process: name it with --pid".to_owned())
    })?;
    LocalSet::new().run_until(measure(service, asked, process)).await
}

async fn measure(service: &Service, asked: &Idle, process: Process) -> Result<Idled, Error> {
    let waiting = Rc::new(Waiting::default());
    let memory_before = process.anonymous_bytes()?;
    let feeds = feed::open_many(service.address, &service.feed, asked.subscribers, &waiting.room).await?;
    for feed in feeds {
        spawn_local(listen(feed, Rc::clone(&waiting)));
    }
    let cpu_before = process.cpu_secs()?;
    sleep(asked.length).await;
    let cpu_secs = process.cpu_secs()? - cpu_before;
    let memory = process.anonymous_bytes()?.saturating_sub(memory_before);
    Ok(Idled {
        anonymous_bytes_each: memory as f64 / asked.subscribers as f64,
        cpu_share: cpu_secs / asked.length.as_secs_f64(),
        heartbeats: waiting.heartbeats.get(),
        feeds_ended: waiting.feeds_ended.get(),
    })
}

async fn listen(mut feed: Feed, waiting: Rc<Waiting>) {
    let mut heartbeats = Heartbeats { sign: Finder::new(HEARTBEAT), came: &waiting.heartbeats };
    while let Ok(true) = feed.read(&waiting.room, &mut heartbeats).await {}
    waiting.feeds_ended.set(waiting.feeds_ended.get() + 1);
}

/// What came to all of them.
#[derive(Default)]
struct Waiting {
    room: Room,
    heartbeats: Cell<u64>,
    feeds_ended: Cell<u64>,
}

/// Counts heartbeats.
struct Heartbeats<'a> {
    sign: Finder<'static>,
    came: &'a Cell<u64>,
}

impl Reader for Heartbeats<'_> {
    fn take(&mut self, bytes: &[u8]) -> usize {
        self.came.set(self.came.get() + self.sign.find_iter(bytes).count() as u64);
        without(HEARTBEAT, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_that_end_are_told_of_as_that() {
        let idled = |feeds_ended| Idled { anonymous_bytes_each: 0.0, cpu_share: 0.0, heartbeats: 0, feeds_ended };
        assert_eq!((idled(0).fault(), idled(1).fault()), (None, Some("feeds ended by themselves")));
    }
}
