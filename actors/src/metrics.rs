//! Every metric of the engine: its name, unit and labels, in one place. Labels come from closed sets.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use seqtide_storage::SyncedBy;

use crate::feed::kind::FeedKind;
use crate::gauges::Gauges;

/// Names and meanings for whoever scrapes. Called once, when the engine starts.
pub(crate) fn describe(durability: &'static str) {
    describe_counter!("seqtide_commits_total", "commits");
    describe_histogram!("seqtide_commit_batch_edits", "edits in a commit");
    describe_histogram!("seqtide_commit_seconds", Unit::Seconds, "time from shipping a commit until it is durable");
    describe_histogram!(
        "seqtide_answers_held_back_seconds",
        Unit::Seconds,
        "time that the answers of a commit waited for feeds to keep up"
    );
    describe_counter!("seqtide_rows_written_total", "documents changed");
    describe_counter!(
        "seqtide_unattended_writes_failed_total",
        "writes that nobody waited for (batch=ok) and that failed"
    );
    describe_counter!("seqtide_requests_replayed_total", "writes that were answered as they were the first time");
    describe_counter!("seqtide_reclaimed_bytes_total", Unit::Bytes, "bodies freed that no leaf needed");
    describe_gauge!("seqtide_feeds_open", "open feeds, by kind");
    describe_gauge!("seqtide_feeds_lag_rows_bucket", "open feeds that lack at most `le` rows, by kind");
    describe_gauge!("seqtide_feeds_lag_seconds_bucket", "open feeds that lack rows for at most `le` seconds, by kind");
    describe_counter!("seqtide_rows_sent_total", "rows sent to feeds, by kind");
    describe_counter!("seqtide_bytes_sent_total", Unit::Bytes, "bytes sent to feeds, by kind");
    describe_counter!("seqtide_filter_evaluations_total", "times a selector or a function was put to a document");
    describe_gauge!("seqtide_databases_open", "databases open");
    describe_gauge!("seqtide_databases_damaged", "databases found damaged, when they were opened or read");
    describe_counter!("seqtide_commits_failed_total", "commits that were not made, as on a full disk");
    describe_counter!("seqtide_damaged_reads_total", "reads that came upon something damaged");
    describe_counter!("seqtide_log_failures_total", "times LMDB did not take what the log has");
    describe_gauge!("seqtide_map_bytes", Unit::Bytes, "address space reserved for open databases");
    describe_gauge!("seqtide_write_queue_edits", "edits that wait for a writer");
    describe_gauge!("seqtide_write_queue_bytes", Unit::Bytes, "bodies and ancestries that wait for a writer");
    describe_gauge!(
        "seqtide_fullest_write_queue_ratio",
        "by how much the fullest write queue of a database is filled, by edits or bytes: 1 is full"
    );
    describe_counter!("seqtide_feed_pages_total", "pages of feeds, by where they were read");
    describe_gauge!("seqtide_tail_bytes", Unit::Bytes, "newest changes of open databases in memory");
    describe_histogram!(
        "seqtide_sync_seconds",
        Unit::Seconds,
        "time that writing and syncing commits took, by what has synced them"
    );
    describe_gauge!("seqtide_lmdb_pages", "pages of open databases' files, in use and free to be used again");
    describe_gauge!("seqtide_readers", "reads of databases that go on now");
    describe_gauge!("seqtide_oldest_reader_seconds", Unit::Seconds, "for how long the oldest of them has gone on");
    describe_gauge!("seqtide_durability", "1 for the mode that runs, full or relaxed");
    gauge!("seqtide_durability", "mode" => durability).set(1.0);
    // From the start on, so that the first increase is one: a series that begins with a 1 shows none.
    for name in [
        "seqtide_commits_total",
        "seqtide_commits_failed_total",
        "seqtide_rows_written_total",
        "seqtide_unattended_writes_failed_total",
        "seqtide_requests_replayed_total",
        "seqtide_reclaimed_bytes_total",
        "seqtide_filter_evaluations_total",
        "seqtide_damaged_reads_total",
        "seqtide_log_failures_total",
    ] {
        counter!(name).increment(0);
    }
    for kind in FeedKind::ALL {
        FeedMetrics::new(kind).rows(0);
        FeedMetrics::new(kind).bytes(0);
        gauge!("seqtide_feeds_open", "kind" => kind.name()).set(0.0);
    }
}

