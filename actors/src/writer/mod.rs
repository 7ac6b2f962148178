//! The writer of a database: an actor that gathers what arrives while it commits, and writes it as one.

pub(crate) mod asker;
mod commit;
pub(crate) mod committers;
pub(crate) mod load;
pub(crate) mod queue;
mod rest;
#[cfg(target_os = "linux")]
mod short_slices;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{
    Attempt, Commit, MadeUp, Outcome, PageLimits, ReclaimPolicy, Request, RequestOutcome, StorageError, Store, Tended,
    Write, unwinding,
};
use tokio::sync::oneshot;
use tokio::task::yield_now;

use self::asker::Asker;
pub(crate) use self::commit::WriteCommit;
use self::commit::{LONG, Made, made, made_beside, may_take_long};
use self::load::Load;
use self::queue::{Job, Queue};
use crate::end_reason::EndReason;
use crate::error::Error;
use crate::indexing::Indexing;
use crate::live::Live;
use crate::metrics::{self, WriterMetrics};
use crate::rounds::{Answers, HELD_MAX};
use crate::sweep::Sweeping;

/// How much one slice of background work goes through, be that bodies to reclaim or an index's past: some milliseconds
/// between two commits.
const SLICE: PageLimits = PageLimits { rows_max: 1_000, bytes_max: 1 << 20, time_max: Duration::from_millis(20) };

/// It is said at most so often that commits fail in the same way. All are counted.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// What became of a request's writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// One outcome a write, in order.
    pub outcomes: Vec<Outcome>,
    /// The highest sequence the request produced; the current one where it changed nothing.
    pub seq: Sequence,
    /// How its database writes that.
    pub seq_format: SeqFormat,
    /// The ids that were made for its documents, when the request was first sent.
    pub made_ids: Vec<DocId>,
    /// Whether the request was carried out before and this is its answer of then: nothing was written this time.
    pub replayed: bool,
}

impl Written {
    /// What a store with sequences of this format says of a request, unless its key belongs to another one.
    pub(crate) fn from_outcome(outcome: RequestOutcome, seq_format: SeqFormat) -> Result<Written, Error> {
        let RequestOutcome { outcomes, seq, made_ids, attempt } = outcome;
        match attempt {
            Attempt::KeyReused => Err(Error::KeyReused),
            Attempt::Moved => Err(Error::Moved),
            Attempt::First => Ok(Written { outcomes, seq, seq_format, made_ids, replayed: false }),
            Attempt::Replayed => {
                metrics::replayed();
                Ok(Written { outcomes, seq, seq_format, made_ids, replayed: true })
            }
        }
    }
}

/// There may be something to do: something has come to the queue, or is to be done in the background.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct LookAround;

/// Finish what is queued, then stop. Answers when the writer has let go of the store. Who asks for it ends the feeds.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Finish;

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

    /// By how much what waits fills a queue, as far as edits or bytes do most: one from 1 on is full.
    pub fn filled_by(&self, waiting: Load) -> f64 {
        let of = |waiting: usize, most: usize| waiting as f64 / most.max(1) as f64;
        of(waiting.edits, self.queue_edits_max).max(of(waiting.bytes, self.queue_bytes_max))
    }
}

/// What goes on between commits, for all to see.
#[derive(Clone)]
pub(crate) struct Background {
    /// The sweep for unneeded bodies that goes on when there is nothing else to do.
    pub sweeping: Arc<Sweeping>,
    /// The work on the index of the feed, which takes turns with commits.
    pub indexing: Arc<Indexing>,
}

/// One piece of work; between two of them the writer takes in what has come.
enum Work {
    /// Write what is queued, as one commit.
    Commit,
    /// Free some bodies that no leaf needs.
    Reclaim,
    /// Go on with the index of the feed.
    Index,
}

