//! The engine: a data folder in use, with its threads and actors.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use actix::{Addr, Arbiter};
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::SeqFormat;
use seqtide_storage::{DataFolder, ReclaimPolicy, Request, Store, StoreOptions};

use crate::actor_system::ActorSystem;
use crate::awake::Awake;
use crate::database::Database;
use crate::drain::Drain;
use crate::end_reason::EndReason;
use crate::error::Error;
use crate::functions::{Functions, FunctionsOptions};
use crate::known::{FeedId, FeedInfo};
use crate::metrics;
use crate::permits::FeedPermits;
use crate::registry::{CloseAll, Create, Delete, OpenDatabases, Registry, Surroundings};
use crate::reports::report_notice;
use crate::selector::SelectorKeys;
use crate::updates::Updates;
use crate::writer::committers::Committers;
use crate::writer::{WriteCommit, WriterLimits};

/// How an engine runs. Every bound has a default.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The data folder; it is made if it is not there.
    pub data: PathBuf,
    /// How databases lie on disk. Its `feed_keys` and `tell` are the engine's: what is given there is passed over.
    pub store: StoreOptions,
    /// Memory for the newest changes of each open database, in bytes; one that is written to for a while without a feed
    /// takes none.
    pub tail_bytes_max: usize,
    /// How long it is to take at most to give new rows to the feeds of a database that give the same: while they are
    /// further behind, answers to writes wait for them, a quarter of a second at most. Zero lets none wait.
    pub round: Duration,
    /// When bodies that no leaf needs are freed.
    pub reclaim: ReclaimPolicy,
    /// Most edits waiting to be written, a database.
    pub write_queue_edits_max: usize,
    /// Most bytes of bodies, and of the ancestry of replicated ones, waiting to be written, a database.
    pub write_queue_bytes_max: usize,
    /// Most databases open at once; those used longest ago are closed first. Each takes four to six of the files that
    /// the process may have open; where the system gives no more, databases that nobody uses are closed earlier.
    pub databases_open_max: usize,
    /// Most feeds open at once.
    pub feeds_max: usize,
    /// Threads that write; each database is pinned to one. A commit that may take long has another, which ends with it.
    pub committers: usize,
    /// Processors that are kept awake, by threads that give way to others at once, while commits of few requests follow
    /// each other within half a millisecond: it saves writers what it takes to wake them. Zero keeps none, and none is
    /// kept where the process has only one or may not use all the time of those that it has.
    pub awake_processors_max: usize,
    /// Called on each of the `committers`, a few times each time that it rests after it wrote, and has to return soon.
    /// Here a program has its allocator give back what such a thread has allocated and others have freed, where the
    /// allocator leaves that to the thread. Does nothing by default.
    pub at_rest: fn(),
    /// How functions of design documents are run.
    pub functions: FunctionsOptions,
}

impl EngineOptions {
    /// The defaults, with a data folder.
    pub fn new(data: impl Into<PathBuf>) -> EngineOptions {
        EngineOptions {
            data: data.into(),
            store: StoreOptions::default(),
            tail_bytes_max: 32 << 20,
            round: Duration::from_millis(20),
            reclaim: ReclaimPolicy::default(),
            write_queue_edits_max: 10_000,
            write_queue_bytes_max: 256 << 20,
            databases_open_max: 500,
            feeds_max: 20_000,
            committers: thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8)),
            awake_processors_max: 2,
            at_rest: || {},
            functions: FunctionsOptions::default(),
        }
    }
}

/// A data folder in use. Cheap to clone; works from any tokio runtime that has timers, its own actors run on threads of
/// their own. A future that is not polled any more keeps nobody else waiting.
///
/// Metrics are of one engine a process: what is counted adds up, but of several engines each overwrites the gauges of
/// the others.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// There until this is dropped.
    system: Option<ActorSystem>,
    pub folder: Arc<DataFolder>,
    pub open: Arc<OpenDatabases>,
    pub updates: Arc<Updates>,
    pub registry: Addr<Registry>,
    pub feeds: FeedPermits,
    pub functions: Functions,
}

impl Engine {
    /// Takes a data folder with the default options and starts the engine.
    ///
    /// # Errors
    /// As [`Engine::start_with`].
    pub fn start(data: impl Into<PathBuf>) -> Result<Engine, Error> {
        Engine::start_with(EngineOptions::new(data))
    }

