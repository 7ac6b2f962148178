//! The writer of a database: an actor that gathers what arrives while a commit is under way, and ships it as one.

pub(crate) mod asker;
pub(crate) mod committer;
pub(crate) mod load;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, ResponseFuture};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{
    Attempt, Commit, Outcome, ReclaimPolicy, Reclaimed, Request, RequestOutcome, StorageError, Store, Tended, Write,
};
use tokio::sync::oneshot;

use self::asker::Asker;
use self::committer::{Committed, Committer, Requests, Work};
use self::load::Load;
use self::queue::{Job, Queue};
use crate::error::Error;
use crate::feed::EndReason;
use crate::indexing::Indexing;
use crate::live::Live;
use crate::metrics::{self, WriterMetrics};
use crate::sweep::Sweeping;

/// What became of a request's writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// One outcome a write, in order.
    pub outcomes: Vec<Outcome>,
    /// The highest sequence the request produced; the current one where it changed nothing.
    pub seq: Sequence,
    /// The ids that were made for its documents, when the request was first sent.
    pub made_ids: Vec<DocId>,
    /// Whether the request was carried out before and this is its answer of then: nothing was written this time.
    pub replayed: bool,
}

impl Written {
    /// What the store says of a request, unless its key belongs to another one.
    pub(crate) fn from_outcome(outcome: RequestOutcome) -> Result<Written, Error> {
        let RequestOutcome { outcomes, seq, made_ids, attempt } = outcome;
        match attempt {
            Attempt::KeyReused => Err(Error::KeyReused),
            Attempt::Moved => Err(Error::Moved),
            Attempt::First => Ok(Written { outcomes, seq, made_ids, replayed: false }),
            Attempt::Replayed => {
                metrics::replayed();
                Ok(Written { outcomes, seq, made_ids, replayed: true })
            }
        }
    }
}

/// Write these, all in one commit. Answers when they are durable and visible.
#[derive(Message)]
#[rtype(result = "Result<Written, Error>")]
pub(crate) struct Submit {
    pub request: Request,
}

/// Write this when its turn comes. Answers when it is queued; what becomes of it is logged if it is not written.
#[derive(Message)]
#[rtype(result = "Result<(), Error>")]
pub(crate) struct Enqueue {
    pub write: Write,
}

/// Free all bodies that no leaf needs now, whether there is much garbage or not.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ReclaimNow;

/// Finish what is queued, then stop. Answers when the writer has let go of the store.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Finish;

/// The committer is done.
#[derive(Message)]
#[rtype(result = "()")]
enum Finished {
    Commit { results: Committed, requests: Requests, shipped: Instant },
    Reclaim { result: Result<Reclaimed, StorageError> },
    Index { result: Result<Tended, StorageError> },
}

/// What bounds a writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterLimits {
    /// Most edits waiting; a request that finds them waiting is refused.
    pub queue_edits_max: usize,
    /// Most bytes of bodies waiting, likewise.
    pub queue_bytes_max: usize,
    pub reclaim: ReclaimPolicy,
}

impl WriterLimits {
    /// Refuses a request when this much waits already.
    pub fn admit_beside(&self, waiting: Load) -> Result<(), Error> {
        let WriterLimits { queue_edits_max: edits_max, queue_bytes_max: bytes_max, .. } = *self;
        if waiting.edits >= edits_max || waiting.bytes >= bytes_max {
            return Err(Error::WriteQueueFull { edits_max, bytes_max });
        }
        Ok(())
    }
}

/// What goes on between commits, for all to see.
pub(crate) struct Background {
    /// The sweep for unneeded bodies that goes on when there is nothing else to do.
    pub sweeping: Arc<Sweeping>,
    /// The work on the index of the feed, which takes turns with commits.
    pub indexing: Arc<Indexing>,
}

pub(crate) struct Writer {
    store: Arc<Store>,
    live: Arc<Live>,
    committer: Committer,
    limits: WriterLimits,
    metrics: WriterMetrics,
    queue: Queue,
    /// The jobs of the commit under way.
    shipped: Vec<Job>,
    /// Whether a commit or a slice of reclaiming is under way.
    busy: bool,
    /// Whether there was no room for the last commit that needed some.
    full: bool,
    /// Whether the last work shipped was a slice of something else than a commit.
    sliced_last: bool,
    background: Background,
    /// Whether the work on the index waits for a commit to go right again.
    index_waits: bool,
    /// Whether it has been said that the work on the index does not get on.
    index_ails: bool,
    finishing: Vec<oneshot::Sender<()>>,
}

impl Writer {
    pub fn new(
        store: Arc<Store>,
        live: Arc<Live>,
        background: Background,
        committer: Committer,
        limits: WriterLimits,
    ) -> Writer {
        Writer {
            store,
            live,
            committer,
            limits,
            metrics: WriterMetrics::default(),
            queue: Queue::default(),
            shipped: Vec::new(),
            busy: false,
            full: false,
            sliced_last: false,
            background,
            index_waits: false,
            index_ails: false,
            finishing: Vec::new(),
        }
    }