/// What a writer counts.
pub(crate) struct WriterMetrics {
    commits: Counter,
    failed: Counter,
    edits: Histogram,
    seconds: Histogram,
    rows: Counter,
    reclaimed: Counter,
}

impl Default for WriterMetrics {
    fn default() -> WriterMetrics {
        WriterMetrics {
            commits: counter!("seqtide_commits_total"),
            failed: counter!("seqtide_commits_failed_total"),
            edits: histogram!("seqtide_commit_batch_edits"),
            seconds: histogram!("seqtide_commit_seconds"),
            rows: counter!("seqtide_rows_written_total"),
            reclaimed: counter!("seqtide_reclaimed_bytes_total"),
        }
    }
}

impl WriterMetrics {
    pub fn committed(&self, edits: usize, rows: usize, took: Duration) {
        self.commits.increment(1);
        self.edits.record(edits as f64);
        self.rows.increment(rows as u64);
        self.seconds.record(took);
    }

    pub fn failed(&self) {
        self.failed.increment(1);
    }

    pub fn reclaimed(&self, bytes: u64) {
        self.reclaimed.increment(bytes);
    }
}

/// Where pages of feeds are read.
pub(crate) struct PageMetrics {
    memory: Counter,
    disk: Counter,
    index: Counter,
}

impl Default for PageMetrics {
    fn default() -> PageMetrics {
        let read = |source| counter!("seqtide_feed_pages_total", "source" => source);
        PageMetrics { memory: read("memory"), disk: read("disk"), index: read("index") }
    }
}

impl PageMetrics {
    pub fn in_memory(&self) {
        self.memory.increment(1);
    }

    pub fn on_disk(&self) {
        self.disk.increment(1);
    }

    pub fn looked_up(&self) {
        self.index.increment(1);
    }
}

/// What was looked at just now.
pub(crate) fn measured(gauges: &Gauges) {
    gauge!("seqtide_lmdb_pages", "state" => "used").set(gauges.pages_used as f64);
    gauge!("seqtide_lmdb_pages", "state" => "free").set(gauges.pages_free as f64);
    gauge!("seqtide_map_bytes").set(gauges.map_bytes as f64);
    gauge!("seqtide_tail_bytes").set(gauges.tail_bytes as f64);
    gauge!("seqtide_write_queue_edits").set(gauges.waiting.edits as f64);
    gauge!("seqtide_write_queue_bytes").set(gauges.waiting.bytes as f64);
    gauge!("seqtide_fullest_write_queue_ratio").set(gauges.fullest_queue);
    gauge!("seqtide_readers").set(gauges.readers as f64);
    gauge!("seqtide_oldest_reader_seconds").set(gauges.oldest_reader.as_secs_f64());
    gauge!("seqtide_databases_damaged").set(gauges.damaged as f64);
}

/// What feeds of a kind count.
#[derive(Clone)]
pub struct FeedMetrics {
    rows: Counter,
    bytes: Counter,
}

impl FeedMetrics {
    pub(crate) fn new(kind: FeedKind) -> FeedMetrics {
        FeedMetrics {
            rows: counter!("seqtide_rows_sent_total", "kind" => kind.name()),
            bytes: counter!("seqtide_bytes_sent_total", "kind" => kind.name()),
        }
    }

    /// Counts rows handed on. A feed with a [`Seat`](crate::Seat) does so itself.
    pub fn rows(&self, rows: usize) {
        self.rows.increment(rows as u64);
    }

