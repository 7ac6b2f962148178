//! Rounds, in which one reader gives rows to all feeds that give the same, and the answers that wait for them: whoever
//! writes faster than feeds can be served is answered when they keep up, so that what is written does not queue in
//! front of those who read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seqtide_storage::model::sequence::Sequence;
use slab::Slab;

use crate::error::Error;
use crate::metrics;
use crate::writer::Written;
use crate::writer::asker::Asker;

/// An answer waits for feeds no longer than this, whatever they do.
pub(crate) const HELD_MAX: Duration = Duration::from_millis(250);

/// Most answers that wait for feeds; more are given at once.
const HELD_ANSWERS_MAX: usize = 10_000;

/// What a row costs a reader that has not given any yet.
const FIRST_PACE: Duration = Duration::from_millis(1);

/// What became of writes, and whom it is told.
pub(crate) type Answers = Vec<(Asker, Result<Written, Error>)>;

/// The rounds of a database under way, and the answers that wait for them.
pub(crate) struct Rounds {
    /// How long a round is to take at most; without a length nothing waits.
    length: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of each round up to where writes are answered while it goes on.
    under_way: Slab<Sequence>,
    /// In the order of their sequences.
    held: VecDeque<Held>,
    held_answers: usize,
}

/// The answers of a commit.
struct Held {
    /// Its last sequence.
    seq: Sequence,
    since: Instant,
    answers: Answers,
}

impl Rounds {
    /// None yet; each is to take so long at most.
    pub fn new(length: Duration) -> Rounds {
        Rounds { length, state: Mutex::default() }
    }

    /// Whether what was written up to a place waits for a round that is under way.
    pub fn holds_back(&self, seq: Sequence) -> bool {
        self.state.lock().holds_back(seq)
    }

    /// Keeps the answers of a commit until every round gets so far; gives them back where none is in the way.
    pub fn keep(&self, seq: Sequence, answers: Answers) -> Answers {
        let mut state = self.state.lock();
        let is_too_much = state.held_answers + answers.len() > HELD_ANSWERS_MAX;
        // Where there is nothing to keep, nothing waits.
        if answers.is_empty() || is_too_much || !state.holds_back(seq) {
            return answers;
        }
        state.held_answers += answers.len();
        state.held.push_back(Held { seq, since: Instant::now(), answers });
        Answers::new()
    }

    /// Gives the answers that have waited for so long, or longer. Says how long it takes until the next has.
    pub fn release_after(&self, longest: Duration) -> Option<Duration> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let released = state.take(|held| now.duration_since(held.since) >= longest);
        let next = state.held.front().map(|held| longest.saturating_sub(now.duration_since(held.since)));
        drop(state);
        released.into_iter().for_each(Held::release);
        next
    }

    fn begin(&self, answered_up_to: Sequence) -> usize {
        self.state.lock().under_way.insert(answered_up_to)
    }

    fn end(&self, round: usize) {
        let mut state = self.state.lock();
        state.under_way.remove(round);
        let up_to = state.answered_up_to();
        let released = state.take(|held| held.seq <= up_to);
        drop(state);
        released.into_iter().for_each(Held::release);
    }
}

impl State {
    fn answered_up_to(&self) -> Sequence {
        self.under_way.iter().map(|(_, up_to)| *up_to).min().unwrap_or(Sequence::MAX)
    }

    fn holds_back(&self, seq: Sequence) -> bool {
        seq > self.answered_up_to()
    }

    /// Takes the first of what is held, as long as they are ready.
    fn take(&mut self, is_ready: impl Fn(&Held) -> bool) -> Vec<Held> {
        let ready = self.held.iter().take_while(|held| is_ready(held)).count();
        let taken: Vec<Held> = self.held.drain(..ready).collect();
        self.held_answers -= taken.iter().map(|held| held.answers.len()).sum::<usize>();
        taken
    }
}

impl Held {
    fn release(self) {
        metrics::held_back(self.since.elapsed());
        for (asker, answer) in self.answers {
            asker.tell(answer);
        }
    }
}

/// The rounds of one reader, which has them one after the other.
pub struct OwnRounds {
    all: Arc<Rounds>,
    /// How far it has come.
    position: Sequence,
    /// What a sequence took in the last round.
    pace: Duration,
}

/// A round under way; it ends when dropped.
pub struct Round<'a> {
    of: &'a mut OwnRounds,
    place: usize,
}

impl OwnRounds {
    pub(crate) fn new(all: Arc<Rounds>, position: Sequence) -> OwnRounds {
        OwnRounds { all, position, pace: FIRST_PACE }
    }

