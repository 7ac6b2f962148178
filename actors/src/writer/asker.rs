//! Whoever asked for a write, and hears what became of it.

use seqtide_storage::{LocalEdit, Outcome, Write};
use tokio::sync::oneshot;

use super::Written;
use crate::error::Error;

/// Who asked for a write.
pub(crate) enum Asker {
    /// Waits for the answer.
    Waiting(oneshot::Sender<Result<Written, Error>>),
    /// Has gone on. The text is the id of what was to be written.
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
            Write::Purge { id, .. } => id.to_string(),
            Write::Local(LocalEdit { id, .. }) => id.to_string(),
            Write::RevsLimit(_) => "_revs_limit".to_owned(),
            Write::Decided(_) => "what changes nothing".to_owned(),
            Write::FeedIndex(_) => "_feed_index".to_owned(),
        })
    }

    /// Whether it hears what became of the write.
    pub fn waits(&self) -> bool {
        matches!(self, Asker::Waiting(_))
    }

    /// Says what became of the write. Gives back what nobody was told: the id, and why it was not written.
    pub fn tell(self, result: Result<Written, Error>) -> Option<(String, String)> {
        let id = match self {
            Asker::Waiting(answer) => {
                // Whoever waited may be gone by now; the write stands all the same.
                let _ = answer.send(result);
                return None;
            }
            Asker::Gone(id) => id,
        };
        let why = match result {
            Ok(Written { outcomes, .. }) => outcomes.iter().find_map(why_not)?,
            Err(error) => error.to_string(),
        };
        Some((id, why))
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
