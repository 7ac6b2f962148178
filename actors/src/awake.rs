//! Keeps processors awake while commits follow each other closely.
//!
//! A commit is a chain of short waits: for the disk to write and to empty its cache, for the thread that answers, for
//! the client and its next request. A processor that has nothing to do in one of them falls asleep, and waking it takes
//! long, above all a virtual one: together as long as a fast disk. So a thread for each of a few processors goes round
//! in circles there meanwhile. It is of the scheduler's idle class: it gives way at once to every thread of its control
//! group.
//!
//! Many writers at once keep processors busy by themselves, and need the scheduler to put their threads where nothing
//! runs: it does so as a processor runs out of work, which one that is kept awake never does.

use std::hint::spin_loop;
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A commit that begins so soon behind another follows it closely: about as soon as a client nearby that waits for one
/// answer before it asks again.
const CLOSE: Duration = Duration::from_micros(500);

/// A commit that takes longer does not wait for processors.
const COMMIT_MAX: Duration = Duration::from_millis(2);

/// Commits of so many requests, on average, are those of many writers.
const MANY: usize = 8;

/// A commit of more requests counts as one of so many: those of many writers are now small and now large, and one large
/// commit does not make many writers of a few.
const REQUESTS_MAX: usize = 4 * MANY;

/// Over about how many commits the average runs.
const AVERAGED: usize = 16;

/// A thread that nobody has needed for so long ends.
const REST_MAX: Duration = Duration::from_secs(1);

/// A keeper stays at its processor for so long, lest two of them run behind the writers of many databases.
const STAY_MIN: Duration = Duration::from_millis(10);

/// Rounds between two looks at the clock.
const ROUNDS: usize = 32;

/// Where the scheduler does not know such threads, nothing is kept awake.
pub(crate) struct Awake {
    keepers: Vec<Keeper>,
    /// The keeper that goes next to a processor that none keeps awake.
    next: AtomicUsize,
    /// When one did.
    moved: AtomicU64,
    /// What the following are counted from, in nanoseconds.
    epoch: Instant,
    /// When the last commit ended.
    ended: AtomicU64,
    /// Until when processors are kept awake.
    until: AtomicU64,
    /// How many requests a commit has, on average, times [`AVERAGED`].
    requests: AtomicUsize,
    /// Threads that rest, or are about to.
    resting: AtomicUsize,
    rest: Mutex<()>,
    /// The standard library's: a thread that is told by it need not be waited for.
    roused: Condvar,
}

/// A thread that keeps a processor awake.
struct Keeper {
    processor: AtomicUsize,
    /// It has been started, and has not ended. One that cannot do its work counts as started.
    runs: AtomicBool,
}

/// A commit under way; it ends when dropped.
pub(crate) struct Committing<'a> {
    awake: &'a Awake,
    /// Whether processors are kept awake for it.
    keeps: bool,
}

impl Awake {
    /// Keeps at most so many processors awake, those on which commits were made last: none where the process may not
    /// use up the time of those that it has, as far as the system says so when this is made: what is spent on waiting
    /// would be missing later. A share of less than one processor is told as one.
    pub fn new(processors_max: usize) -> Arc<Awake> {
        let processors = system::processors();
        let usable = thread::available_parallelism().map_or(1, NonZero::get);
        let is_limited = usable < processors.len() || usable == 1;
        Awake::keeping(processors.into_iter().take(if is_limited { 0 } else { processors_max }))
    }

    /// Keeps so many processors awake, these at first.
    fn keeping(processors: impl Iterator<Item = usize>) -> Arc<Awake> {
        let keeper = |processor| Keeper { processor: AtomicUsize::new(processor), runs: AtomicBool::new(false) };
        Arc::new(Awake {
            keepers: processors.map(keeper).collect(),
            next: AtomicUsize::new(0),
            moved: AtomicU64::new(0),
            epoch: Instant::now(),
            ended: AtomicU64::new(0),
            until: AtomicU64::new(0),
            requests: AtomicUsize::new(0),
            resting: AtomicUsize::new(0),
            rest: Mutex::new(()),
            roused: Condvar::new(),
        })
    }

