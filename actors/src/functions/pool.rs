//! The pool of worker processes: an actor on a thread of its own.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, AsyncContext, Context, Handler, Message};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::{Instant, timeout};

use super::protocol::{Answer, Call, Request};
use super::worker::{Worker, WorkerCommand};
use super::{Design, FunctionError, FunctionsOptions};

/// A worker that nobody needs for so long ends.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// A worker notices most of what takes too long by itself, and is given so much longer to say so.
const GRACE: Duration = Duration::from_millis(250);
/// Most functions remembered as stopped; the oldest are forgotten first.
const BENCHED_MAX: usize = 1000;
/// A database may have this part of all batches that wait.
const SHARES: usize = 4;

/// Run this function, unless whoever asks has gone when its turn comes.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Run {
    pub design: Design,
    pub call: Call,
    pub reply: oneshot::Sender<Result<Answer, FunctionError>>,
}

pub(super) struct Pool {
    shared: Rc<Shared>,
}

struct Shared {
    command: WorkerCommand,
    options: FunctionsOptions,
    /// One permit a worker.
    workers: Semaphore,
    /// Of these, those that filters may keep busy: one is left for validation.
    filtering: Semaphore,
    idle: RefCell<Vec<Worker>>,
    waiting: Cell<usize>,
    /// A database may keep only some of the workers busy, with filters and with validation each: one that is slow
    /// leaves room for others.
    shares: RefCell<HashMap<Whose, Weak<Share>>>,
    /// Filters that were stopped, and when.
    benched: RefCell<Vec<Benched>>,
}

/// A database, and whether it is for validation.
type Whose = ([u8; 16], bool);

/// What one database may have of the workers.
struct Share {
    running: Semaphore,
    waiting: Cell<usize>,
}

impl Pool {
    pub fn start_with(mut options: FunctionsOptions) -> io::Result<Option<Addr<Pool>>> {
        let Some(command) = options.worker.clone() else { return Ok(None) };
        options.workers_max = options.workers_max.clamp(2, FunctionsOptions::WORKERS_MAX);
        let (workers, filtering) = (Semaphore::new(options.workers_max), Semaphore::new(options.workers_max - 1));
        // Its parts are made where they live: they are not `Send`.
        Ok(Some(Pool::start_in_arbiter(&Arbiter::try_new()?.handle(), move |_| {
            let (idle, waiting, shares, benched) = Default::default();
            Pool { shared: Rc::new(Shared { command, options, workers, filtering, idle, waiting, shares, benched }) }
        })))
    }
}

impl Actor for Pool {
    type Context = Context<Pool>;

    fn started(&mut self, ctx: &mut Context<Pool>) {
        ctx.run_interval(IDLE_MAX / 4, |pool, _| {
            pool.shared.idle.borrow_mut().retain(|worker| worker.used.elapsed() < IDLE_MAX);
            pool.shared.shares.borrow_mut().retain(|_, share| share.strong_count() > 0);
        });
    }
}

impl Handler<Run> for Pool {
    type Result = ();

    fn handle(&mut self, run: Run, _: &mut Context<Pool>) {
        let shared = Rc::clone(&self.shared);
        // It goes on without whoever asked, so that what is half done is finished.
        actix::spawn(async move { shared.run(run).await });
    }
}

