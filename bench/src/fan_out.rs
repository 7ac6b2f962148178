//! Writers and subscribers: every document that is written goes to everybody who listens.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use crate::Error;
use crate::feed::{self, Feed, Reader, Room};
use crate::latency::Latency;
use crate::load::{self, Load, Pace, Sender};
use crate::process::{Process, Usage, watched};
use crate::report::Report;
use crate::rows::Documents;
use crate::service::Service;
use crate::tally::{Arrival, Tally};
use crate::writers::Inserts;

/// How often it is looked whether everything has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct FanOut {
    /// Open feeds.
    pub subscribers: usize,
    /// Connections that write single documents, each waiting for its answer.
    pub writers: usize,
    /// When they write.
    pub pace: Pace,
    /// How long they write.
    pub length: Duration,
    /// How long what was written may take to arrive once nothing more is.
    pub patience: Duration,
}

/// What came of it.
pub struct Fanned {
    /// Documents that were acknowledged, and how fast.
    pub writes: Load,
    /// Documents that arrived, at all subscribers together.
    pub deliveries: u64,
    /// From the first write to the last arrival, in seconds; where they are paced, no less than they were to last.
    pub secs: f64,
    /// From sending a document to its arrival.
    pub receipt: Latency,
    /// Documents that were acknowledged and did not arrive in time, at all subscribers together.
    pub lost: u64,
    /// Documents that arrived once more.
    pub doubled: u64,
    /// Documents that arrived behind one that came after them.
    pub misordered: u64,
    /// Documents that arrived and that nobody had written; they count as nothing else.
    pub unwritten: u64,
    /// Feeds that ended by themselves.
    pub feeds_ended: u64,
    /// What the server took, where its process is known.
    pub usage: Option<Usage>,
}

impl Fanned {
    /// Documents that arrived a second.
    pub fn rate(&self) -> f64 {
        if self.secs > 0.0 { self.deliveries as f64 / self.secs } else { 0.0 }
    }

    /// Documents that arrived for each second of the server's processor time, where that is known.
    pub fn rate_of_cpu(&self) -> Option<f64> {
        self.usage.filter(|usage| usage.cpu_secs > 0.0).map(|usage| self.deliveries as f64 / usage.cpu_secs)
    }

    /// Whether every subscriber got everything, once and in order.
    pub fn is_faultless(&self) -> bool {
        self.fault().is_none()
    }

    /// What went wrong, if anything did.
    pub fn fault(&self) -> Option<&'static str> {
        match ([self.lost, self.doubled, self.misordered, self.unwritten], self.feeds_ended) {
            ([0, 0, 0, 0], 0) => None,
            ([0, 0, 0, 0], _) => Some(feed::ENDED),
            _ => Some("not everything arrived once and in order"),
        }
    }

    /// For people and programs.
    pub fn report(&self, asked: &FanOut) -> Report {
        let paced = match asked.pace {
            Pace::AsAnswered => None,
            Pace::PerSecond(rate) => Some(rate),
        };
        Report::of("fan-out")
            .with("subscribers", asked.subscribers)
            .with("writers", asked.writers)
            .with("paced_per_sec", paced)
            .with("secs", self.secs)
            .with("acknowledged", self.writes.latency.count())
            .with("acknowledged_per_sec", self.writes.rate)
            .with("not_sent", self.writes.not_sent)
            .with_latency("acknowledged", &self.writes.latency)
            .with("deliveries", self.deliveries)
            .with("deliveries_per_sec", self.rate())
            .with_latency("received", &self.receipt)
            .with("lost", self.lost)
            .with("doubled", self.doubled)
            .with("misordered", self.misordered)
            .with("unwritten", self.unwritten)
            .with("feeds_ended", self.feeds_ended)
            .with("deliveries_per_server_cpu_sec", self.rate_of_cpu())
            .with_usage(self.usage)
    }
}

/// Opens the feeds, writes, and waits until everything that was acknowledged has arrived.
///
/// # Errors
/// When feeds cannot be opened, a write fails, or none was asked for in the time.
pub async fn run(service: &Service, asked: &FanOut) -> Result<Fanned, Error> {
    let audience = Rc::new(Audience::new(service, asked)?);
    LocalSet::new().run_until(measure(service, asked, &audience)).await
}

