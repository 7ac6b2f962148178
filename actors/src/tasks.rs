//! Work that goes on in the background, for whoever asks what the engine is doing.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use seqtide_storage::model::db_name::DbName;

use crate::engine::Engine;
use crate::open_database::OpenDatabase;

/// What kind of work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// Bodies that no leaf needs are freed.
    Reclaiming,
    /// The index of the feed is made.
    Indexing,
}

/// Work that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its kind.
    pub kind: TaskKind,
    /// The database it is done for.
    pub database: DbName,
    /// When it began, in seconds since 1970.
    pub started_secs: u64,
    /// When it came further last, in seconds since 1970.
    pub updated_secs: u64,
    /// How far it has come, in percent.
    pub progress: u8,
}

impl Engine {
    /// What goes on in the background, in the order of the databases' names.
    pub async fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        let at_work = |database: &OpenDatabase| database.sweeping.now().is_some() || database.indexing.now().is_some();
        for (database, open) in self.inner.open.those(at_work) {
            // One that closes meanwhile does nothing any more.
            tasks.extend(sweep_of(&database, &open).await);
            tasks.extend(indexing_of(&database, &open).await);
        }
        tasks
    }
}

async fn sweep_of(database: &DbName, open: &Arc<OpenDatabase>) -> Option<Task> {
    let sweep = open.sweeping.now()?;
    let counters = open.read(|snapshot| snapshot.counters()).await.ok()?;
    Some(Task {
        kind: TaskKind::Reclaiming,
        database: database.clone(),
        started_secs: secs(sweep.started),
        updated_secs: secs(sweep.updated),
        progress: percent(sweep.bytes_freed, sweep.bytes_freed.saturating_add(counters.garbage_bytes)),
    })
}

async fn indexing_of(database: &DbName, open: &Arc<OpenDatabase>) -> Option<Task> {
    let work = open.indexing.now()?;
    let status = open.read(|snapshot| snapshot.feed_index()).await.ok()?;
    Some(Task {
        kind: TaskKind::Indexing,
        database: database.clone(),
        started_secs: secs(work.started),
        updated_secs: secs(work.updated),
        progress: percent(status.rows_done, status.rows_total),
    })
}

fn secs(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn percent(done: u64, all: u64) -> u8 {
    let percent = (u128::from(done) * 100).checked_div(u128::from(all)).unwrap_or(0);
    u8::try_from(percent).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use seqtide_storage::Reclaimed;

    use super::*;

    #[test]
    fn a_percentage_of_nothing_is_nothing_and_none_is_above_a_hundred() {
        assert_eq!([percent(0, 0), percent(1, 3), percent(3, 3), percent(u64::MAX, u64::MAX)], [0, 33, 100, 100]);
    }

    #[tokio::test]
    async fn a_sweep_is_a_task_for_as_long_as_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let database = engine.create_database("db").await.unwrap();
        engine.create_database("idle").await.unwrap();
        let put = database.put("a", r#"{"pad":"0123456789"}"#).await.unwrap();
        database.delete("a", put.rev).await.unwrap();
        let garbage = database.info().await.unwrap().counters.garbage_bytes;
        let open = engine.inner.open.get(database.name()).unwrap();
        open.sweeping.start();
        open.sweeping.examined(Reclaimed { examined: 1, bytes: 3 * garbage, swept: false });
        let tasks = engine.tasks().await;
        assert_eq!((tasks.len(), tasks[0].database.as_str(), tasks[0].progress), (1, "db", 75));
        assert!(tasks[0].started_secs > 0 && tasks[0].updated_secs >= tasks[0].started_secs);
        open.sweeping.stop();
        assert_eq!(engine.tasks().await, []);
    }
}