    fn enqueue(&mut self, request: Request, asker: Asker) -> Result<(), Error> {
        if !self.finishing.is_empty() {
            return Err(self.live.gone());
        }
        self.limits.admit_beside(self.queue.load)?;
        self.queue.push(request, asker);
        Ok(())
    }

    /// Ships the next commit, or a slice of background work when there is none, unless something is under way. What
    /// somebody waits for takes turns with commits, for under load the queue is never empty: an index, and reclaiming
    /// where there is no room.
    fn ship_if_idle(&mut self, ctx: &mut Context<Writer>) {
        while !self.busy {
            let (sweeps, finishes) = (self.background.sweeping.now().is_some(), !self.finishing.is_empty());
            let makes_room = self.full && sweeps;
            let indexes = !makes_room && !self.index_waits && self.background.indexing.now().is_some();
            let slice_first = (makes_room || indexes) && !finishes && !self.sliced_last;
            if !self.queue.is_empty() && !slice_first {
                self.ship_commit(ctx);
            } else if finishes {
                return self.stop(ctx);
            } else if indexes {
                self.ship_index(ctx);
            } else if sweeps {
                self.ship_reclaim(ctx);
            } else {
                return;
            }
        }
    }

    fn ship_commit(&mut self, ctx: &mut Context<Writer>) {
        self.shipped = if self.full { self.queue.take_alike() } else { self.queue.take() };
        let requests: Vec<_> = self.shipped.iter_mut().map(|job| std::mem::take(&mut job.request)).collect();
        self.sliced_last = false;
        let (writer, shipped) = (ctx.address(), Instant::now());
        let done = Box::new(move |(results, requests)| {
            writer.do_send(Finished::Commit { results, requests, shipped });
        });
        self.busy = true;
        if self.committer.ship(&self.store, Work::Commit { requests, done }).is_err() {
            self.busy = false;
            let jobs = std::mem::take(&mut self.shipped);
            self.answer(jobs, &Error::Stopped);
        }
    }

    fn ship_reclaim(&mut self, ctx: &mut Context<Writer>) {
        let writer = ctx.address();
        let done = Box::new(move |result| writer.do_send(Finished::Reclaim { result }));
        self.busy = self.committer.ship(&self.store, Work::Reclaim { done }).is_ok();
        if !self.busy {
            self.background.sweeping.stop();
        }
        self.sliced_last = true;
    }

    fn ship_index(&mut self, ctx: &mut Context<Writer>) {
        let writer = ctx.address();
        let done = Box::new(move |result| writer.do_send(Finished::Index { result }));
        self.busy = self.committer.ship(&self.store, Work::Index { done }).is_ok();
        if !self.busy {
            self.background.indexing.stop();
        }
        self.sliced_last = true;
    }

    /// Durable by now; makes it visible, then acknowledges.
    fn committed(&mut self, commit: Commit, jobs: Vec<Job>, shipped: Instant) {
        let carried_out = commit.requests.iter().filter(|request| request.attempt == Attempt::First);
        let edits = carried_out.map(|request| request.outcomes.len()).sum();
        self.metrics.committed(edits, commit.changes.len(), shipped.elapsed());
        self.live.purging(jobs.iter().zip(&commit.requests).flat_map(|(job, done)| purged(&job.request, done)));
        self.live.publish(commit.changes, &commit.vanished, commit.counters.update_seq);
        self.full = self.full && jobs.iter().all(|job| job.request.makes_room());
        if commit.reindex {
            self.background.indexing.redefined();
        }
        self.index_waits = self.index_waits && self.full && !commit.reindex;
        for (job, outcome) in jobs.into_iter().zip(commit.requests) {
            self.tell(job.asker, Written::from_outcome(outcome));
        }
        if commit.sweep {
            self.background.sweeping.start_whole();
        } else if self.full || self.limits.reclaim.due(&commit.counters) {
            self.background.sweeping.start();
        }
    }

    /// Nothing of it was written. Where there was no room, what makes some is tried once more without what needed
    /// some, and garbage is reclaimed, however little there is.
    fn failed(&mut self, error: StorageError, jobs: Vec<Job>) {
        let full = is_full(&error);
        // Clients that try again would fill the log too.
        if !(full && self.full) {
            tracing::error!(%error, folder = %self.store.folder().display(), "a commit failed");
        }
        self.full = self.full || full;
        if full {
            self.background.sweeping.start();
        }
        let mixed = full && !jobs.iter().all(|job| job.request.makes_room());
        let (again, refused) = jobs.into_iter().partition(|job| mixed && job.request.makes_room());
        self.queue.put_back(again);
        self.answer(refused, &Error::from(error));
    }

