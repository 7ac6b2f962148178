//! The registry: an actor that opens, makes, deletes and closes databases, one at a time, on a thread that may block.

mod open_databases;

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, Addr, ArbiterHandle, AtomicResponse, Context, Handler, Message, WrapFuture};
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{Counted, CreateError, DataFolder, StorageError, Store};
use tokio::runtime::Handle;

pub(crate) use self::open_databases::OpenDatabases;
use crate::end_reason::EndReason;
use crate::error::Error;
use crate::indexing::Indexing;
use crate::live::Live;
use crate::open_database::{OpenDatabase, Reads};
use crate::reports::{report_damaged_read, report_damages};
use crate::updates::Updates;
use crate::writer::committers::Committers;
use crate::writer::queue::Queue;
use crate::writer::{Background, WriteCommit, Writer, WriterLimits};

/// Give this database, opening it if need be.
#[derive(Message)]
#[rtype(result = "Result<Arc<OpenDatabase>, Error>")]
pub(crate) struct Open(pub DbName);

/// Make this database.
#[derive(Message)]
#[rtype(result = "Result<(), Error>")]
pub(crate) struct Create(pub DbName, pub SeqFormat);

/// Delete this database.
#[derive(Message)]
#[rtype(result = "Result<(), Error>")]
pub(crate) struct Delete(pub DbName);

/// Close everything; nothing is opened any more.
#[derive(Message)]
#[rtype(result = "Result<(), Error>")]
pub(crate) struct CloseAll;

/// What a registry needs to open databases.
pub(crate) struct Surroundings {
    /// The engine's.
    pub runtime: Handle,
    pub folder: Arc<DataFolder>,
    pub open: Arc<OpenDatabases>,
    pub updates: Arc<Updates>,
    /// Where writers run.
    pub committers: Committers,
    /// How they write.
    pub write: Arc<WriteCommit>,
    pub databases_max: usize,
    pub tail_bytes_max: usize,
    pub round: Duration,
    pub writer_limits: WriterLimits,
}

pub(crate) struct Registry {
    surroundings: Arc<Surroundings>,
    closed: bool,
}

impl Registry {
    pub fn start_on(thread: &ArbiterHandle, surroundings: Surroundings) -> Addr<Registry> {
        let registry = Registry { surroundings: Arc::new(surroundings), closed: false };
        Registry::start_in_arbiter(thread, |_| registry)
    }
}

impl Actor for Registry {
    type Context = Context<Registry>;
}

impl Surroundings {
    async fn open(&self, name: &DbName) -> Result<Arc<OpenDatabase>, Error> {
        if let Some(open) = self.open.get(name) {
            return Ok(open);
        }
        if let Some(broken) = self.open.remove(name) {
            tracing::error!(database = %name, "the writer is gone; the database is opened again");
            let _told = broken.close(EndReason::Shutdown).await;
        }
        self.make_room().await?;
        let was_unreadable = self.folder.is_unreadable(name);
        let opened = self.with_files(name, || self.folder.open_store(name), StorageError::is_too_many_files).await;
        match &opened {
            Ok(Some(store)) => report_damages(name, store),
            Err(error) if !was_unreadable && self.folder.is_unreadable(name) => {
                tracing::error!(database = %name, %error, "the database is damaged and cannot be read");
            }
            _ => {}
        }
        let store = opened?.ok_or(Error::NoDatabase)?;
        self.take_in(name, store)
    }

    /// Closes the database that was used longest ago if as many are open as may be.
    async fn make_room(&self) -> Result<(), Error> {
        while self.open.len() >= self.databases_max {
            let databases_max = self.databases_max;
            let idle = self.open.take_idle().ok_or(Error::TooManyDatabases { databases_max })?;
            let _told = idle.close(EndReason::Shutdown).await;
        }
        Ok(())
    }

