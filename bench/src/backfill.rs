//! Catching up: one reader of `_changes` from the beginning.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::memmem::Finder;

use crate::Error;
use crate::feed::{Feed, Reader, Room};
use crate::load::{self, Pace};
use crate::report::Report;
use crate::rows::ROW;
use crate::service::Transport;
use crate::writers::Batches;

/// Connections that write the documents beforehand, and documents of a request.
pub(crate) const FILLING: usize = 4;
const BATCH: u64 = 1_000;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Backfill {
    /// Documents in the database.
    pub documents: u64,
    /// How often it is read, each way.
    pub rounds: usize,
}

/// One reading.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// Changes that came.
    pub rows: u64,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// From sending the request to the end of its answer, in seconds.
    pub secs: f64,
}

impl Read {
    /// Changes a second.
    pub fn rows_per_sec(&self) -> f64 {
        self.rows as f64 / self.secs
    }

    /// Bytes a second.
    pub fn bytes_per_sec(&self) -> f64 {
        self.bytes as f64 / self.secs
    }
}

/// All readings of one way.
#[derive(Debug, Clone, Copy)]
pub struct Reads {
    /// The one of median length: how fast it is.
    pub median: Read,
    /// Changes that did not come, in the reading that lacks most.
    pub lost: u64,
    /// Changes beyond those that there are, in the reading that has most.
    pub surplus: u64,
}

impl Reads {
    /// Of so many changes; none where nothing was read.
    fn of(mut reads: Vec<Read>, documents: u64) -> Option<Reads> {
        let worst = |count: fn(u64, u64) -> u64| reads.iter().map(|read| count(read.rows, documents)).max();
        let lost = worst(|rows, documents| documents.saturating_sub(rows))?;
        let surplus = worst(u64::saturating_sub)?;
        reads.sort_by(|one, other| one.secs.total_cmp(&other.secs));
        Some(Reads { median: *reads.get(reads.len() / 2)?, lost, surplus })
    }
}

/// What came of it, without and with documents.
#[derive(Debug, Clone, Copy)]
pub struct Filled {
    /// Changes alone.
    pub changes: Reads,
    /// Changes with their documents.
    pub with_docs: Reads,
}

impl Filled {
    /// What went wrong, if anything did.
    pub fn fault(&self) -> Option<&'static str> {
        let is_whole = [self.changes, self.with_docs].iter().all(|reads| (reads.lost, reads.surplus) == (0, 0));
        (!is_whole).then_some("not every reading gave each row once")
    }

    /// For people and programs.
    pub fn report(&self, asked: &Backfill) -> Report {
        let report = Report::of("backfill").with("documents", asked.documents).with("rounds", asked.rounds);
        [("changes", &self.changes), ("with_docs", &self.with_docs)].into_iter().fold(report, |report, (way, reads)| {
            report
                .with(&format!("{way}_rows"), reads.median.rows)
                .with(&format!("{way}_rows_per_sec"), reads.median.rows_per_sec())
                .with(&format!("{way}_bytes_per_sec"), reads.median.bytes_per_sec())
                .with(&format!("{way}_lost"), reads.lost)
                .with(&format!("{way}_surplus"), reads.surplus)
        })
    }
}

/// Writes documents to a database that has none, and reads its changes from the beginning, the two ways in turn.
///
/// # Errors
/// When a document is not written, or a reading is cut short.
pub async fn run(address: SocketAddr, database: &str, asked: &Backfill) -> Result<Filled, Error> {
    fill(address, database, 0..asked.documents).await?;
    let room = Room::default();
    let (mut changes, mut with_docs) = (Vec::new(), Vec::new());
    for _ in 0..asked.rounds {
        changes.push(read(address, &format!("/{database}/_changes?since=0"), &room).await?);
        with_docs.push(read(address, &format!("/{database}/_changes?since=0&include_docs=true"), &room).await?);
    }
    match (Reads::of(changes, asked.documents), Reads::of(with_docs, asked.documents)) {
        (Some(changes), Some(with_docs)) => Ok(Filled { changes, with_docs }),
        _ => Err(Error::Usage("one round at least is needed".to_owned())),
    }
}

/// Writes the documents of these numbers.
///
/// # Errors
/// When one is not written.
pub async fn fill(address: SocketAddr, database: &str, numbers: Range<u64>) -> Result<(), Error> {
    let path = format!("/{database}");
    let mut senders: Vec<Batches> =
        (0..FILLING).map(|place| Batches::new(&path, BATCH, numbers.clone(), place, FILLING)).collect();
    load::run(address, &mut senders, Pace::AsAnswered, Duration::MAX).await.map(drop)
}

async fn read(address: SocketAddr, path: &str, room: &Room) -> Result<Read, Error> {
    let started = Instant::now();
    let mut feed = Feed::send(address, &Transport::Lines.request(path)).await?;
    let mut counted = Counted { row: Finder::new(ROW), rows: 0, bytes: 0 };
    while feed.read(room, &mut counted).await? {}
    Ok(Read { rows: counted.rows, bytes: counted.bytes, secs: started.elapsed().as_secs_f64() })
}

/// Counts rows.
struct Counted {
    row: Finder<'static>,
    rows: u64,
    bytes: u64,
}

impl Reader for Counted {
    fn take(&mut self, bytes: &[u8]) -> usize {
        self.rows += self.row.find_iter(bytes).count() as u64;
        // What may be the beginning of a row is shown again; no whole row fits into it.
        let taken = (bytes.len() + 1).saturating_sub(ROW.len());
        self.bytes += taken as u64;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(rows: &[u64]) -> Reads {
        let read = |(place, rows): (usize, &u64)| Read { rows: *rows, bytes: 100 * rows, secs: 1.0 + place as f64 };
        Reads::of(rows.iter().enumerate().map(read).collect(), 10).unwrap()
    }

    #[test]
    fn rows_that_one_reading_lacks_or_has_twice_are_told_whichever_is_the_median() {
        for (rows, lost, surplus) in
            [([10, 10, 10], 0, 0), ([10, 10, 7], 3, 0), ([8, 10, 12], 2, 2), ([0, 10, 9], 10, 0)]
        {
            let (whole, one) = (reads(&[10, 10, 10]), reads(&rows));
            assert_eq!((one.median.secs, one.lost, one.surplus), (2.0, lost, surplus), "{rows:?}");
            for filled in [Filled { changes: one, with_docs: whole }, Filled { changes: whole, with_docs: one }] {
                assert_eq!(filled.fault().is_none(), (lost, surplus) == (0, 0), "{rows:?}");
            }
            let report =
                Filled { changes: one, with_docs: whole }.report(&Backfill { documents: 10, rounds: 3 }).json();
            let told = format!(r#""changes_lost":{lost},"changes_surplus":{surplus},"#);
            assert!(report.contains(&told), "{rows:?}: {report}");
        }
    }
}
