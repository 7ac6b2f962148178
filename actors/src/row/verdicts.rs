//! What filters have said of a row, remembered so that one that many feeds share is evaluated once.

use std::collections::VecDeque;
use std::convert::Infallible;

use parking_lot::{Mutex, MutexGuard};
use seqtide_storage::LeafRev;

use super::Row;
use crate::filter::{Filter, Passed, Test};
use crate::fingerprint::Fingerprint;
use crate::functions::FilterFunction;
use crate::metrics::FilterMetrics;
use crate::selector::{DocView, Selector};

/// Most verdicts remembered of a row. The oldest goes first: feeds that wait for the same read a row at about the same
/// time. One that is gone is found again at the price of an evaluation.
const VERDICTS_MAX: usize = 8;

/// What filters have said of a row.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<VecDeque<Verdict>>);

#[derive(Debug)]
struct Verdict {
    question: Question,
    passed: Passed,
}

/// What a row is asked: whether it passes a test, and a function if there is one, by its winner or by all leaves. It
/// keeps neither: rows stay for longer than the feeds that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    selector: Option<Fingerprint>,
    conflicts_only: bool,
    function: Option<Fingerprint>,
    all_leaves: bool,
    /// Of the winner that the document had before.
    before: bool,
}

impl Question {
    fn of_test(test: &Test, all_leaves: bool) -> Question {
        let selector = test.selector.as_ref().map(Selector::fingerprint);
        Question { selector, conflicts_only: test.conflicts_only, function: None, all_leaves, before: false }
    }

    fn of_filter(filter: &Filter, all_leaves: bool) -> Question {
        let function = filter.function.as_ref().map(FilterFunction::fingerprint);
        Question { function, ..Question::of_test(&filter.test, all_leaves) }
    }

    fn of_filter_before(filter: &Filter) -> Question {
        Question { before: true, ..Question::of_filter(filter, false) }
    }
}

impl Verdicts {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Verdict>> {
        self.0.lock()
    }

    /// What was said.
    pub fn find(&self, question: Question) -> Option<Passed> {
        find(&self.kept(), question)
    }

    /// Remembers what was said.
    pub fn add(&self, question: Question, passed: Passed) {
        let mut kept = self.kept();
        kept.retain(|verdict| verdict.question != question);
        add(&mut kept, question, passed);
    }

    /// What was said; else what is said now, remembered. Who asks meanwhile waits for that.
    ///
    /// # Errors
    /// Those of `judge`; nothing is remembered then.
    pub fn find_or_add<E>(&self, question: Question, judge: impl FnOnce() -> Result<Passed, E>) -> Result<Passed, E> {
        let mut kept = self.kept();
        if let Some(passed) = find(&kept, question) {
            return Ok(passed);
        }
        let passed = judge()?;
        add(&mut kept, question, passed.clone());
        Ok(passed)
    }
}

fn find(kept: &VecDeque<Verdict>, question: Question) -> Option<Passed> {
    kept.iter().find(|verdict| verdict.question == question).map(|verdict| verdict.passed.clone())
}

fn add(kept: &mut VecDeque<Verdict>, question: Question, passed: Passed) {
    if kept.len() == VERDICTS_MAX {
        kept.pop_front();
    }
    kept.push_back(Verdict { question, passed });
}

/// Why a row is not judged here.
#[derive(Debug)]
pub(crate) enum NotHere {
    /// The bodies of losing leaves are looked at, which only the disk has.
    OnDisk,
    /// It may take long: it is for a thread that may block, see [`Row::judge_at_length`].
    TakesLong,
}

impl Row {
    /// What passes a test, whose `winner` this is. It is evaluated once for everyone who asks, and counted then.
    ///
    /// # Errors
    /// [`NotHere`], unless a verdict from elsewhere is [kept](Row::keep_verdict).
    pub(crate) fn judge(
        &self,
        test: &Test,
        winner: Option<&DocView<'_>>,
        all_leaves: bool,
        counted: &FilterMetrics,
    ) -> Result<Passed, NotHere> {
        let change = &self.change;
        let no_loser = |_| Err(NotHere::OnDisk);
        if test.selector.is_none() {
            return test.judge(change, winner, all_leaves, counted, no_loser);
        }
        if test.opens_losers(change, all_leaves) {
            return self.verdict(test, all_leaves).ok_or(NotHere::OnDisk);
        }
        if test.takes_long(change) {
            return self.verdict(test, all_leaves).ok_or(NotHere::TakesLong);
        }
        let question = Question::of_test(test, false);
        self.verdicts.find_or_add(question, || test.judge(change, winner, false, counted, no_loser))
    }