    /// Opens files; while the system has no more of them, closes the database that was used longest ago and tries
    /// again.
    async fn with_files<T, E>(
        &self,
        name: &DbName,
        open: impl Fn() -> Result<T, E>,
        lacks_files: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        loop {
            let opened = open();
            if !opened.as_ref().is_err_and(&lacks_files) {
                return opened;
            }
            let Some(idle) = self.open.take_idle() else { return opened };
            tracing::debug!(database = %name, "no more files can be opened: a database that nobody uses is closed");
            let _told = idle.close(EndReason::Shutdown).await;
        }
    }

    fn take_in(&self, name: &DbName, store: Store) -> Result<Arc<OpenDatabase>, Error> {
        let store = Arc::new(store);
        let (newest, index) = {
            let snapshot = store.snapshot()?;
            (snapshot.counters()?.update_seq, snapshot.feed_index())
        };
        let indexing = match index {
            Err(error) if !error.is_damage() => return Err(error.into()),
            // A damaged row that says what the index is of is found by whoever writes.
            index => Arc::new(Indexing::opened(&index.unwrap_or_default(), store.damages().is_empty())),
        };
        let announce = {
            let (updates, name) = (Arc::clone(&self.updates), name.clone());
            move || updates.note(&name)
        };
        let live = Arc::new(Live::new(newest, store.seq_format(), self.tail_bytes_max, self.round, announce));
        let limits = self.writer_limits;
        let queue = Arc::new(Queue::new(limits));
        let background = Background { sweeping: Arc::default(), indexing };
        let writer = {
            let (store, live, queue, write) = (store.clone(), live.clone(), queue.clone(), self.write.clone());
            Writer::new(store, live, background.clone(), queue, limits.reclaim, write)
        };
        let writer = Writer::start_in_arbiter(self.committers.next(), |_| writer);
        let readers_max = self.folder.options().readers_max;
        let damaged = Arc::new({
            let (folder, name) = (Arc::clone(&self.folder), name.clone());
            move |error: &StorageError| {
                folder.note_damage(&name);
                report_damaged_read(&name, error);
            }
        });
        let reads = Reads { readers_max, runtime: self.runtime.clone(), damaged };
        let database = OpenDatabase::new(store, live, background, (writer, queue), limits, reads);
        let database = Arc::new(database);
        self.open.insert(name.clone(), Arc::clone(&database));
        Ok(database)
    }

    async fn create(&self, name: &DbName, format: SeqFormat) -> Result<(), Error> {
        if self.folder.contains(name) {
            return Err(Error::DatabaseExists);
        }
        self.make_room().await?;
        let lacks_files = |error: &CreateError| matches!(error, CreateError::Storage(why) if why.is_too_many_files());
        let created = self.with_files(name, || self.folder.create(name, format), lacks_files).await;
        self.updates.wake();
        let store = created.map_err(|error| match error {
            CreateError::Exists => Error::DatabaseExists,
            CreateError::Storage(error) => error.into(),
        })?;
        self.take_in(name, store).map(drop)
    }

    async fn delete(&self, name: &DbName) -> Result<(), Error> {
        let deleted = match self.open(name).await {
            Ok(database) => {
                self.open.remove(name);
                // Whatever comes between: nobody waits in vain for a feed whose writer is gone.
                let _ends = EndOnDrop(&database);
                database.finish_writing().await;
                let decided = self.folder.decide_deletion(name, database.counted());
                // One that stays is opened again when it is wanted: readers come back.
                let stays = self.folder.contains(name);
                let reason = if stays { EndReason::Shutdown } else { EndReason::Deleted };
                let _told = database.close(reason).await;
                decided.and_then(|()| self.folder.finish_deletion(name))
            }
            Err(Error::Storage(error)) if error.is_damage() => {
                self.folder.delete(name, Counted::AtLeast(Sequence::ZERO))
            }
            Err(error) => return Err(error),
        };
        self.updates.wake();
        Ok(deleted?)
    }