    /// Begins a commit of so many requests, on the thread that makes it.
    pub fn commit(self: &Arc<Awake>, requests: usize) -> Committing<'_> {
        let begins = self.now();
        let keeps = !self.keepers.is_empty() && self.is_of_few(requests) && self.follows_closely(begins);
        if keeps {
            self.until.fetch_max(begins + nanos(COMMIT_MAX), Ordering::SeqCst);
            self.look_after(system::this_processor(), begins);
            self.rouse();
        }
        Committing { awake: self, keeps }
    }

    /// Whether a commit of so many requests and those before it are of few writers.
    fn is_of_few(&self, requests: usize) -> bool {
        let before = self.requests.load(Ordering::Relaxed);
        let now = before - before / AVERAGED + requests.min(REQUESTS_MAX);
        self.requests.store(now, Ordering::Relaxed);
        now < MANY * AVERAGED
    }

    fn follows_closely(&self, begins: u64) -> bool {
        begins < self.ended.load(Ordering::Relaxed) + nanos(CLOSE)
    }

    /// Has one of the keepers go to a processor, if none is there and none has gone anywhere just now.
    fn look_after(&self, processor: usize, now: u64) {
        let has_moved = now < self.moved.load(Ordering::Relaxed) + nanos(STAY_MIN);
        if !has_moved && self.keepers.iter().all(|keeper| keeper.processor.load(Ordering::Relaxed) != processor) {
            self.moved.store(now, Ordering::Relaxed);
            let next = self.next.fetch_add(1, Ordering::Relaxed) % self.keepers.len();
            self.keepers[next].processor.store(processor, Ordering::Relaxed);
        }
    }

    /// Has all keepers at work. One that is about to rest, or to end, may be missed until the next commit: who commits
    /// must not wait for the lock of a thread that runs when it pleases others.
    fn rouse(self: &Arc<Awake>) {
        if self.resting.load(Ordering::SeqCst) > 0 {
            self.roused.notify_all();
        }
        for (number, keeper) in self.keepers.iter().enumerate() {
            if !keeper.runs.load(Ordering::Relaxed) && !keeper.runs.swap(true, Ordering::Relaxed) {
                let awake = Arc::clone(self);
                let started = thread::Builder::new().name("awake".to_owned()).spawn(move || awake.keep(number));
                if let Err(error) = started {
                    tracing::debug!(%error, "no thread to keep a processor awake");
                    keeper.runs.store(false, Ordering::Relaxed);
                }
            }
        }
    }

    /// What a keeper's thread does.
    fn keep(&self, number: usize) {
        if let Err(error) = system::become_idle() {
            tracing::debug!(%error, "no processors are kept awake");
            return;
        }
        let keeper = &self.keepers[number];
        let mut stays_at = None;
        loop {
            while self.is_needed() {
                let processor = keeper.processor.load(Ordering::Relaxed);
                if stays_at.replace(processor) != Some(processor) {
                    system::stay_at(processor);
                }
                (0..ROUNDS).for_each(|_| spin_loop());
            }
            if !self.rest() {
                keeper.runs.store(false, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Rests until it is needed; `false` when it was not for too long.
    fn rest(&self) -> bool {
        self.resting.fetch_add(1, Ordering::SeqCst);
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = self.roused.wait_timeout_while(rest, REST_MAX, |()| !self.is_needed());
        let is_needed = !rested.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        self.resting.fetch_sub(1, Ordering::SeqCst);
        is_needed
    }

    fn is_needed(&self) -> bool {
        self.now() < self.until.load(Ordering::SeqCst)
    }

    fn now(&self) -> u64 {
        nanos(self.epoch.elapsed())
    }
}

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        let Committing { awake, keeps } = self;
        let now = awake.now();
        awake.ended.store(now, Ordering::Relaxed);
        if *keeps && awake.is_needed() {
            awake.until.fetch_max(now + nanos(CLOSE), Ordering::SeqCst);
        }
    }
}

/// Of centuries there are not enough nanoseconds.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };

    use super::io;

    /// Those that the process may use.
    pub fn processors() -> Vec<usize> {
        let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
        (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect()
    }

    pub fn this_processor() -> usize {
        sched_getcpu()
    }

    /// Has this thread run at this processor; where that may not be, it stays where it may.
    pub fn stay_at(processor: usize) {
        let mut only = CpuSet::new();
        only.set(processor);
        let _ = sched_setaffinity(None, &only);
    }

    /// Has this thread give way to every other of its control group.
    pub fn become_idle() -> io::Result<()> {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle)
            .map_err(|error| io::Error::other(error.to_string()))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::io;

    pub fn processors() -> Vec<usize> {
        Vec::new()
    }

    pub fn this_processor() -> usize {
        0
    }

    pub fn stay_at(_: usize) {}

    pub fn become_idle() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    /// The scheduler's number of the class whose threads give way to others.
    const IDLE_CLASS: &str = "5";

    /// Whether one of this process's threads that keep processors awake is of the idle class.
    fn is_one_idle() -> bool {
        let threads = fs::read_dir("/proc/self/task").unwrap();
        threads.filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("stat")).ok()).any(|stat| {
            let (before, behind) = stat.rsplit_once(')').unwrap();
            // The 41st field; the name is the second.
            before.ends_with("(awake") && behind.split_whitespace().nth(38) == Some(IDLE_CLASS)
        })
    }

    /// Looks again and again for what comes about sooner or later.
    fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not come about that {what}");
        }
    }

    #[test]
    fn a_commit_follows_closely_for_half_a_millisecond() {
        let awake = Awake::keeping([0].into_iter());
        awake.ended.store(10_000_000, Ordering::Relaxed);
        assert!(awake.follows_closely(10_499_999));
        assert!(!awake.follows_closely(10_500_000));
    }

    #[test]
    fn threads_of_the_idle_class_are_there_while_commits_follow_closely_and_end_when_none_does() {
        let awake = Awake::keeping(system::processors().into_iter().take(2));
        let keepers = awake.keepers.len();
        assert!(keepers > 0);
        wait_for("keepers run, and one is idle", || {
            drop(awake.commit(1));
            Arc::strong_count(&awake) == 1 + keepers && is_one_idle()
        });
        wait_for("they end", || Arc::strong_count(&awake) == 1);
        wait_for("they come again", || {
            drop(awake.commit(1));
            Arc::strong_count(&awake) == 1 + keepers
        });
    }

    #[test]
    fn commits_of_many_requests_are_those_of_many_writers() {
        let awake = Awake::keeping([0].into_iter());
        let are_of_few = |requests: usize, commits: usize| (0..commits).fold(true, |_, _| awake.is_of_few(requests));
        assert!(are_of_few(MANY - 2, 1000));
        assert!(are_of_few(1000, 1), "one says little of the next");
        assert!(!are_of_few(MANY + 2, 1000));
        assert!(!are_of_few(1, 1), "likewise");
        assert!(!are_of_few(1000, 1000));
        assert!(are_of_few(1, 2 * AVERAGED), "however large they were");
        (0..100).for_each(|_| _ = [2, 2, 30].map(|requests| awake.is_of_few(requests)));
        assert_eq!([2, 2, 30].map(|requests| awake.is_of_few(requests)), [false; 3], "what many come to, in turn");
    }

    #[test]
    fn nothing_is_kept_awake_for_many_writers() {
        let awake = Awake::keeping(system::processors().into_iter().take(1));
        awake.requests.store(2 * MANY * AVERAGED, Ordering::Relaxed);
        for _ in 0..1000 {
            // Needed still for the one before, and not for this one.
            let until = awake.now() + nanos(CLOSE) / 2;
            awake.until.store(until, Ordering::SeqCst);
            drop(awake.commit(2 * MANY));
            assert_eq!(awake.until.load(Ordering::SeqCst), until);
        }
        assert_eq!(Arc::strong_count(&awake), 1, "no keeper was started");
    }

    #[test]
    fn nothing_is_kept_awake_where_nothing_may_be() {
        let awake = Awake::new(0);
        (0..100).for_each(|_| drop(awake.commit(1)));
        assert_eq!((Arc::strong_count(&awake), awake.is_needed()), (1, false));
    }

    #[test]
    fn keepers_go_where_commits_are_made() {
        let awake = Awake::keeping([0, 1].into_iter());
        let processors = || awake.keepers.iter().map(|it| it.processor.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let commits = [(1, [0, 1]), (5, [5, 1]), (1, [5, 1]), (5, [5, 1]), (7, [5, 7]), (0, [0, 7])];
        for (number, (here, kept)) in (1..).zip(commits) {
            awake.look_after(here, number * nanos(STAY_MIN));
            assert_eq!(processors(), kept, "after a commit on {here}");
        }
        awake.look_after(3, 7 * nanos(STAY_MIN) - 1);
        assert_eq!(processors(), [0, 7], "one has gone somewhere just now");
    }
}
