//! Catching up: one reader of `_changes` from the beginning.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::Error;
use crate::feed::{Feed, Reader, Room};
use crate::load::{self, Pace};
use crate::report::Report;
use crate::rows::Rows;
use crate::service::Transport;
use crate::tally::Order;
use crate::writers::Batches;

/// Connections that write the documents beforehand, and documents of a request.
pub(crate) const FILLING: usize = 4;
const BATCH: u64 = 1_000;

/// How long nothing may come of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(30);

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
    /// Those whose sequence is not above all before it: they came again, or out of order. None where sequences are no
    /// numbers.
    pub misordered: u64,
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
    /// Changes that came again or out of order, in the reading that has most.
    pub misordered: u64,
}

impl Reads {
    /// Of so many changes; none where nothing was read.
    fn of(mut reads: Vec<Read>, documents: u64) -> Option<Reads> {
        let worst = |count: &dyn Fn(&Read) -> u64| reads.iter().map(count).max();
        let lost = worst(&|read| documents.saturating_sub(read.rows))?;
        let surplus = worst(&|read| read.rows.saturating_sub(documents))?;
        let misordered = worst(&|read| read.misordered)?;
        reads.sort_by(|one, other| one.secs.total_cmp(&other.secs));
        Some(Reads { median: *reads.get(reads.len() / 2)?, lost, surplus, misordered })
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
        let faults = |reads: Reads| [reads.lost, reads.surplus, reads.misordered];
        let is_whole = [self.changes, self.with_docs].into_iter().all(|reads| faults(reads) == [0; 3]);
        (!is_whole).then_some("not every reading gave each row once and in order")
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
                .with(&format!("{way}_misordered"), reads.misordered)
        })
    }
}

/// Writes documents to a database that has none, and reads its changes from the beginning, the two ways in turn.
///
/// # Errors
/// When a document is not written, a reading is cut short, or nothing comes of it for half a minute.
pub async fn run(address: SocketAddr, database: &str, asked: &Backfill) -> Result<Filled, Error> {
    fill(address, database, 0..asked.documents).await?;
    read_all(address, database, asked).await
}

/// Reads the changes of a database that has so many documents, and nothing else, from the beginning, the two ways in
/// turn.
///
/// # Errors
/// When a reading is cut short, or nothing comes of it for half a minute.
pub async fn read_all(address: SocketAddr, database: &str, asked: &Backfill) -> Result<Filled, Error> {
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
    let request = Transport::Lines.request(path);
    let mut feed = unless_silent(path, Feed::send(address, &request)).await?;
    let mut counted = Counted::default();
    while unless_silent(path, feed.read(room, &mut counted)).await? {}
    let Counted { rows, misordered, bytes, .. } = counted;
    Ok(Read { rows, misordered, bytes, secs: started.elapsed().as_secs_f64() })
}

/// What comes next of an answer, unless nothing does.
async fn unless_silent<T>(path: &str, next: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Error::Late { what: format!("GET {path}: what comes next of the answer"), limit: SILENCE_MAX };
    timeout(SILENCE_MAX, next).await.map_err(late)?
}

/// Counts rows.
#[derive(Default)]
struct Counted {
    finder: Rows,
    order: Order,
    rows: u64,
    misordered: u64,
    bytes: u64,
    /// How many of the bytes that were shown last are shown again.
    kept: usize,
}

impl Reader for Counted {
    fn take(&mut self, bytes: &[u8]) -> usize {
        self.bytes += (bytes.len() - self.kept) as u64;
        let taken = self.finder.take(bytes, |seq| {
            self.rows += 1;
            self.misordered += u64::from(self.order.turns_back(seq));
        });
        self.kept = bytes.len() - taken;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of ten documents: of each its rows, and those out of order.
    fn reads(reads: &[(u64, u64)]) -> Reads {
        let read = |(place, &(rows, misordered)): (usize, &(u64, u64))| Read {
            rows,
            misordered,
            bytes: 100 * rows,
            secs: 1.0 + place as f64,
        };
        Reads::of(reads.iter().enumerate().map(read).collect(), 10).unwrap()
    }

    #[test]
    fn what_one_reading_has_wrong_is_told_whichever_is_the_median() {
        let whole = (10, 0);
        for (rows, faults) in [
            ([whole, whole, whole], [0, 0, 0]),
            ([whole, whole, (7, 0)], [3, 0, 0]),
            ([(8, 0), whole, (12, 2)], [2, 2, 2]),
            ([(0, 0), whole, (9, 0)], [10, 0, 0]),
            ([(10, 1), whole, whole], [0, 0, 1]),
        ] {
            let (whole, one) = (reads(&[whole; 3]), reads(&rows));
            let [lost, surplus, misordered] = faults;
            assert_eq!((one.median.secs, one.lost, one.surplus, one.misordered), (2.0, lost, surplus, misordered));
            for filled in [Filled { changes: one, with_docs: whole }, Filled { changes: whole, with_docs: one }] {
                assert_eq!(filled.fault().is_none(), faults == [0; 3], "{rows:?}");
            }
            let report =
                Filled { changes: one, with_docs: whole }.report(&Backfill { documents: 10, rounds: 3 }).json();
            let told =
                format!(r#""changes_lost":{lost},"changes_surplus":{surplus},"changes_misordered":{misordered},"#);
            assert!(report.contains(&told), "{rows:?}: {report}");
        }
    }

    #[test]
    fn a_row_that_comes_instead_of_another_and_rows_that_change_places_are_found() {
        for (rows, misordered) in [
            ([1, 2, 3, 4, 5], 0),
            ([1, 2, 2, 4, 5], 1),
            ([1, 2, 4, 3, 5], 1),
            ([5, 2, 3, 4, 1], 4),
            ([1, 2, 3, 4, 9], 0),
        ] {
            let text = rows.map(|seq| format!(r#"{{"seq":{seq},"id":"x"}},"#)).concat();
            let mut counted = Counted::default();
            counted.take(text.as_bytes());
            assert_eq!((counted.rows, counted.misordered), (5, misordered), "{rows:?}");
        }
    }
}
