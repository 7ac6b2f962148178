//! What is not counted as it happens, but looked at when metrics are read.

use std::time::Duration;

use crate::engine::Engine;
use crate::metrics;
use crate::open_database::OpenDatabase;
use crate::writer::load::Load;

/// Figures of all open databases together, and how many were found damaged, open or not.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub pages_used: usize,
    pub pages_free: usize,
    pub map_bytes: usize,
    pub tail_bytes: usize,
    pub waiting: Load,
    pub readers: usize,
    pub oldest_reader: Duration,
    pub damaged: usize,
}

impl Engine {
    /// Brings the metrics up to date that are looked at rather than counted: to be called before they are read.
    pub fn measure(&self) {
        let mut gauges = Gauges { damaged: self.inner.folder.damaged(), ..Gauges::default() };
        self.inner.open.look_at_each(|database| gauges.add(database));
        metrics::measured(&gauges);
    }
}

impl Gauges {
    fn add(&mut self, database: &OpenDatabase) {
        self.waiting.add(database.waiting());
        // One that is being closed has nothing else to tell any more.
        let Some(now) = database.gauge() else { return };
        let pages = |bytes: usize| bytes / now.page_bytes.max(1);
        self.pages_used += pages(now.used_bytes);
        self.pages_free += pages(now.end_bytes.saturating_sub(now.used_bytes));
        self.map_bytes += now.map_bytes;
        self.tail_bytes += database.live.tail().bytes();
        let (readers, oldest) = database.readings.now();
        self.readers += readers;
        self.oldest_reader = self.oldest_reader.max(oldest);
    }
}
