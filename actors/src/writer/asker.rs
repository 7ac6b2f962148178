//! Whoever asked for a write, and hears what became of it.

use seqtide_storage::{LocalEdit, Outcome, Write};
use tokio::sync::oneshot;

use super::Written;
use crate::error::Error;
use crate::metrics::WriterMetrics;

/// Who asked for a write.
pub(super) enum Asker {
    /// Waits for the answer.
    Waiting(oneshot::Sender<Result<Written, Error>>),
    /// Has gone on: a write that fails is logged and counted. The text is the id of what was written.
    Gone(String),
}

impl Asker {
    /// One that waits, and where the answer comes.
    pub fn waiting() -> (Asker, oneshot::Receiver<Result<Written, Error>>) {
        let (answer, answered) = oneshot::channel();
        (Asker::Waiting(answer), answered)
    }

    /// One that has gone on.
    pub fn gone(write: &Write) -> Asker {
        Asker::Gone(match write {
            Write::Edit(edit) => edit.id().to_string(),
            Write::Local(LocalEdit { id, .. }) => id.to_string(),
            Write::RevsLimit(_) => "_revs_limit".to_owned(),
        })
    }

    pub fn tell(self, result: Result<Written, Error>, metrics: &WriterMetrics) {
        let id = match self {
            // Whoever waited may be gone by now; the write stands all the same.
            Asker::Waiting(answer) => return drop(answer.send(result)),
            Asker::Gone(id) => id,
        };
        let refused = |outcome: &Outcome| matches!(outcome, Outcome::Conflict | Outcome::Missing);
        let reason = match result {
            Ok(Written { outcomes, .. }) if !outcomes.iter().any(refused) => return,
            Ok(_) => "the document has another revision than the edit goes on from".to_owned(),
            Err(error) => error.to_string(),
        };
        metrics.unattended_failed();
        tracing::warn!(id, reason, "a write nobody waits for was not made");
    }
}