async fn measure(service: &Service, asked: &FanOut, audience: &Rc<Audience>) -> Result<Fanned, Error> {
    let feeds = feed::open_many(service.address, &service.feed, asked.subscribers, &audience.room).await?;
    let epoch = Instant::now();
    audience.epoch.set(epoch);
    for (place, feed) in feeds.into_iter().enumerate() {
        spawn_local(listen(feed, place, Rc::clone(audience)));
    }
    let writer = |(place, sent)| Writer {
        inserts: Inserts::new(&service.publish, 0, place, asked.writers).stamped_from(epoch),
        sent,
    };
    let mut writers: Vec<Writer> = audience.sent.iter().enumerate().map(writer).collect();
    let load = async {
        let writes = load::run(service.address, &mut writers, asked.pace, asked.length).await?.of_some()?;
        audience.wait_for_all(writes.latency.count(), asked.patience).await;
        Ok(writes)
    };
    let (writes, usage) = watched(service.pid.map(Process), load).await?;
    let written = writes.latency.count();
    Ok(Fanned {
        deliveries: audience.distinct.get() + audience.doubled.get(),
        secs: asked.pace.lasted(asked.length, Duration::from_micros(audience.last_micros.get())).as_secs_f64(),
        receipt: audience.receipt.borrow().clone(),
        lost: audience.tallies.iter().map(|tally| tally.borrow().lost(written)).sum(),
        doubled: audience.doubled.get(),
        misordered: audience.misordered.get(),
        unwritten: audience.unwritten.get(),
        feeds_ended: audience.feeds_ended.get(),
        writes,
        usage,
    })
}

/// A writer that tells how many documents it has sent.
struct Writer<'a> {
    inserts: Inserts<'a>,
    sent: &'a Cell<u64>,
}

impl Sender for Writer<'_> {
    fn next(&mut self, at: Instant) -> Option<&[u8]> {
        self.sent.set(self.sent.get() + 1);
        self.inserts.next(at)
    }

    fn answered(&mut self, answer: &[u8]) -> Result<(), Error> {
        self.inserts.answered(answer)
    }
}

/// Reads a feed until it ends, or until nobody waits for it any more.
async fn listen(mut feed: Feed, place: usize, audience: Rc<Audience>) {
    let mut subscriber = Subscriber { place, audience: &audience };
    while let Ok(true) = feed.read(&audience.room, &mut subscriber).await {}
    audience.feeds_ended.set(audience.feeds_ended.get() + 1);
}

/// What all subscribers got.
struct Audience {
    room: Room,
    documents: Documents,
    /// When the times of documents begin.
    epoch: Cell<Instant>,
    /// How many documents each writer has sent.
    sent: Vec<Cell<u64>>,
    tallies: Vec<RefCell<Tally>>,
    receipt: RefCell<Latency>,
    distinct: Cell<u64>,
    doubled: Cell<u64>,
    misordered: Cell<u64>,
    unwritten: Cell<u64>,
    /// When the last document came that was written.
    last_micros: Cell<u64>,
    feeds_ended: Cell<u64>,
}

impl Audience {
    fn new(service: &Service, asked: &FanOut) -> Result<Audience, Error> {
        Ok(Audience {
            room: Room::default(),
            documents: Documents::new(service.feed.has_sequences),
            epoch: Cell::new(Instant::now()),
            sent: vec![Cell::default(); asked.writers],
            tallies: (0..asked.subscribers).map(|_| RefCell::new(Tally::new(asked.writers))).collect(),
            receipt: RefCell::new(Latency::new()?),
            distinct: Cell::default(),
            doubled: Cell::default(),
            misordered: Cell::default(),
            unwritten: Cell::default(),
            last_micros: Cell::default(),
            feeds_ended: Cell::default(),
        })
    }

    async fn wait_for_all(&self, written: u64, patience: Duration) {
        let expected = written * self.tallies.len() as u64;
        let begun = Instant::now();
        while self.distinct.get() < expected && begun.elapsed() < patience {
            sleep(LOOK_EVERY).await;
        }
    }
}

/// One of them.
struct Subscriber<'a> {
    place: usize,
    audience: &'a Audience,
}

impl Reader for Subscriber<'_> {
    fn take(&mut self, bytes: &[u8]) -> usize {
        let Audience { documents, epoch, sent, distinct, doubled, misordered, unwritten, last_micros, .. } =
            self.audience;
        let now = epoch.get().elapsed().as_micros() as u64;
        let mut tally = self.audience.tallies[self.place].borrow_mut();
        let mut receipt = self.audience.receipt.borrow_mut();
        let one_more = |count: &Cell<u64>| count.set(count.get() + 1);
        documents.take(bytes, |stamp, seq| {
            let arrival = tally.note(stamp.number, seq, sent);
            if arrival == Arrival::Unwritten {
                return one_more(unwritten);
            }
            last_micros.set(now);
            if arrival == Arrival::Doubled {
                return one_more(doubled);
            }
            if arrival == Arrival::Misordered {
                one_more(misordered);
            }
            one_more(distinct);
            receipt.add_micros(now.saturating_sub(stamp.micros));
        })
    }
}