    async fn close_all(&self) -> Result<(), Error> {
        self.updates.end();
        let mut closed = Ok(());
        for database in self.open.take_all() {
            closed = closed.and(database.close(EndReason::Shutdown).await);
        }
        match closed {
            Ok(()) => Ok(self.folder.close_cleanly()?),
            Err(error) => {
                self.folder.release()?;
                Err(error.into())
            }
        }
    }
}

/// Ends a database's feeds when it is dropped, if nobody has ended them.
struct EndOnDrop<'a>(&'a OpenDatabase);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.live.end(EndReason::Shutdown);
    }
}

/// Answers a message with a future that keeps the registry from taking the next one until it is done.
macro_rules! one_at_a_time {
    ($message:ty, $answer:ty, $handle:expr) => {
        impl Handler<$message> for Registry {
            type Result = AtomicResponse<Registry, Result<$answer, Error>>;

            fn handle(&mut self, message: $message, _: &mut Context<Registry>) -> Self::Result {
                let (surroundings, closed) = (Arc::clone(&self.surroundings), self.closed);
                let work = async move {
                    if closed {
                        return Err(Error::Stopped);
                    }
                    let handle = $handle;
                    handle(surroundings, message).await
                };
                AtomicResponse::new(Box::pin(work.into_actor(self)))
            }
        }
    };
}

one_at_a_time!(Open, Arc<OpenDatabase>, async |here: Arc<Surroundings>, Open(name)| here.open(&name).await);
one_at_a_time!(Create, (), async |here: Arc<Surroundings>, Create(name, format)| here.create(&name, format).await);
one_at_a_time!(Delete, (), async |here: Arc<Surroundings>, Delete(name)| here.delete(&name).await);

impl Handler<CloseAll> for Registry {
    type Result = AtomicResponse<Registry, Result<(), Error>>;

    fn handle(&mut self, _: CloseAll, _: &mut Context<Registry>) -> Self::Result {
        let (surroundings, closed) = (Arc::clone(&self.surroundings), self.closed);
        // The folder may be another engine's by the second time.
        let work = async move { if closed { Ok(()) } else { surroundings.close_all().await } }.into_actor(self);
        AtomicResponse::new(Box::pin(work.map(|closed, registry, _| {
            registry.closed = true;
            closed
        })))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::end_reason::EndReason;
    use crate::writer::{Finish, LookAround};
    use crate::{ChangesOptions, Engine, EngineOptions, Error};

    #[tokio::test]
    async fn a_database_whose_writer_is_gone_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let database = engine.create_database("db").await.unwrap();
        let feed = database.changes(ChangesOptions::default()).await.unwrap();
        let open = engine.inner.open.get(database.name()).unwrap();
        open.writer.send(Finish).await.unwrap();
        open.live.end(EndReason::Shutdown);
        while open.writer.connected() {
            tokio::task::yield_now().await;
        }
        assert!(database.put("a", "{}").await.is_ok());
        drop(feed);
        engine.shutdown().await.unwrap();
    }

    /// What was left of the sweep was forgotten.
    #[tokio::test]
    async fn a_database_that_is_being_swept_is_not_closed_to_open_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::new(folder.path());
        options.databases_open_max = 1;
        let engine = Engine::start_with(options).unwrap();
        let database = engine.create_database("swept").await.unwrap();
        let open = engine.inner.open.get(database.name()).unwrap();
        let sweeping = Arc::clone(&open.sweeping);
        // The writer looks around when it starts, and not again unless it is told to: so this sweep does not end.
        open.writer.send(LookAround).await.unwrap();
        drop(open);
        sweeping.start();
        let refused = engine.create_database("other").await;
        assert!(matches!(refused, Err(Error::TooManyDatabases { databases_max: 1 })), "{refused:?}");
        sweeping.stop();
        engine.create_database("other").await.unwrap();
        engine.shutdown().await.unwrap();
    }
}