    /// The work on the index did not go on. It does when a commit goes right again; without room for it, when one does
    /// that needs some.
    fn index_failed(&mut self, error: &StorageError) {
        // It is tried again after each commit, and said once.
        if !std::mem::replace(&mut self.index_ails, true) {
            tracing::error!(%error, folder = %self.store.folder().display(), "the feed's index did not get on");
        }
        self.index_waits = true;
        if is_full(error) {
            self.full = true;
            self.background.sweeping.start();
        }
    }

    fn answer(&self, jobs: Vec<Job>, error: &Error) {
        for job in jobs {
            self.tell(job.asker, Err(error.clone()));
        }
    }

    /// A failure that nobody hears of is logged and counted.
    fn tell(&self, asker: Asker, result: Result<Written, Error>) {
        if let Some((id, reason)) = asker.tell(result) {
            metrics::unattended_failed();
            tracing::warn!(id, reason, folder = %self.store.folder().display(), "a write nobody waits for was not made");
        }
    }

    fn stop(&mut self, ctx: &mut Context<Writer>) {
        ctx.stop();
        for finished in self.finishing.drain(..) {
            let _ = finished.send(());
        }
    }
}

/// Whether there was no room.
fn is_full(error: &StorageError) -> bool {
    matches!(error, StorageError::DiskFull { .. } | StorageError::MapFull { .. })
}

/// What a request purged, and at which sequences.
fn purged<'a>(request: &'a Request, done: &'a RequestOutcome) -> impl Iterator<Item = (DocId, Sequence)> + 'a {
    request.writes.iter().zip(&done.outcomes).filter_map(|(write, outcome)| match (write, outcome) {
        (Write::Purge { id, .. }, Outcome::Purged { seq: Some(seq), .. }) => Some((id.clone(), *seq)),
        _ => None,
    })
}

impl Actor for Writer {
    type Context = Context<Writer>;

    /// Goes on with what was left to do when the database was closed.
    fn started(&mut self, ctx: &mut Context<Writer>) {
        self.ship_if_idle(ctx);
    }
}

/// Nothing changes any more when the writer is gone: no feed waits in vain, whatever ended it.
impl Drop for Writer {
    fn drop(&mut self) {
        self.background.sweeping.stop();
        self.background.indexing.stop();
        self.live.end(EndReason::Shutdown);
    }
}

impl Handler<Submit> for Writer {
    type Result = ResponseFuture<Result<Written, Error>>;

    fn handle(&mut self, Submit { request }: Submit, ctx: &mut Context<Writer>) -> Self::Result {
        let (asker, answered) = Asker::waiting();
        let queued = self.enqueue(request, asker);
        self.ship_if_idle(ctx);
        Box::pin(async move {
            queued?;
            answered.await.map_err(|_gone| Error::Stopped)?
        })
    }
}

impl Handler<Enqueue> for Writer {
    type Result = Result<(), Error>;

    fn handle(&mut self, Enqueue { write }: Enqueue, ctx: &mut Context<Writer>) -> Self::Result {
        let asker = Asker::gone(&write);
        let queued = self.enqueue(vec![write].into(), asker);
        self.ship_if_idle(ctx);
        queued
    }
}

impl Handler<ReclaimNow> for Writer {
    type Result = ();

    fn handle(&mut self, _: ReclaimNow, ctx: &mut Context<Writer>) {
        self.background.sweeping.start_whole();
        self.ship_if_idle(ctx);
    }
}

impl Handler<Finish> for Writer {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Finish, ctx: &mut Context<Writer>) -> Self::Result {
        let (finished, stopped) = oneshot::channel();
        self.finishing.push(finished);
        self.ship_if_idle(ctx);
        Box::pin(async move {
            // An error means that the writer is gone, which is what was asked for.
            let _ = stopped.await;
        })
    }
}

impl Handler<Finished> for Writer {
    type Result = ();

    fn handle(&mut self, finished: Finished, ctx: &mut Context<Writer>) {
        self.busy = false;
        match finished {
            Finished::Commit { results, requests, shipped } => {
                let shipped_jobs = std::mem::take(&mut self.shipped).into_iter().zip(requests);
                let mut jobs = shipped_jobs.map(|(job, request)| Job { request, ..job });
                for (of_so_many, result) in results {
                    let jobs = jobs.by_ref().take(of_so_many).collect();
                    match result {
                        Ok(commit) => self.committed(commit, jobs, shipped),
                        Err(error) => self.failed(error, jobs),
                    }
                }
            }
            Finished::Reclaim { result: Ok(reclaimed) } => {
                self.metrics.reclaimed(reclaimed.bytes);
                self.background.sweeping.examined(reclaimed);
            }
            Finished::Reclaim { result: Err(error) } => {
                tracing::error!(%error, folder = %self.store.folder().display(), "reclaiming failed");
                self.background.sweeping.stop();
            }
            Finished::Index { result: Ok(Tended { done, .. }) } => {
                self.index_ails = false;
                self.background.indexing.got_on(done);
            }
            Finished::Index { result: Err(error) } => self.index_failed(&error),
        }
        self.ship_if_idle(ctx);
    }
}