/// Counts who waits, for as long as it lives.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn join(waiting: &'a Cell<usize>, waiting_max: usize) -> Result<Waiting<'a>, FunctionError> {
        if waiting.get() >= waiting_max {
            return Err(FunctionError::Busy { waiting_max });
        }
        waiting.set(waiting.get() + 1);
        Ok(Waiting(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Shared {
    async fn run(&self, Run { design, call, mut reply }: Run) {
        let validates = matches!(call, Call::Validate { .. });
        let share = self.share_of(&design, validates);
        let turn = tokio::select! {
            biased;
            () = reply.closed() => return,
            turn = self.turn(&share, validates) => turn,
        };
        let answer = match turn {
            Ok(_permits) => self.ask(&design, call).await,
            Err(error) => Err(error),
        };
        // Whoever asked may have left by now.
        let _ = reply.send(answer);
    }

    /// Waits for a worker to be free.
    async fn turn<'a>(&'a self, share: &'a Share, validates: bool) -> Result<Vec<SemaphorePermit<'a>>, FunctionError> {
        let waiting_max = self.options.waiting_max;
        let _waiting = Waiting::join(&self.waiting, waiting_max)?;
        let _of_share = Waiting::join(&share.waiting, waiting_max.div_ceil(SHARES))?;
        let mut permits = Vec::with_capacity(3);
        let filtering = (!validates).then_some(&self.filtering);
        for place in [Some(&share.running), filtering, Some(&self.workers)].into_iter().flatten() {
            permits.push(place.acquire().await.map_err(|_closed| FunctionError::EngineStopped)?);
        }
        Ok(permits)
    }

    async fn ask(&self, design: &Design, call: Call) -> Result<Answer, FunctionError> {
        let function = call.place();
        let filter = filter_identity(design, &call);
        // Of several documents it is not known which one it was: they are asked about again, one by one.
        let alone = call.documents() <= 1;
        self.refuse_benched(design, &function, filter.as_deref())?;
        let broken = |what: io::Error| {
            let (design, function) = (design.id().to_owned(), function.clone());
            FunctionError::Broken { design, function, what: what.to_string() }
        };
        let mut worker = self.worker_for(design).map_err(broken)?;
        let source = (!worker.knows(design.key())).then(|| design.json().to_owned());
        let request = Request { design: design.key().to_string(), source, call };
        let answer = match timeout(self.options.batch_timeout.saturating_add(GRACE), worker.ask(&request)).await {
            Ok(answer) => answer.unwrap_or_else(|error| Answer::Stopped(format!("its process ended ({error})"))),
            Err(_elapsed) => {
                let longest = self.options.batch_timeout.as_millis();
                Answer::Stopped(format!("it took longer than {longest} ms"))
            }
        };
        match &answer {
            Answer::Stopped(why) => self.bench(filter.filter(|_| alone), why),
            _ => self.idle.borrow_mut().push(worker),
        }
        Ok(answer)
    }

    /// Takes an idle worker, one that knows the design document if there is one, or starts one.
    fn worker_for(&self, design: &Design) -> io::Result<Worker> {
        let mut idle = self.idle.borrow_mut();
        // One that something else has ended says nothing about the function.
        idle.retain_mut(Worker::lives);
        let known = idle.iter().position(|worker| worker.knows(design.key()));
        match known.or(idle.len().checked_sub(1)) {
            Some(at) => Ok(idle.swap_remove(at)),
            None => Worker::start(&self.command),
        }
    }

    fn share_of(&self, design: &Design, validates: bool) -> Rc<Share> {
        let mut shares = self.shares.borrow_mut();
        let whose = (design.database(), validates);
        if let Some(share) = shares.get(&whose).and_then(Weak::upgrade) {
            return share;
        }
        let running = Semaphore::new(self.options.workers_max / 2);
        let share = Rc::new(Share { running, waiting: Cell::new(0) });
        shares.insert(whose, Rc::downgrade(&share));
        share
    }

    fn bench(&self, filter: Option<String>, why: &str) {
        let Some(filter) = filter else { return };
        let mut benched = self.benched.borrow_mut();
        if benched.len() >= BENCHED_MAX {
            benched.remove(0);
        }
        benched.push(Benched { filter, why: why.to_owned(), since: Instant::now() });
    }

    fn refuse_benched(&self, design: &Design, function: &str, filter: Option<&str>) -> Result<(), FunctionError> {
        let mut benched = self.benched.borrow_mut();
        benched.retain(|benched| benched.since.elapsed() < self.options.bench);
        let Some(Benched { why, .. }) = benched.iter().rfind(|benched| Some(benched.filter.as_str()) == filter) else {
            return Ok(());
        };
        let what = format!("{why}, less than {} s ago", self.options.bench.as_secs());
        Err(FunctionError::Stopped { design: design.id().to_owned(), function: function.to_owned(), what })
    }
}

/// A filter that is not asked for a while.
struct Benched {
    /// See [`filter_identity`].
    filter: String,
    /// Why it was stopped.
    why: String,
    since: Instant,
}

/// What tells a filter from others, what it is asked included. A feed that comes back meets the document that its
/// filter could not deal with again; validation has none: it is another document's turn.
fn filter_identity(design: &Design, call: &Call) -> Option<String> {
    match call {
        Call::Filter { req, .. } => Some(format!("{} {} {req}", design.key(), call.place())),
        Call::Map { .. } => Some(format!("{} {}", design.key(), call.place())),
        Call::Validate { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use seqtide_storage::json::Body;
    use seqtide_storage::model::doc_id::DocId;
    use seqtide_storage::model::rev::RevId;
    use seqtide_storage::model::sequence::Sequence;
    use serde_json::value::RawValue;

    use super::*;
    use crate::functions::{FilterFunction, Functions};
    use crate::{Engine, EngineOptions};

    /// The map function of a view of a design document.
    fn view(design: &str) -> FilterFunction {
        let body = r#"{"views":{"v":{"map":"(doc) => emit(doc)"}}}"#;
        let body = Body::from_stored(body.as_bytes().into());
        let id = DocId::parse(&format!("_design/{design}")).unwrap();
        FilterFunction::map(Design::new([0; 16], id, (&RevId::parse("1-a").unwrap(), Sequence::ZERO), &body), "v")
            .unwrap()
    }

    fn doc() -> Vec<Box<RawValue>> {
        vec![serde_json::from_str("{}").unwrap()]
    }

    async fn with_worker(worker: Option<WorkerCommand>, test: impl AsyncFnOnce(Functions)) {
        let folder = tempfile::tempdir().unwrap();
        let batch_timeout = Duration::from_millis(50);
        let functions = FunctionsOptions { worker, batch_timeout, ..FunctionsOptions::default() };
        let options = EngineOptions { functions, ..EngineOptions::new(folder.path()) };
        let engine = Engine::start_with(options).unwrap();
        test(engine.inner.functions.clone()).await;
        engine.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn without_a_worker_functions_are_refused() {
        with_worker(None, async |functions: Functions| {
            assert_eq!(functions.passes(&view("a"), doc()).await, Err(FunctionError::NoWorkers));
        })
        .await;
    }

    #[tokio::test]
    async fn a_worker_that_is_silent_is_killed_and_its_function_alone_is_refused_for_a_while() {
        with_worker(Some(WorkerCommand::new("/bin/sleep", ["600"])), async |functions: Functions| {
            let said = |error: Result<_, FunctionError>| error.unwrap_err().to_string();
            let first = said(functions.passes(&view("a"), doc()).await);
            assert!(first.starts_with("views.v.map of _design/a was stopped: it took longer than 50 ms"), "{first}");
            let again = said(functions.passes(&view("a"), doc()).await);
            assert!(again.contains("it took longer than 50 ms, less than 10 s ago"), "{again}");
            let other = said(functions.passes(&view("b"), doc()).await);
            assert!(other.contains("took longer"), "{other}");
        })
        .await;
    }

    #[tokio::test]
    async fn the_longest_time_there_is_may_be_given_to_a_function() {
        let folder = tempfile::tempdir().unwrap();
        let worker = Some(WorkerCommand::new("/bin/cat", [""; 0]));
        let functions =
            FunctionsOptions { worker, batch_timeout: Duration::MAX, bench: Duration::MAX, ..Default::default() };
        let options = EngineOptions { functions, ..EngineOptions::new(folder.path()) };
        let engine = Engine::start_with(options).unwrap();
        let functions = engine.inner.functions.clone();
        let echoed = functions.passes(&view("a"), doc()).await;
        assert!(matches!(echoed, Err(FunctionError::Stopped { .. })), "{echoed:?}");
        assert_eq!(functions.verdict_within(), Duration::MAX);
        engine.shutdown().await.unwrap();
    }

    /// What one database may have of them was half of what was asked for.
    #[tokio::test]
    async fn more_workers_than_there_may_be_may_be_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let worker = Some(WorkerCommand::new("/bin/cat", [""; 0]));
        let functions = FunctionsOptions { worker, workers_max: usize::MAX, ..Default::default() };
        let options = EngineOptions { functions, ..EngineOptions::new(folder.path()) };
        let engine = Engine::start_with(options).unwrap();
        let echoed = engine.inner.functions.passes(&view("a"), doc()).await;
        assert!(matches!(echoed, Err(FunctionError::Stopped { .. })), "{echoed:?}");
        engine.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_worker_that_talks_nonsense_or_is_not_there_is_an_error() {
        // An echo is no answer.
        with_worker(Some(WorkerCommand::new("/bin/cat", [""; 0])), async |functions: Functions| {
            let echoed = functions.passes(&view("a"), doc()).await;
            assert!(matches!(echoed, Err(FunctionError::Stopped { .. })), "{echoed:?}");
        })
        .await;
        with_worker(Some(WorkerCommand::new("/no/such/program", [""; 0])), async |functions: Functions| {
            let missing = functions.passes(&view("a"), doc()).await;
            assert!(matches!(missing, Err(FunctionError::Broken { .. })), "{missing:?}");
        })
        .await;
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_run() {
        with_worker(Some(WorkerCommand::new("/bin/sleep", ["600"])), async |functions: Functions| {
            // Far more than run in the time this test has, were they all run.
            for number in 0..2000 {
                let function = view(&format!("d{number}"));
                let given_up = timeout(Duration::ZERO, functions.passes(&function, doc())).await;
                // Where this thread stands still meanwhile, it may have got a worker that was stopped.
                assert!(matches!(given_up, Err(_) | Ok(Err(FunctionError::Stopped { .. }))), "{given_up:?}");
            }
            let other = timeout(Duration::from_secs(20), functions.passes(&view("other"), doc())).await;
            assert!(matches!(other, Ok(Err(FunctionError::Stopped { .. }))), "{other:?}");
        })
        .await;
    }
}