pub(crate) struct Writer {
    store: Arc<Store>,
    live: Arc<Live>,
    write: Arc<WriteCommit>,
    reclaim: ReclaimPolicy,
    metrics: WriterMetrics,
    queue: Arc<Queue>,
    /// Whether its next turn to work is coming.
    turn_comes: bool,
    /// Whether there was no room for the last commit that needed some.
    full: bool,
    /// Whether the sweep that goes on takes turns with commits, as it began because there was no room.
    sweep_hurries: bool,
    /// Whether the last work was a slice of something else than a commit.
    sliced_last: bool,
    /// Whether the last commit took long. The next is made beside this thread, on which other writers wait.
    was_long: bool,
    background: Background,
    /// Whether the work on the index waits for a commit to go right again.
    index_waits: bool,
    /// Whether it has been said that the work on the index does not get on.
    index_ails: bool,
    /// Likewise of reclaiming.
    reclaim_ails: bool,
    /// How a commit failed, as it was last said, and when.
    failure_said: Option<(String, Instant)>,
    /// Whether it looks soon for answers that have waited for feeds too long.
    release_comes: bool,
    finishing: Vec<oneshot::Sender<()>>,
    finished: bool,
}

impl Writer {
    /// A writer of what comes to the queue. Who asks hears when it is durable and visible.
    pub fn new(
        store: Arc<Store>,
        live: Arc<Live>,
        background: Background,
        queue: Arc<Queue>,
        reclaim: ReclaimPolicy,
        write: Arc<WriteCommit>,
    ) -> Writer {
        Writer {
            store,
            live,
            write,
            reclaim,
            metrics: WriterMetrics::default(),
            queue,
            turn_comes: false,
            full: false,
            sweep_hurries: false,
            sliced_last: false,
            was_long: false,
            background,
            index_waits: false,
            index_ails: false,
            reclaim_ails: false,
            failure_said: None,
            release_comes: false,
            finishing: Vec::new(),
            finished: false,
        }
    }

    /// What is to be done next: a commit, or a slice of background work when there is none. What somebody waits for
    /// takes turns with commits, for under load the queue is never empty: an index, and reclaiming where there is no
    /// room.
    fn next_work(&self) -> Option<Work> {
        let (sweeps, finishes) = (self.background.sweeping.now().is_some(), !self.finishing.is_empty());
        let makes_room = self.sweep_hurries && sweeps;
        let indexes = !makes_room && !self.index_waits && self.background.indexing.now().is_some();
        let slice_first = (makes_room || indexes) && !finishes && !self.sliced_last;
        if !self.queue.is_empty() && !slice_first {
            Some(Work::Commit)
        } else if finishes {
            None
        } else if indexes {
            Some(Work::Index)
        } else {
            sweeps.then_some(Work::Reclaim)
        }
    }

    /// Has its turn come if there is something to do: when the other writers of its thread have had theirs, and it has
    /// taken in what has come until then.
    fn look_around(&mut self, ctx: &mut Context<Writer>) {
        if !self.turn_comes && (self.next_work().is_some() || !self.finishing.is_empty()) {
            self.turn_comes = true;
            let turn = yield_now().into_actor(self);
            ctx.spawn(turn.map(|(), writer, ctx| writer.take_turn(ctx)));
        }
    }

    fn take_turn(&mut self, ctx: &mut Context<Writer>) {
        self.turn_comes = false;
        let work = self.next_work();
        self.sliced_last = matches!(work, Some(Work::Reclaim | Work::Index));
        if work.is_some() {
            rest::count_work();
        }
        match work {
            Some(Work::Commit) => return self.commit(ctx),
            Some(Work::Reclaim) => self.reclaim(),
            Some(Work::Index) => self.tend_index(),
            None if !self.finishing.is_empty() => return self.stop(ctx),
            None => {}
        }
        self.tell_made_up();
        self.look_around(ctx);
    }