    /// Takes a data folder and starts the engine.
    ///
    /// # Errors
    /// [`Error::Storage`]: the folder is in use, by another process or another engine of this one, it cannot be read or
    /// made, or the system gives the engine no more threads or open files; [`Error::Stopped`] when a thread broke off
    /// as it was started. Nothing runs then.
    pub fn start_with(options: EngineOptions) -> Result<Engine, Error> {
        metrics::describe(options.store.durability.name());
        let store = StoreOptions { feed_keys: &SelectorKeys, tell: report_notice, ..options.store };
        let folder = Arc::new(DataFolder::open(&options.data, store)?);
        Engine::start_in(&folder, options).inspect_err(|_| {
            // What failed is told; threads that have been started let go of the folder only when they have ended.
            let _ = folder.close_as_it_is();
        })
    }

    fn start_in(folder: &Arc<DataFolder>, options: EngineOptions) -> Result<Engine, Error> {
        let folder = Arc::clone(folder);
        let open = Arc::<OpenDatabases>::default();
        let updates = Arc::new(Updates::new(Arc::clone(&folder)));
        let write: Arc<WriteCommit> = {
            let (updates, awake) = (Arc::clone(&updates), Awake::new(options.awake_processors_max));
            Arc::new(move |store: &Store, requests: &[Request]| {
                updates.make_room();
                let _committing = awake.commit(requests.len());
                store.write(requests)
            })
        };
        let system = ActorSystem::start()?;
        let limits = WriterLimits {
            queue_edits_max: options.write_queue_edits_max,
            queue_bytes_max: options.write_queue_bytes_max,
            reclaim: options.reclaim,
        };
        let committers = options.committers.max(1);
        let committers = system.start_on(move || Committers::start(committers, options.at_rest))?;
        let surroundings = Surroundings {
            runtime: system.runtime().clone(),
            folder: Arc::clone(&folder),
            open: Arc::clone(&open),
            updates: Arc::clone(&updates),
            committers,
            write,
            databases_max: options.databases_open_max,
            tail_bytes_max: options.tail_bytes_max,
            round: options.round,
            writer_limits: limits,
        };
        // On a thread of its own, so that opening a database keeps no writer waiting.
        let start_registry = move || Ok(Registry::start_on(&Arbiter::try_new()?.handle(), surroundings));
        let registry = system.start_on(start_registry)?;
        let feeds = FeedPermits::new(options.feeds_max);
        let functions = system.start_on(move || Functions::start(options.functions))?;
        let inner = Inner { system: Some(system), folder, open, updates, registry, feeds, functions };
        Ok(Engine { inner: Arc::new(inner) })
    }

    /// 32 hex digits that stay the same for the life of the data folder: replication ids are made of it.
    pub fn uuid(&self) -> String {
        self.inner.folder.server_uuid()
    }

    /// All databases' names, in order.
    pub fn databases(&self) -> Vec<DbName> {
        self.inner.folder.names()
    }

    /// A database by its name.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::NoDatabase`].
    pub fn database(&self, name: &str) -> Result<Database, Error> {
        let name = DbName::parse(name)?;
        if self.inner.folder.contains(&name) { Ok(Database::new(self, name)) } else { Err(Error::NoDatabase) }
    }

    /// A database by its name, which is made as [`Engine::create_database`] does where there is none: what a program
    /// begins with, the first time and every other.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`]; [`Error::NoDatabase`]
    /// where it is deleted at this moment, or its folder was put there by hand since the start.
    pub async fn ensure_database(&self, name: &str) -> Result<Database, Error> {
        match self.database(name) {
            Err(Error::NoDatabase) => {}
            found => return found,
        }
        match self.create_database(name).await {
            // Someone else was first.
            Err(Error::DatabaseExists) => self.database(name),
            made => made,
        }
    }

    /// Makes a database that writes its sequences as integers.
    ///
    /// # Errors
    /// As [`Engine::create_database_with`].
    pub async fn create_database(&self, name: &str) -> Result<Database, Error> {
        self.create_database_with(name, SeqFormat::Integer).await
    }

