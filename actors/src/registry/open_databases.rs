//! Which databases are open.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use seqtide_storage::model::db_name::DbName;

use crate::end_reason::EndReason;
use crate::metrics;
use crate::open_database::OpenDatabase;

/// The databases that are open, for all to look up.
#[derive(Default)]
pub(crate) struct OpenDatabases {
    by_name: RwLock<HashMap<DbName, Arc<OpenDatabase>>>,
    /// Held while those are looked at that nobody uses.
    looking: Mutex<()>,
    /// The clock of [`OpenDatabase::last_used`]: counts each time that another database is looked up than before. All
    /// threads that write to one look it up, and none of them has to tell the others.
    clock: AtomicU64,
}

impl OpenDatabases {
    /// The database, if it is open and its writer lives.
    pub fn get(&self, name: &DbName) -> Option<Arc<OpenDatabase>> {
        let found = self.by_name.read().get(name).cloned()?;
        if !found.writer.connected() {
            return None;
        }
        if found.last_used() != self.clock.load(Ordering::Relaxed) {
            self.touch(&found);
        }
        Some(found)
    }

    /// From now on it is the one that was asked for last.
    fn touch(&self, database: &OpenDatabase) {
        database.touch(self.clock.fetch_add(1, Ordering::Relaxed) + 1);
    }

    pub(super) fn insert(&self, name: DbName, database: Arc<OpenDatabase>) {
        self.touch(&database);
        self.by_name.write().insert(name, database);
        self.tell_metrics();
    }

    pub(super) fn remove(&self, name: &DbName) -> Option<Arc<OpenDatabase>> {
        let removed = self.by_name.write().remove(name);
        self.tell_metrics();
        removed
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.read().len()
    }

    /// Takes out the database that nobody uses and that was asked for longest ago. One that is being swept is in use:
    /// what a sweep has left to do is kept nowhere else, and who asked for it was told that it is begun.
    pub(super) fn take_idle(&self) -> Option<Arc<OpenDatabase>> {
        let _nobody_looks = self.looking.lock();
        let mut databases = self.by_name.write();
        // Nobody can take another reference meanwhile: that needs this lock.
        let is_idle = |database: &Arc<OpenDatabase>| {
            let is_swept = database.sweeping.now().is_some() && database.writer.connected();
            Arc::strong_count(database) == 1 && !is_swept
        };
        let idle = databases.iter().filter(|(_, database)| is_idle(database));
        let name = idle.min_by_key(|(_, database)| database.last_used()).map(|(name, _)| name.clone())?;
        let taken = databases.remove(&name);
        drop(databases);
        self.tell_metrics();
        taken
    }

    /// Takes out all of them.
    pub(super) fn take_all(&self) -> Vec<Arc<OpenDatabase>> {
        let all = self.by_name.write().drain().map(|(_, database)| database).collect();
        self.tell_metrics();
        all
    }

    /// Shows all of them, and keeps none from being taken as idle: who wants one waits until they have been looked at.
    pub fn look_at_each(&self, look: impl FnMut(&Arc<OpenDatabase>)) {
        let _looking = self.looking.lock();
        let all: Vec<_> = self.by_name.read().values().cloned().collect();
        all.iter().for_each(look);
    }

    /// Those that are wanted, in the order of their names.
    pub fn those(&self, wanted: impl Fn(&OpenDatabase) -> bool) -> Vec<(DbName, Arc<OpenDatabase>)> {
        let databases = self.by_name.read();
        let wanted = databases.iter().filter(|(_, database)| wanted(database));
        let mut those: Vec<_> = wanted.map(|(name, database)| (name.clone(), Arc::clone(database))).collect();
        those.sort_by(|(a, _), (b, _)| a.cmp(b));
        those
    }

    /// Ends every feed of them.
    pub fn end_feeds(&self) {
        for database in self.by_name.read().values() {
            database.live.end(EndReason::Shutdown);
        }
    }

    fn tell_metrics(&self) {
        metrics::databases_open(self.len());
    }
}