    /// The same where it may take long and opens no losing leaf, on a thread that may block: nobody else waits for it.
    pub(crate) fn judge_at_length(&self, test: &Test, counted: &FilterMetrics) -> Passed {
        if let Some(passed) = self.verdict(test, false) {
            return passed;
        }
        let winner = DocView::of_winner(&self.change);
        let no_loser = |_| Ok::<_, Infallible>(None);
        let Ok(passed) = test.judge(&self.change, winner.as_ref(), false, counted, no_loser);
        self.keep_verdict(test, false, passed.clone());
        passed
    }

    /// What is remembered of a test.
    pub(crate) fn verdict(&self, test: &Test, all_leaves: bool) -> Option<Passed> {
        self.verdicts.find(self.question(test, all_leaves))
    }

    /// Remembers what passes a test, as was found elsewhere.
    pub(crate) fn keep_verdict(&self, test: &Test, all_leaves: bool, passed: Passed) {
        self.verdicts.add(self.question(test, all_leaves), passed);
    }

    fn question(&self, test: &Test, all_leaves: bool) -> Question {
        Question::of_test(test, test.opens_losers(&self.change, all_leaves))
    }

    /// What is remembered of a filter and the winner that the document had before.
    pub(crate) fn verdict_before(&self, filter: &Filter) -> Option<bool> {
        self.verdicts.find(Question::of_filter_before(filter)).map(|passed| passed != Passed::Nothing)
    }

    /// Remembers whether that one passed.
    pub(crate) fn keep_verdict_before(&self, filter: &Filter, passed: bool) {
        self.verdicts.add(Question::of_filter_before(filter), Passed::all_or_nothing(passed));
    }

    /// What is remembered of a filter's function, behind its test.
    pub(crate) fn function_verdict(&self, filter: &Filter, all_leaves: bool) -> Option<Passed> {
        self.verdicts.find(self.function_question(filter, all_leaves))
    }

    /// Remembers what a filter's function lets pass of what its test does.
    pub(crate) fn keep_function_verdict(&self, filter: &Filter, all_leaves: bool, passed: Passed) {
        self.verdicts.add(self.function_question(filter, all_leaves), passed);
    }

    fn function_question(&self, filter: &Filter, all_leaves: bool) -> Question {
        Question::of_filter(filter, all_leaves && self.change.leaves.len() > 1)
    }
}

/// About how much memory the verdicts of a row take at most, in bytes: each of a document with several leaves may list
/// them.
pub(super) fn weigh_at_most(leaves: usize) -> usize {
    let listed = if leaves > 1 { leaves } else { 0 };
    VERDICTS_MAX * (size_of::<Verdict>() + listed * size_of::<LeafRev>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_of(number: usize) -> Test {
        Test { selector: Some(Selector::from_json(&format!("{{\"n\":{number}}}")).unwrap()), ..Test::NONE }
    }

    fn question(number: usize, all_leaves: bool) -> Question {
        Question::of_test(&test_of(number), all_leaves)
    }

    fn judged(verdicts: &Verdicts, number: usize, says: Passed) -> Result<Passed, ()> {
        verdicts.find_or_add(question(number, false), || Ok(says))
    }

    #[test]
    fn a_test_is_asked_once_and_again_when_it_is_forgotten() {
        let verdicts = Verdicts::default();
        for number in 0..VERDICTS_MAX {
            assert_eq!(judged(&verdicts, number, Passed::All), Ok(Passed::All));
        }
        for number in 0..VERDICTS_MAX {
            assert_eq!(judged(&verdicts, number, Passed::Nothing), Ok(Passed::All), "{number}");
        }
        assert_eq!(judged(&verdicts, VERDICTS_MAX, Passed::All), Ok(Passed::All));
        assert_eq!(judged(&verdicts, 1, Passed::Nothing), Ok(Passed::All));
        assert_eq!(judged(&verdicts, 0, Passed::Nothing), Ok(Passed::Nothing), "the oldest was forgotten");
        assert_eq!(verdicts.kept().len(), VERDICTS_MAX);
    }

    #[test]
    fn what_is_found_elsewhere_takes_the_place_of_what_was_there() {
        let verdicts = Verdicts::default();
        verdicts.add(question(1, true), Passed::Nothing);
        verdicts.add(question(1, true), Passed::All);
        assert_eq!(verdicts.find(question(1, true)), Some(Passed::All));
        assert_eq!((verdicts.find(question(1, false)), verdicts.find(question(2, true))), (None, None));
        assert_eq!(verdicts.kept().len(), 1);
    }

    #[test]
    fn an_error_is_not_remembered() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.find_or_add(question(1, false), || Err("disk")), Err("disk"));
        assert_eq!(judged(&verdicts, 1, Passed::All), Ok(Passed::All));
    }
}
