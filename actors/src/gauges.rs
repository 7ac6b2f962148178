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
    /// By how much the fullest queue of a writer is filled: 1 is full.
    pub fullest_queue: f64,
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
        self.waiting.add(database.queue.load());
        self.fullest_queue = self.fullest_queue.max(database.queue.filled());
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

#[cfg(test)]
mod tests {
    use seqtide_storage::Request;

    use super::*;
    use crate::EngineOptions;
    use crate::writer::asker::Asker;
    use crate::writer::queue::Job;

    #[tokio::test]
    async fn what_waits_for_writers_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let mut opened = Vec::new();
        for name in ["one", "other"] {
            opened.push(engine.create_database(name).await.unwrap().opened().await.unwrap());
        }
        let waiting = || {
            let mut gauges = Gauges::default();
            engine.inner.open.look_at_each(|database| gauges.add(database));
            (gauges.waiting, gauges.fullest_queue)
        };
        let EngineOptions { write_queue_edits_max: edits, write_queue_bytes_max: bytes, .. } =
            EngineOptions::new(folder.path());
        let loads = [Load { edits: edits / 2, bytes: 70 }, Load { edits: 3, bytes: bytes / 4 * 3 }];
        for (database, load) in opened.iter().zip(loads) {
            let job = || Job { request: Request::default(), asker: Asker::waiting().0 };
            database.queue.push(load, job).unwrap();
        }
        assert_eq!(waiting(), (Load { edits: edits / 2 + 3, bytes: bytes / 4 * 3 + 70 }, 0.75), "by bytes");
        opened[1].queue.end();
        assert_eq!(waiting(), (loads[0], 0.5), "by edits");
        opened[0].queue.end();
        assert_eq!(waiting(), (Load::default(), 0.0));
        drop(opened);
        engine.shutdown().await.unwrap();
    }
}
