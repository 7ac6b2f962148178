//! What waits to be written, as the writer has it.

use std::collections::VecDeque;
use std::sync::Arc;

use seqtide_storage::Request;

use super::asker::Asker;
use super::load::Load;
use super::waiting::{Admitted, Waiting};

/// Most of one commit: what is beyond waits for the next, so that no commit takes long.
pub(super) const COMMIT_MAX: Load = Load { edits: 10_000, bytes: 64 << 20 };

/// Most of one commit that makes room in a full database: the reserve for it has few pages.
const MAKING_ROOM_MAX: Load = Load { edits: 50, bytes: 1 << 20 };

/// A request and who asked for it.
pub(crate) struct Job {
    pub request: Request,
    pub asker: Asker,
}

/// A job that was let in.
pub(crate) struct Queued {
    pub job: Job,
    pub admitted: Admitted,
}

/// Requests in the order they came.
pub(super) struct Queue {
    jobs: VecDeque<Queued>,
    waiting: Arc<Waiting>,
}

impl Queue {
    pub fn new(waiting: Arc<Waiting>) -> Queue {
        Queue { jobs: VecDeque::new(), waiting }
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn push(&mut self, queued: Queued) {
        self.jobs.push_back(queued);
    }

    /// Takes the jobs of the next commit: the first ones.
    pub fn take(&mut self) -> Vec<Job> {
        self.take_those(COMMIT_MAX, |_| true)
    }

    /// Takes the jobs of the next commit where there is no room: what makes room does not go with what needs some and
    /// fails. Which of them goes is up to the first job.
    pub fn take_alike(&mut self) -> Vec<Job> {
        let makes_room = self.jobs.front().is_some_and(|queued| queued.job.request.makes_room());
        let max = if makes_room { MAKING_ROOM_MAX } else { COMMIT_MAX };
        self.take_those(max, |job| job.request.makes_room() == makes_room)
    }

    /// Puts jobs that were taken first again.
    pub fn put_back(&mut self, jobs: Vec<Job>) {
        for job in jobs.into_iter().rev() {
            let admitted = self.waiting.admit_again(Load::of(&job.request));
            self.jobs.push_front(Queued { job, admitted });
        }
    }

    fn take_those(&mut self, max: Load, which: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (mut taken, mut passed_over) = (Vec::new(), VecDeque::new());
        // What is taken waits no more when this is dropped: one by one, that would take a lock for each.
        let mut all: Option<Admitted> = None;
        let load = |all: &Option<Admitted>| all.as_ref().map_or(Load::default(), Admitted::load);
        while let Some(queued) =
            self.jobs.pop_front_if(|queued| !which(&queued.job) || load(&all).has_room_for(queued.admitted.load(), max))
        {
            if !which(&queued.job) {
                passed_over.push_back(queued);
                continue;
            }
            taken.push(queued.job);
            match &mut all {
                Some(all) => all.take_over(queued.admitted),
                None => all = Some(queued.admitted),
            }
        }
        passed_over.append(&mut self.jobs);
        self.jobs = passed_over;
        taken
    }
}
