//! Whoever asked for a write, and hears what became of it.

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::{LocalEdit, Outcome, Request, Write};
use tokio::sync::oneshot;

use super::Written;
use crate::error::Error;
use crate::metrics;

/// Who asked for a write, and is told once what became of it.
pub(crate) struct Asker(Option<Who>);

/// What became of a write.
#[derive(Debug)]
pub(crate) struct Answer {
    pub result: Result<Written, Error>,
    /// What was asked for, where it need not be given up before: who has taken its memory gives that back soonest.
    _asked: Request,
}

enum Who {
    /// Waits for the answer; who is not told finds out why.
    Waiting(oneshot::Sender<Answer>),
    /// Has gone on.
    Gone(Unattended),
}

impl Asker {
    /// One that waits, and where the answer comes.
    pub fn waiting() -> (Asker, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        (Asker(Some(Who::Waiting(answer))), answered)
    }

    /// One that has gone on.
    pub fn gone(unattended: Unattended) -> Asker {
        Asker(Some(Who::Gone(unattended)))
    }

    /// Whether it hears what became of the write.
    pub fn waits(&self) -> bool {
        matches!(self.0, Some(Who::Waiting(_)))
    }

    /// Says what became of the write.
    pub fn tell(self, result: Result<Written, Error>) {
        self.tell_of(result, Request::default());
    }

    /// The same of the request that was asked for.
    pub fn tell_of(mut self, result: Result<Written, Error>, asked: Request) {
        match self.0.take() {
            // Whoever waited may be gone by now; the write stands all the same.
            Some(Who::Waiting(answer)) => drop(answer.send(Answer { result, _asked: asked })),
            Some(Who::Gone(unattended)) => unattended.report(result),
            None => {}
        }
    }
}

/// Whatever a queued write is lost with, it is not lost without a word.
impl Drop for Asker {
    fn drop(&mut self) {
        if let Some(Who::Gone(unattended)) = self.0.take() {
            unattended.was_not_made("its database was closed or deleted before its turn");
        }
    }
}

/// A write that nobody waits for, as it is told of.
pub(crate) struct Unattended {
    /// Where it was to be written.
    database: DbName,
    /// The id of what was to be written.
    id: String,
}

impl Unattended {
    pub fn new(database: &DbName, write: &Write) -> Unattended {
        let id = match write {
            Write::Edit(edit) => edit.id().to_string(),
            Write::Purge { id, .. } => id.to_string(),
            Write::Local(LocalEdit { id, .. }) => id.to_string(),
            Write::RevsLimit(_) => "_revs_limit".to_owned(),
            Write::Decided { .. } => "what changes nothing".to_owned(),
            Write::FeedIndex(_) => "_feed_index".to_owned(),
        };
        Unattended { database: database.clone(), id }
    }

    /// Logs and counts it, if that says that it was not made.
    pub fn report(self, result: Result<Written, Error>) {
        let why = match result {
            Ok(Written { outcomes, .. }) => outcomes.iter().find_map(why_not),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = why {
            self.was_not_made(&reason);
        }
    }

    fn was_not_made(self, reason: &str) {
        let Unattended { database, id } = self;
        metrics::unattended_failed();
        tracing::warn!(id, reason, %database, "a write nobody waits for was not made");
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
