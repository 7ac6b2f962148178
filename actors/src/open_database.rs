//! A database that is open: its store, its writer, and what it shows to feeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use actix::Addr;
use parking_lot::RwLock;
use seqtide_storage::json::Body;
use seqtide_storage::model::sequence::SeqFormat;
use seqtide_storage::{Counted, Identity, LeafBody, Request, Snapshot, StorageError, Store, StoreGauge};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::by_itself::{by_itself, done};
use crate::end_reason::EndReason;
use crate::error::Error;
use crate::indexing::Indexing;
use crate::live::Live;
use crate::metrics::PageMetrics;
use crate::readings::Readings;
use crate::sweep::Sweeping;
use crate::validation::{Validating, Validators};
use crate::writer::asker::{Asker, Unattended};
use crate::writer::load::Load;
use crate::writer::queue::{Job, Pushed, Queue};
use crate::writer::{Background, Finish, LookAround, Writer, WriterLimits, Written};

/// Most pages of one database that functions are asked about at once.
const ASKING_MAX: usize = 4;

/// Of a store's read transactions, those kept for others than [`OpenDatabase::read`].
const READERS_SPARE: usize = 8;

pub(crate) struct OpenDatabase {
    /// Empty once the database is being closed.
    store: RwLock<Option<Arc<Store>>>,
    pub live: Arc<Live>,
    pub sweeping: Arc<Sweeping>,
    pub validators: Validators,
    pub validating: Validating,
    /// Bounds the pages that its feeds have read and that functions are asked about.
    pub asking: Semaphore,
    pub indexing: Arc<Indexing>,
    pub writer: Addr<Writer>,
    pub queue: Arc<Queue>,
    pub seq_format: SeqFormat,
    pub identity: Identity,
    /// Keeps reads below the store's bound on snapshots.
    readers: Arc<Semaphore>,
    readers_max: usize,
    /// The reads that go on now.
    pub readings: Arc<Readings>,
    /// Where pages of its feeds come from.
    pub pages: PageMetrics,
    /// When it was asked for last, on the registry's clock.
    last_used: AtomicU64,
    /// Told of the damage that a read comes upon.
    damaged: ToldOfDamage,
    /// The engine's: what others wait for goes on there.
    pub runtime: Handle,
    clock: fn() -> u64,
}

/// Who is told of the damage that a read comes upon.
type ToldOfDamage = Arc<dyn Fn(&StorageError) + Send + Sync>;

/// What reads of a database go by.
pub(crate) struct Reads {
    /// The store's bound of readers.
    pub readers_max: u32,
    /// The engine's runtime.
    pub runtime: Handle,
    /// Told of the damage that a read comes upon.
    pub damaged: ToldOfDamage,
}

impl OpenDatabase {
    pub fn new(
        store: Arc<Store>,
        live: Arc<Live>,
        Background { sweeping, indexing }: Background,
        (writer, queue): (Addr<Writer>, Arc<Queue>),
        limits: WriterLimits,
        reads: Reads,
    ) -> OpenDatabase {
        let Reads { readers_max, runtime, damaged } = reads;
        let clock = store.clock();
        let readers_max = (readers_max as usize).saturating_sub(READERS_SPARE).max(1);
        OpenDatabase {
            seq_format: store.seq_format(),
            identity: *store.identity(),
            validators: Validators::of(&store),
            store: RwLock::new(Some(store)),
            live,
            sweeping,
            validating: Validating::new(limits),
            asking: Semaphore::new(ASKING_MAX),
            indexing,
            writer,
            queue,
            readers: Arc::new(Semaphore::new(readers_max)),
            readers_max,
            readings: Arc::default(),
            pages: PageMetrics::default(),
            last_used: AtomicU64::new(0),
            damaged,
            runtime,
            clock,
        }
    }

    /// The store, for as long as one read takes.
    pub fn store(&self) -> Result<Arc<Store>, Error> {
        self.store.read().clone().ok_or_else(|| self.live.gone())
    }

    /// How far it has counted, when its writer has finished.
    pub fn counted(&self) -> Counted {
        let is_sound = self.store().is_ok_and(|store| store.damages().is_empty());
        let count = if is_sound { Counted::To } else { Counted::AtLeast };
        count(self.live.newest())
    }

