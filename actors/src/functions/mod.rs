//! Functions of design documents: filters, map functions as filters, and validation of writes.
//!
//! They are written by others and may do anything, so they run in worker processes ([`protocol`]) that have no files,
//! no network and no clock to wait on, and that are killed when they take too long or too much memory. What kills a
//! worker fails the batch it was running, and nothing else.

mod check;
mod design;
mod error;
mod filter_function;
mod pool;
pub mod protocol;
mod worker;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

pub(crate) use self::check::check_designs;
pub use self::check::{DesignError, check_design};
pub(crate) use self::design::{DESIGNS_START, Design, design_documents, read_design};
pub use self::error::{FunctionError, NoDesign, NoFunction};
pub use self::filter_function::FilterFunction;
pub(crate) use self::filter_function::{document, raw};
use self::pool::{Pool, Run};
use self::protocol::{Answer, Call, Proposed, Verdict};
pub use self::worker::WorkerCommand;

/// Most bytes of documents in one batch; a batch is at least one document.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// What a document counts for beside its body.
pub(crate) const DOCUMENT_BYTES: usize = 128;

/// Most pages that all feeds together have read and not been answered about.
const PAGES_MAX: usize = 64;

/// How functions are run.
#[derive(Debug, Clone)]
pub struct FunctionsOptions {
    /// How a worker is started. Without it there are no functions, and whatever needs one is refused.
    pub worker: Option<WorkerCommand>,
    /// Most worker processes at once: 2, one of them for writes, to [`FunctionsOptions::WORKERS_MAX`]. Another number
    /// is taken for the nearest of these.
    pub workers_max: usize,
    /// The longest one batch may take, its compiling included; the worker is killed then.
    pub batch_timeout: Duration,
    /// Most batches waiting for a worker; those of one database may be a quarter of them.
    pub waiting_max: usize,
    /// How long a filter that was stopped is refused without being tried.
    pub bench: Duration,
}

impl FunctionsOptions {
    /// No more worker processes run at once.
    pub const WORKERS_MAX: usize = 1024;
}

impl Default for FunctionsOptions {
    fn default() -> FunctionsOptions {
        FunctionsOptions {
            worker: None,
            workers_max: std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8)),
            batch_timeout: Duration::from_secs(5),
            waiting_max: 1_000,
            bench: Duration::from_secs(10),
        }
    }
}

/// Runs functions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Functions {
    /// `None` where there is no worker command.
    pool: Option<Addr<Pool>>,
    /// Bounds what feeds have read and not been answered about.
    pages: Arc<Semaphore>,
    batch_timeout: Duration,
}

impl Functions {
    /// Starts the pool, on a thread of its own; no worker is started before it is needed. Must be called on a thread
    /// of the actors' system.
    ///
    /// # Errors
    /// [`io::Error`] when there is no thread for it.
    pub fn start(options: FunctionsOptions) -> io::Result<Functions> {
        let batch_timeout = options.batch_timeout;
        let pool = Pool::start_with(options)?;
        Ok(Functions { pool, pages: Arc::new(Semaphore::new(PAGES_MAX)), batch_timeout })
    }

    /// How long it takes at most until a function that hangs has been stopped, and stopped again at the document it
    /// hangs at, where nothing else is to be done.
    pub fn verdict_within(&self) -> Duration {
        self.batch_timeout.saturating_mul(2).saturating_add(Duration::from_secs(2))
    }

    /// Waits until a feed may read a page to ask about.
    ///
    /// # Errors
    /// [`FunctionError::EngineStopped`].
    pub async fn page(&self) -> Result<SemaphorePermit<'_>, FunctionError> {
        self.pages.acquire().await.map_err(|_closed| FunctionError::EngineStopped)
    }

    /// Asks a filter of each document whether it passes.
    ///
    /// # Errors
    /// [`FunctionError`].
    pub async fn passes(
        &self,
        function: &FilterFunction,
        docs: Vec<Box<RawValue>>,
    ) -> Result<Vec<bool>, FunctionError> {
        let (design, expected) = (function.design(), docs.len());
        let call = function.call(docs);
        let place = call.place();
        match self.run(design, call).await? {
            Answer::Passes(passes) if passes.len() == expected => Ok(passes),
            other => Err(unexpected(design, place, other)),
        }
    }

    /// Asks a validation function of each new revision whether it may be written.
    ///
    /// # Errors
    /// [`FunctionError`]: then none of them may.
    pub async fn validate(
        &self,
        design: &Design,
        writes: Vec<Proposed>,
        user: Box<RawValue>,
        security: Box<RawValue>,
    ) -> Result<Vec<Verdict>, FunctionError> {
        let expected = writes.len();
        let call = Call::Validate { writes, user, security };
        let place = call.place();
        match self.run(design, call).await? {
            Answer::Verdicts(verdicts) if verdicts.len() == expected => Ok(verdicts),
            other => Err(unexpected(design, place, other)),
        }
    }

    async fn run(&self, design: &Design, call: Call) -> Result<Answer, FunctionError> {
        design.must_be_javascript()?;
        let pool = self.pool.as_ref().ok_or(FunctionError::NoWorkers)?;
        let (reply, answer) = oneshot::channel();
        let sent = pool.send(Run { design: design.clone(), call, reply }).await;
        sent.map_err(|_gone| FunctionError::EngineStopped)?;
        answer.await.map_err(|_gone| FunctionError::EngineStopped)?
    }
}

/// The error for an answer that is none of the good ones.
fn unexpected(design: &Design, function: String, answer: Answer) -> FunctionError {
    let design = design.id().to_owned();
    match answer {
        Answer::Failed(message) => FunctionError::Failed { design, function, message: protocol::shortened(&message) },
        Answer::Stopped(what) => FunctionError::Stopped { design, function, what: protocol::shortened(&what) },
        Answer::Passes(_) | Answer::Verdicts(_) => {
            FunctionError::Broken { design, function, what: "the worker answered something else".to_owned() }
        }
    }
}

/// Cuts what is asked about into batches: at most so many bytes each, and at least one.
pub(crate) fn batches<T>(all: &[T], bytes_of: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut batches, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, one) in all.iter().enumerate() {
        bytes += bytes_of(one);
        if bytes > BATCH_BYTES && at > start {
            batches.push(&all[start..at]);
            (start, bytes) = (at, bytes_of(one));
        }
    }
    batches.extend((start < all.len()).then(|| &all[start..]));
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_as_long_as_they_may_be_and_never_empty() {
        let lengths = |of: &[usize]| batches(of, |bytes| *bytes).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        let half = BATCH_BYTES / 2;
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[half, half, 1, half, 2 * BATCH_BYTES, 1]), [2, 2, 1, 1]);
    }
}
