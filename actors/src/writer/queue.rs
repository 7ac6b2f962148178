//! What waits to be written, in the order in which it came, and when that is enough. Whoever asks adds to it, and so is
//! refused at once where it is full; the writer takes from it what it writes as one commit.

use std::collections::VecDeque;
use std::mem::replace;

use parking_lot::Mutex;
use seqtide_storage::Request;

use super::WriterLimits;
use super::asker::Asker;
use super::load::Load;
use crate::error::Error;

/// Most of one commit: what is beyond waits for the next, so that no commit takes long.
pub(super) const COMMIT_MAX: Load = Load { edits: 10_000, bytes: 64 << 20 };

/// Most of one commit that makes room in a full database: the reserve for it has few pages.
const MAKING_ROOM_MAX: Load = Load { edits: 50, bytes: 1 << 20 };

/// A request and who asked for it.
pub(crate) struct Job {
    pub request: Request,
    pub asker: Asker,
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is the first that waits: the writer does not know.
    First,
    /// Others wait before it.
    Behind,
    /// No more come: it was not made.
    Closed,
}

/// The jobs that wait for a database's writer.
pub(crate) struct Queue {
    limits: WriterLimits,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<(Job, Load)>,
    /// Of all of them.
    load: Load,
    /// No more come.
    is_closed: bool,
}

impl Queue {
    pub fn new(limits: WriterLimits) -> Queue {
        Queue { limits, waiting: Mutex::default() }
    }

    /// How much waits now.
    pub fn load(&self) -> Load {
        self.waiting.lock().load
    }

    /// By how much it is filled, by what fills it most: from 1 on it is full.
    pub fn filled(&self) -> f64 {
        self.limits.filled_by(self.load())
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.lock().jobs.is_empty()
    }

    /// Lets a job in that weighs so much, unless it finds too much waiting already.
    ///
    /// # Errors
    /// [`Error::WriteQueueFull`]: then the job was not made.
    pub fn push(&self, load: Load, job: impl FnOnce() -> Job) -> Result<Pushed, Error> {
        let mut waiting = self.waiting.lock();
        self.limits.admit_beside(waiting.load)?;
        if waiting.is_closed {
            return Ok(Pushed::Closed);
        }
        let pushed = if waiting.jobs.is_empty() { Pushed::First } else { Pushed::Behind };
        waiting.load.add(load);
        waiting.jobs.push_back((job(), load));
        Ok(pushed)
    }

    /// Takes the jobs of the next commit: the first ones.
    pub fn take(&self) -> Vec<Job> {
        self.waiting.lock().take_those(COMMIT_MAX, |_| true)
    }

    /// Takes the jobs of the next commit where there is no room: what makes room does not go with what needs some and
    /// fails. Which of them goes is up to the first job.
    pub fn take_alike(&self) -> Vec<Job> {
        let mut waiting = self.waiting.lock();
        let makes_room = waiting.jobs.front().is_some_and(|(job, _)| job.request.makes_room());
        let max = if makes_room { MAKING_ROOM_MAX } else { COMMIT_MAX };
        waiting.take_those(max, |job| job.request.makes_room() == makes_room)
    }

    /// Puts jobs that were taken first again, however much waits.
    pub fn put_back(&self, jobs: Vec<Job>) {
        let mut waiting = self.waiting.lock();
        for job in jobs.into_iter().rev() {
            let load = Load::of(&job.request);
            waiting.load.add(load);
            waiting.jobs.push_front((job, load));
        }
    }

    /// From now on no more come.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
    }

    /// Drops what waits, and whatever would come: nobody writes it.
    pub fn end(&self) {
        let ended = Waiting { is_closed: true, ..Waiting::default() };
        let left = replace(&mut *self.waiting.lock(), ended);
        // Behind the lock: who asked may do as it likes.
        drop(left);
    }
}

impl Waiting {
    fn take_those(&mut self, max: Load, which: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (mut taken, mut passed_over, mut all) = (Vec::with_capacity(self.jobs.len()), Vec::new(), Load::default());
        while let Some((job, load)) = self.jobs.pop_front_if(|(job, load)| !which(job) || all.has_room_for(*load, max))
        {
            if which(&job) {
                taken.push(job);
                all.add(load);
            } else {
                passed_over.push((job, load));
            }
        }
        self.load.take_off(all);
        passed_over.into_iter().rev().for_each(|passed_over| self.jobs.push_front(passed_over));
        taken
    }
}