    /// Makes a commit of what is queued. One that may take long is made beside this thread, for which other writers
    /// wait: this one alone waits for it.
    fn commit(&mut self, ctx: &mut Context<Writer>) {
        let mut jobs = if self.full { self.queue.take_alike() } else { self.queue.take() };
        let requests: Vec<_> = jobs.iter_mut().map(|job| std::mem::take(&mut job.request)).collect();
        let requests = Arc::new(requests);
        let may_take_long = self.was_long || may_take_long(&requests);
        let beside = may_take_long.then(|| made_beside(&self.store, &requests, &self.write)).flatten();
        let Some(beside) = beside else {
            let made = made(&self.store, &requests, &*self.write);
            return self.decided(made, jobs, Arc::unwrap_or_clone(requests), ctx);
        };
        ctx.wait(beside.into_actor(self).map(move |made, writer, ctx| {
            let made = made.unwrap_or_else(|_ended| Made::broken(requests.len()));
            writer.decided(made, jobs, Arc::unwrap_or_clone(requests), ctx);
        }));
    }

    /// It is known what became of the requests of these jobs: tells of it, and goes on.
    fn decided(&mut self, made: Made, jobs: Vec<Job>, requests: Vec<Request>, ctx: &mut Context<Writer>) {
        let Made { committed, took } = made;
        self.was_long = took >= LONG;
        let mut jobs = jobs.into_iter().zip(requests).map(|(job, request)| Job { request, ..job });
        for (of_so_many, result) in committed {
            let jobs = jobs.by_ref().take(of_so_many).collect();
            match result {
                Ok(commit) => self.committed(commit, jobs, took, ctx),
                Err(error) => self.failed(error, jobs),
            }
        }
        self.tell_made_up();
        self.look_around(ctx);
    }

    fn reclaim(&mut self) {
        match unwinding(|| self.store.reclaim(SLICE)) {
            Ok(reclaimed) => {
                self.reclaim_ails = false;
                self.metrics.reclaimed(reclaimed.bytes);
                self.background.sweeping.examined(reclaimed);
            }
            Err(error) => {
                // Where there is no room it is tried again with each commit that fails, and said once.
                if !std::mem::replace(&mut self.reclaim_ails, true) {
                    tracing::error!(%error, folder = %self.store.folder().display(), "reclaiming failed");
                }
                self.background.sweeping.stop();
            }
        }
        self.sweep_hurries = self.sweep_hurries && self.background.sweeping.now().is_some();
    }

    /// Makes visible what was due since the opening and has been written now, whatever the work was that it came with.
    fn tell_made_up(&self) {
        let Some(MadeUp { update_seq, reindex }) = self.store.take_made_up() else { return };
        if update_seq > self.live.newest() {
            self.live.publish(Vec::new(), &[], &[], [], update_seq);
            self.store.note_seen(update_seq);
        }
        if reindex {
            self.background.indexing.redefined();
        }
    }

    fn tend_index(&mut self) {
        match unwinding(|| self.store.tend_feed_index(SLICE)) {
            Ok(Tended { done, .. }) => {
                self.index_ails = false;
                self.background.indexing.got_on(done);
            }
            Err(error) => self.index_failed(&error),
        }
    }

    /// Durable by now; makes it visible, then acknowledges.
    fn committed(&mut self, commit: Commit, jobs: Vec<Job>, took: Duration, ctx: &mut Context<Writer>) {
        let carried_out = || commit.requests.iter().filter(|request| request.attempt == Attempt::First);
        // Where nothing changes, nothing is written or synced: it would pass for a commit that takes no time.
        if carried_out().flat_map(|request| &request.outcomes).any(Outcome::is_change) {
            let edits = carried_out().map(|request| request.outcomes.len()).sum();
            self.metrics.committed(edits, commit.changes.len(), took);
        }
        let purged = jobs.iter().zip(&commit.requests).flat_map(|(job, done)| purged(&job.request, done));
        self.live.publish(commit.changes, &commit.gone, &commit.vanished, purged, commit.counters.update_seq);
        self.store.note_seen(commit.counters.update_seq);
        self.full = self.full && jobs.iter().all(|job| job.request.makes_room());
        if commit.reindex {
            self.background.indexing.redefined();
        }
        self.index_waits = self.index_waits && self.full && !commit.reindex;
        // Before the answers: who has one finds the sweep going on, which keeps the database open.
        if commit.sweep {
            self.background.sweeping.start_whole();
        } else if self.full {
            self.make_room();
        } else if self.reclaim.due(&commit.counters) {
            self.background.sweeping.start();
        }
        let (answers, format) = (jobs.into_iter().zip(commit.requests), self.store.seq_format());
        self.answer_in_step(
            commit.counters.update_seq,
            answers.map(|(Job { asker, request }, outcome)| (asker, Written::from_outcome(outcome, format), request)),
            ctx,
        );
    }

