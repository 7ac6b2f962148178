//! Whoever asked for a write, and hears what became of it.

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::{LocalEdit, Outcome, Write};
use tokio::sync::oneshot;

use super::Written;
use crate::error::Error;
use crate::metrics;

/// Who asked for a write.
pub(crate) enum Asker {
    /// Waits for the answer.
    Waiting(oneshot::Sender<Result<Written, Error>>),
    /// Has gone on.
    Gone {
        /// Where it was to be written.
        database: DbName,
        /// The id of what was to be written.
        id: String,
    },
}

impl Asker {
    /// One that waits, and where the answer comes.
    pub fn waiting() -> (Asker, oneshot::Receiver<Result<Written, Error>>) {
        let (answer, answered) = oneshot::channel();
        (Asker::Waiting(answer), answered)
    }

    /// One that has gone on.
    pub fn gone(database: DbName, write: &Write) -> Asker {
        let id = match write {
            Write::Edit(edit) => edit.id().to_string(),
            Write::Purge { id, .. } => id.to_string(),
            Write::Local(LocalEdit { id, .. }) => id.to_string(),
            Write::RevsLimit(_) => "_revs_limit".to_owned(),
            Write::Decided(_) => "what changes nothing".to_owned(),
            Write::FeedIndex(_) => "_feed_index".to_owned(),
        };
        Asker::Gone { database, id }
    }

    /// Whether it hears what became of the write.
    pub fn waits(&self) -> bool {
        matches!(self, Asker::Waiting(_))
    }

    /// Says what became of the write. A failure that nobody hears of is logged and counted.
    pub fn tell(self, result: Result<Written, Error>) {
        let (database, id) = match self {
            Asker::Waiting(answer) => {
                // Whoever waited may be gone by now; the write stands all the same.
                let _ = answer.send(result);
                return;
            }
            Asker::Gone { database, id } => (database, id),
        };
        let why = match result {
            Ok(Written { outcomes, .. }) => outcomes.iter().find_map(why_not),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = why {
            metrics::unattended_failed();
            tracing::warn!(id, reason, %database, "a write nobody waits for was not made");
        }
    }
}

fn why_not(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Conflict | Outcome::Missing => {
            Some("the document has another revision than the edit goes on from".to_owned())
        }
        Outcome::Refused(refusal) => Some(refusal.reason.clone()),
        _ => None,
    }
}