    /// Counts bytes handed on.
    pub fn bytes(&self, bytes: usize) {
        self.bytes.increment(bytes as u64);
    }
}

/// A feed counts as open for as long as this lives.
pub(crate) struct CountedOpen(Gauge);

impl CountedOpen {
    /// Counts one more open feed.
    pub fn new(kind: FeedKind) -> CountedOpen {
        let open = gauge!("seqtide_feeds_open", "kind" => kind.name());
        open.increment(1.0);
        CountedOpen(open)
    }
}

impl Drop for CountedOpen {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// Bounds of the buckets in which feeds are counted by the rows they lack.
const LAG_ROWS: [f64; 7] = [0.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, f64::INFINITY];
/// Bounds of the buckets in which feeds are counted by how long they have lacked rows.
const LAG_SECONDS: [f64; 7] = [0.0, 0.1, 1.0, 10.0, 60.0, 600.0, f64::INFINITY];

/// How the feeds that are open are behind: of a kind there are so many, and those that are behind lack so many rows for
/// so many seconds.
pub(crate) fn feeds_lag(kind: FeedKind, open: usize, behind: &[(u64, f64)]) {
    let have_all = open.saturating_sub(behind.len());
    for (bound, up_to) in LAG_ROWS.map(|bound| (bound, behind.iter().filter(|(rows, _)| *rows as f64 <= bound).count()))
    {
        lag_bucket("seqtide_feeds_lag_rows_bucket", kind, bound, have_all + up_to);
    }
    for (bound, up_to) in LAG_SECONDS.map(|bound| (bound, behind.iter().filter(|(_, secs)| *secs <= bound).count())) {
        lag_bucket("seqtide_feeds_lag_seconds_bucket", kind, bound, have_all + up_to);
    }
}

fn lag_bucket(name: &'static str, kind: FeedKind, bound: f64, feeds: usize) {
    let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
    gauge!(name, "kind" => kind.name(), "le" => bound).set(feeds as f64);
}

/// A write that nobody waited for was not made.
pub(crate) fn unattended_failed() {
    counter!("seqtide_unattended_writes_failed_total").increment(1);
}

/// What filters count.
#[derive(Clone)]
pub(crate) struct FilterMetrics {
    evaluations: Counter,
}

impl Default for FilterMetrics {
    fn default() -> FilterMetrics {
        FilterMetrics { evaluations: counter!("seqtide_filter_evaluations_total") }
    }
}

impl FilterMetrics {
    /// Counts into a number that a test can read.
    #[cfg(test)]
    pub fn into_number(number: std::sync::Arc<std::sync::atomic::AtomicU64>) -> FilterMetrics {
        FilterMetrics { evaluations: Counter::from_arc(number) }
    }

    /// Counts a selector or a function that is put to a document.
    pub fn evaluated(&self) {
        self.evaluations.increment(1);
    }
}

/// Answers to writes waited for feeds.
pub(crate) fn held_back(waited: Duration) {
    histogram!("seqtide_answers_held_back_seconds").record(waited);
}

/// A write was answered as it was the first time.
pub(crate) fn replayed() {
    counter!("seqtide_requests_replayed_total").increment(1);
}

/// A read that came upon something damaged.
pub(crate) fn damaged_read() {
    counter!("seqtide_damaged_reads_total").increment(1);
}

/// Commits are on disk.
pub(crate) fn synced(by: SyncedBy, took: Duration) {
    // Labels that are written out cost no allocation.
    let seconds = match by {
        SyncedBy::Log => histogram!("seqtide_sync_seconds", "place" => "log"),
        SyncedBy::Lmdb => histogram!("seqtide_sync_seconds", "place" => "lmdb"),
    };
    seconds.record(took.as_secs_f64());
}

/// LMDB did not take what a database's log has.
pub(crate) fn log_failed() {
    counter!("seqtide_log_failures_total").increment(1);
}

/// Open databases.
pub(crate) fn databases_open(databases: usize) {
    gauge!("seqtide_databases_open").set(databases as f64);
}