    /// Nothing of it was written. Where there was no room, what makes some is tried once more, a little at a time and
    /// without what needed some, and garbage is reclaimed, however little there is.
    fn failed(&mut self, error: StorageError, jobs: Vec<Job>) {
        let full = is_full(&error);
        self.metrics.failed();
        // Clients that try again would fill the log too. Where many come upon the same damage it is said once.
        let says = error.to_string();
        let is_said = (full && self.full)
            || self.failure_said.as_ref().is_some_and(|(said, at)| *said == says && at.elapsed() < SAY_AGAIN);
        if !is_said {
            tracing::error!(error = says, folder = %self.store.folder().display(), "a commit failed");
            self.failure_said = Some((says, Instant::now()));
        }
        let again = full && !self.full;
        self.full = self.full || full;
        if full {
            self.make_room();
        }
        let (again, refused) = jobs.into_iter().partition(|job| again && job.request.makes_room());
        self.queue.put_back(again);
        let error = Error::from(error);
        refused.into_iter().for_each(|job: Job| job.asker.tell(Err(error.clone())));
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
            self.make_room();
        }
    }

    /// Has a sweep take turns with commits, from now on.
    fn make_room(&mut self) {
        self.background.sweeping.start();
        self.sweep_hurries = true;
    }

    /// Tells what became of a commit that brought the update sequence to `seq`, at once or when feeds keep up with it.
    fn answer_in_step(
        &mut self,
        seq: Sequence,
        answers: impl Iterator<Item = (Asker, Result<Written, Error>, Request)>,
        ctx: &mut Context<Writer>,
    ) {
        if !self.live.rounds.holds_back(seq) {
            return answers.for_each(|(asker, answer, asked)| asker.tell_of(answer, asked));
        }
        // What is asked for is not kept.
        let answers = answers.map(|(asker, answer, _)| (asker, answer));
        // Who has to try again is not kept from it.
        let (waited_for, others): (Answers, Answers) =
            answers.partition(|(asker, answer)| asker.waits() && answer.is_ok());
        let not_kept = self.live.rounds.keep(seq, waited_for);
        others.into_iter().chain(not_kept).for_each(|(asker, answer)| asker.tell(answer));
        self.release_in_time(ctx);
    }

    /// Sees to it that no answer waits for feeds longer than it may.
    fn release_in_time(&mut self, ctx: &mut Context<Writer>) {
        if self.release_comes {
            return;
        }
        if let Some(next) = self.live.rounds.release_after(HELD_MAX) {
            self.release_comes = true;
            ctx.run_later(next, |writer, ctx| {
                writer.release_comes = false;
                writer.release_in_time(ctx);
            });
        }
    }

    fn stop(&mut self, ctx: &mut Context<Writer>) {
        ctx.stop();
        self.finished = true;
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
        self.look_around(ctx);
    }
}

/// Nothing changes any more when the writer is gone: no feed waits in vain, if nobody else ends them.
impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.end();
        self.background.sweeping.stop();
        self.background.indexing.stop();
        if !self.finished {
            self.live.end(EndReason::Shutdown);
        }
        self.live.rounds.release_after(Duration::ZERO);
    }
}

impl Handler<LookAround> for Writer {
    type Result = ();

    fn handle(&mut self, _: LookAround, ctx: &mut Context<Writer>) {
        self.look_around(ctx);
    }
}

impl Handler<Finish> for Writer {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Finish, ctx: &mut Context<Writer>) -> Self::Result {
        let (finished, stopped) = oneshot::channel();
        self.finishing.push(finished);
        self.queue.close();
        self.look_around(ctx);
        Box::pin(async move {
            // An error means that the writer is gone, which is what was asked for.
            let _ = stopped.await;
        })
    }
}