    /// Begins the round in which rows up to a place are given. Until it ends, those who write beyond what the next one
    /// can give in time are not answered.
    pub fn begin(&mut self, up_to: Sequence) -> Option<Round<'_>> {
        if self.all.length.is_zero() {
            return None;
        }
        let next = self.all.length.as_nanos() / self.pace.as_nanos().max(1);
        let next = u64::try_from(next).unwrap_or(u64::MAX);
        let place = self.all.begin(Sequence::new(up_to.incarnation, up_to.version.saturating_add(next)));
        Some(Round { place, of: self })
    }
}

impl Round<'_> {
    /// Takes note that everyone has been given the rows up to a place, and how long that took.
    pub fn given(&mut self, up_to: Sequence, took: Duration) {
        let sequences = up_to.version.saturating_sub(self.of.position.version).max(1);
        self.of.position = up_to;
        self.of.pace = took / u32::try_from(sequences).unwrap_or(u32::MAX);
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.of.all.end(self.place);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::Receiver;

    use super::*;
    use crate::writer::asker::Answer;

    const LENGTH: Duration = Duration::from_millis(20);

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn rounds() -> Arc<Rounds> {
        Arc::new(Rounds::new(LENGTH))
    }

    fn answer() -> (Answers, Receiver<Answer>) {
        let (asker, answered) = Asker::waiting();
        (vec![(asker, Err(Error::Stopped))], answered)
    }

    #[test]
    fn nothing_waits_without_a_round_or_where_none_has_a_length() {
        assert!(!rounds().holds_back(seq(9)));
        let mut own = OwnRounds::new(Arc::new(Rounds::new(Duration::ZERO)), seq(0));
        assert!(own.begin(seq(1)).is_none());
    }

    #[test]
    fn what_the_next_round_cannot_give_in_time_waits_for_this_one() {
        let all = rounds();
        let mut own = OwnRounds::new(Arc::clone(&all), seq(0));
        let mut round = own.begin(seq(10)).unwrap();
        assert_eq!((all.holds_back(seq(30)), all.holds_back(seq(31))), (false, true), "a millisecond each at first");
        round.given(seq(10), Duration::from_millis(50));
        drop(round);
        assert!(!all.holds_back(seq(31)));
        let _round = own.begin(seq(100)).unwrap();
        assert_eq!((all.holds_back(seq(104)), all.holds_back(seq(105))), (false, true), "5 ms each in the last");
    }

    #[test]
    fn answers_wait_for_the_slowest_round_and_come_in_order() {
        let all = rounds();
        let (mut one, mut other) = (OwnRounds::new(Arc::clone(&all), seq(0)), OwnRounds::new(Arc::clone(&all), seq(0)));
        let (first, second) = (one.begin(seq(1)).unwrap(), other.begin(seq(2)).unwrap());
        let ((early, mut early_answered), (late, mut late_answered)) = (answer(), answer());
        assert!(all.keep(seq(22), early).is_empty());
        assert!(all.keep(seq(23), late).is_empty());
        assert!(early_answered.try_recv().is_err());
        drop(first);
        assert!(early_answered.try_recv().is_ok(), "the other round gets so far");
        assert!(late_answered.try_recv().is_err());
        drop(second);
        assert!(late_answered.try_recv().is_ok());
        assert_eq!(all.keep(seq(99), answer().0).len(), 1, "nothing is kept that no round would release");
    }

    /// It was counted as one that waited.
    #[test]
    fn a_commit_of_which_no_answer_waits_is_not_kept() {
        let all = rounds();
        let mut own = OwnRounds::new(Arc::clone(&all), seq(0));
        let _round = own.begin(seq(1)).unwrap();
        assert!(all.keep(seq(98), Answers::new()).is_empty());
        assert_eq!(all.release_after(HELD_MAX), None, "there is nothing to release");
    }

    #[test]
    fn no_answer_waits_for_longer_than_it_may() {
        let all = rounds();
        let mut own = OwnRounds::new(Arc::clone(&all), seq(0));
        let _round = own.begin(seq(1)).unwrap();
        let (answers, mut answered) = answer();
        all.keep(seq(99), answers);
        let next = all.release_after(Duration::from_secs(3_600)).unwrap();
        assert!(next > Duration::from_secs(3_500) && answered.try_recv().is_err());
        assert_eq!(all.release_after(Duration::ZERO), None);
        assert!(answered.try_recv().is_ok());
    }

    #[test]
    fn answers_beyond_the_bound_are_given_at_once() {
        let all = rounds();
        let mut own = OwnRounds::new(Arc::clone(&all), seq(0));
        let _round = own.begin(seq(1)).unwrap();
        let many = || (0..HELD_ANSWERS_MAX).map(|_| (Asker::waiting().0, Err(Error::Stopped))).collect::<Answers>();
        assert!(all.keep(seq(98), many()).is_empty());
        assert_eq!(all.keep(seq(99), answer().0).len(), 1);
        all.release_after(Duration::ZERO);
        assert!(all.keep(seq(99), many()).is_empty());
    }
}