    /// Reads from a snapshot on a thread that may block; the snapshot ends when `read` returns. Begun, it goes on
    /// whether or not it is asked for meanwhile.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, Error> {
        if let Ok(permit) = Arc::clone(&self.readers).try_acquire_owned() {
            return self.read_with(permit, read).await;
        }
        let database = Arc::clone(self);
        let work = async move {
            let readers = Arc::clone(&database.readers);
            let permit = readers.acquire_owned().await.map_err(|_closed| database.live.gone())?;
            database.read_with(permit, read).await
        };
        by_itself(work, &self.runtime).await
    }

    async fn read_with<T: Send + 'static>(
        &self,
        permit: OwnedSemaphorePermit,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, Error> {
        let (store, damaged) = (self.store()?, Arc::clone(&self.damaged));
        let under_way = self.readings.begin();
        // Not where it is asked for: a thread that others keep there would keep the permit from everyone.
        let reading = self.runtime.spawn_blocking(move || {
            // Given back with the snapshot, also when nobody waits for the answer any more.
            let _permit = permit;
            let _under_way = under_way;
            let snapshot = store.snapshot()?;
            let result = read(&snapshot).inspect_err(|error| {
                if error.is_damage() {
                    damaged(error);
                }
            });
            result.map_err(Error::from)
        });
        done(reading.await)
    }

    /// Whether more than half of what reads need is free.
    pub fn has_readers_to_spare(&self) -> bool {
        2 * self.readers.available_permits() > self.readers_max
    }

    /// The bodies of leaves, in order; those that are not at hand are read.
    pub async fn bodies(self: &Arc<Self>, leaves: Vec<Option<LeafBody>>) -> Result<Vec<Option<Body>>, Error> {
        let here = |leaf: &Option<LeafBody>| match leaf {
            Some(LeafBody::Here(body)) => Some(Some(body.clone())),
            Some(LeafBody::Stored(_)) => None,
            None => Some(None),
        };
        if let Some(all_here) = leaves.iter().map(here).collect() {
            return Ok(all_here);
        }
        let read = |snapshot: &Snapshot<'_>, leaf: Option<LeafBody>| match leaf {
            Some(leaf) => snapshot.leaf_body(leaf),
            None => Ok(None),
        };
        self.read(move |snapshot| leaves.into_iter().map(|leaf| read(snapshot, leaf)).collect()).await
    }

    /// Has the writer write a request.
    pub async fn submit(&self, request: Request) -> Result<Written, Error> {
        let (asker, answered) = Asker::waiting();
        if !self.hand_over(Load::of(&request), || Job { request, asker })? {
            return Err(self.live.when_gone().await);
        }
        match answered.await {
            Ok(answer) => answer.result,
            // A writer that is gone has finished: its database was closed or deleted meanwhile.
            Err(_gone) => Err(self.live.when_gone().await),
        }
    }

    /// Has the writer write a request that nobody waits for. It is queued when this returns.
    pub async fn enqueue(&self, request: Request, unattended: Unattended) -> Result<(), Error> {
        let is_open = self.writer.connected();
        if !is_open || !self.hand_over(Load::of(&request), || Job { request, asker: Asker::gone(unattended) })? {
            return Err(self.live.when_gone().await);
        }
        Ok(())
    }

    /// Leaves a job with the writer, if it is let in: `false` where no more are, as the database is closed. It is
    /// carried out whether or not who asked is still there.
    fn hand_over(&self, load: Load, job: impl FnOnce() -> Job) -> Result<bool, Error> {
        let pushed = self.queue.push(load, job)?;
        // From the first on it knows that there are some, until it has taken all. As that is bounded, the mailbox need
        // not be.
        if pushed == Pushed::First {
            self.writer.do_send(LookAround);
        }
        Ok(pushed != Pushed::Closed)
    }

    /// Has the writer free all bodies that no leaf needs now, whether there is much garbage or not.
    pub fn reclaim(&self) -> Result<(), Error> {
        if !self.writer.connected() {
            return Err(self.live.gone());
        }
        self.store()?.check_writable()?;
        // While a sweep goes on the writer knows: however often it is asked for, one message waits.
        if self.sweeping.start_whole() {
            self.writer.do_send(LookAround);
        }
        Ok(())
    }

    /// The store's figures; `None` of one that is being closed.
    pub fn gauge(&self) -> Option<StoreGauge> {
        Some(self.store().ok()?.gauge())
    }

    /// The store's clock: seconds since 1970.
    pub fn now_secs(&self) -> u64 {
        (self.clock)()
    }

    pub fn touch(&self, now: u64) {
        self.last_used.fetch_max(now, Ordering::Relaxed);
    }

    pub fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Has the writer write what is queued, and take no more: what it has written is all there will be. Feeds go on,
    /// and who asks for a write is answered when it is known why the database is closed.
    pub async fn finish_writing(&self) {
        // An error means that the writer is gone already.
        let _ = self.writer.send(Finish).await;
    }

    /// Ends the feeds, writes what is queued, and closes the store; blocks for as long as a page takes to read. An
    /// error, which is logged, means that the newest writes are in the store's log alone.
    pub async fn close(&self, reason: EndReason) -> Result<(), StorageError> {
        self.live.end(reason);
        self.finish_writing().await;
        let Some(mut store) = self.store.write().take() else { return Ok(()) };
        loop {
            match Arc::try_unwrap(store) {
                Ok(store) => {
                    let folder = store.folder().to_owned();
                    return store.close().inspect_err(|error| {
                        let folder = folder.display();
                        tracing::error!(%folder, %error, "closed with its newest writes in the log alone");
                    });
                }
                Err(being_read) => store = being_read,
            }
            // Pages being read are capped in time, and no new ones start.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::timeout;

    use super::*;
    use crate::{Engine, EngineOptions};

    /// The work of a future that was dropped stayed with its runtime, and what it held with it.
    #[test]
    fn who_has_given_up_on_a_runtime_that_stands_still_keeps_nobody_from_reading() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::new(folder.path());
        options.store.readers_max = READERS_SPARE as u32 + 1;
        let engine = Engine::start_with(options).unwrap();
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
        let (running, standing) = (runtime(), runtime());
        let database = running.block_on(async { engine.create_database("db").await?.opened().await }).unwrap();
        let (release, released) = mpsc::channel::<()>();
        let held = {
            let database = Arc::clone(&database);
            running.spawn(async move { database.read(move |_| Ok(released.recv().is_err())).await })
        };
        running.block_on(async {
            while database.readers.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
        });
        let gives_up = async { timeout(Duration::ZERO, database.read(|_| Ok(1))).await.is_err() };
        assert!(standing.block_on(gives_up), "it has to wait");
        drop(release);
        assert!(running.block_on(held).unwrap().unwrap());
        let next = running.block_on(async { timeout(Duration::from_secs(30), database.read(|_| Ok(2))).await });
        assert_eq!(next.expect("one that was given up is in its way").unwrap(), 2);
        // Nor does one for which its runtime has no thread.
        let (release, released) = mpsc::channel::<()>();
        let _busy = standing.spawn_blocking(move || released.recv().is_err());
        let _given_up = standing.block_on(async { timeout(Duration::ZERO, database.read(|_| Ok(3))).await });
        let next = running.block_on(async { timeout(Duration::from_secs(30), database.read(|_| Ok(4))).await });
        assert_eq!(next.expect("one that never began is in its way").unwrap(), 4);
        drop(release);
        running.block_on(engine.shutdown()).unwrap();
    }

    /// A feed that is not asked for anything, as nobody takes what it gives, kept others from reading.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_waited_for_a_reader_and_is_not_asked_any_more_keeps_nobody_from_reading() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = EngineOptions::new(folder.path());
        options.store.readers_max = READERS_SPARE as u32 + 1;
        let engine = Engine::start_with(options).unwrap();
        let database = engine.create_database("db").await.unwrap().opened().await.unwrap();
        let (release, released) = mpsc::channel::<()>();
        let held = {
            let database = Arc::clone(&database);
            tokio::spawn(async move { database.read(move |_| Ok(released.recv().is_err())).await })
        };
        while database.readers.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let mut stalled = Box::pin(database.read(|_| Ok(1)));
        assert!(timeout(Duration::ZERO, &mut stalled).await.is_err(), "it has to wait");
        let next = {
            let database = Arc::clone(&database);
            tokio::spawn(async move { database.read(|_| Ok(2)).await })
        };
        drop(release);
        assert!(held.await.unwrap().unwrap());
        let read = timeout(Duration::from_secs(30), next).await.expect("the one before it is not polled");
        assert_eq!(read.unwrap().unwrap(), 2);
        assert_eq!(stalled.await.unwrap(), 1);
        engine.shutdown().await.unwrap();
    }
}