    /// Makes a database. A future that is dropped before it is ready takes nothing back: the database may still be
    /// made.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::DatabaseExists`], [`Error::TooManyDatabases`], [`Error::Stopped`],
    /// [`Error::Storage`].
    pub async fn create_database_with(&self, name: &str, format: SeqFormat) -> Result<Database, Error> {
        let name = DbName::parse(name)?;
        let created = self.inner.registry.send(Create(name.clone(), format)).await;
        created.map_err(|_gone| Error::Stopped)??;
        Ok(Database::new(self, name))
    }

    /// Deletes a database and ends its feeds. It is opened for that if it is not open. A future that is dropped before
    /// it is ready takes nothing back: the database may still be deleted.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::NoDatabase`], [`Error::TooManyDatabases`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn delete_database(&self, name: &str) -> Result<(), Error> {
        let name = DbName::parse(name)?;
        self.inner.registry.send(Delete(name)).await.map_err(|_gone| Error::Stopped)?
    }

    /// Ends every feed that is open, so that whoever serves them can let go of its readers before [`Engine::shutdown`].
    /// It is for an engine that stops: feeds that are opened afterwards may end at once.
    pub fn end_feeds(&self) {
        self.inner.open.end_feeds();
        self.inner.updates.end();
    }

    /// Has the feeds that are open end one after the other over so long, each after a word to its reader
    /// ([`ChangeEvent::Draining`](crate::ChangeEvent::Draining)), and opens no more. Whoever serves feeds that do not
    /// read for themselves has them do as this says. Called again, it can hasten them: their readers are told nothing
    /// more.
    pub fn drain_feeds(&self, over: Duration) -> Drain {
        let drain = Drain::now(over);
        self.inner.feeds.known().drain(drain);
        drain
    }

    /// Whether feeds are being ended, and no more are opened.
    pub fn is_draining(&self) -> bool {
        self.inner.feeds.known().closed_for().is_some()
    }

    /// Whether a feed could be opened now.
    ///
    /// # Errors
    /// [`Error::TooManyFeeds`], [`Error::Draining`].
    pub fn check_room_for_feeds(&self) -> Result<(), Error> {
        self.inner.feeds.check_room()
    }

    /// How many feeds are open, whoever reads for them.
    pub fn feeds_open(&self) -> usize {
        self.inner.feeds.taken()
    }

    /// The feeds that are open and read for themselves, in the order in which they were opened.
    pub fn feeds(&self) -> Vec<FeedInfo> {
        self.inner.feeds.known().list()
    }

    /// Ends one of [`Engine::feeds`], with the reason [`EndReason::Revoked`]; `false` where there is none of this
    /// number.
    pub fn end_feed(&self, id: FeedId) -> bool {
        self.inner.feeds.known().end(id, EndReason::Revoked)
    }

    /// Waits until no feed is open.
    pub async fn feeds_closed(&self) {
        self.inner.feeds.none_left().await;
    }

    /// Ends every feed, writes what is queued, and closes the databases. The engine does nothing more after it, and its
    /// data folder is free for another one, also when this fails; asked again it does nothing. Its threads and the
    /// worker processes of its functions end with the last handle: an [`Engine`] or a [`Database`].
    ///
    /// Without this, the drop of the last handle begins the same and waits for nothing: when it is done, and whether it
    /// went well, is in nobody's hands but the log's. A process that ends meanwhile loses what
    /// [`Database::write_later`] has queued, and has ended uncleanly: with
    /// [`Durability::Relaxed`](seqtide_storage::Durability::Relaxed) every database then gets a new incarnation, of
    /// which it has 255. So does one that does not wait until this is ready: of a future that is dropped before, the
    /// end may have been begun or not.
    ///
    /// # Errors
    /// [`Error::Storage`] when the end could not be noted down, or a database's newest writes are in its log alone;
    /// nothing acknowledged is lost by that.
    pub async fn shutdown(&self) -> Result<(), Error> {
        match self.inner.registry.send(CloseAll).await {
            Ok(closed) => closed,
            Err(_gone) => Ok(()),
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.updates.end();
        self.open.end_feeds();
        let registry = self.registry.clone();
        let close_all = async move {
            if let Ok(Err(error)) = registry.send(CloseAll).await {
                tracing::error!(%error, "an engine that was dropped has not ended cleanly");
            }
        };
        if let Some(system) = self.system.take() {
            system.end_after(close_all);
        }
    }
}
