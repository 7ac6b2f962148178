//! What filters have said of a row, remembered so that one that many feeds share is evaluated once.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};
use seqtide_storage::LeafRev;

use super::Row;
use crate::filter::{Filter, Passed, Test};
use crate::functions::FilterFunction;
use crate::metrics::FilterMetrics;
use crate::selector::DocView;

/// Most verdicts remembered of a row. The oldest goes first: feeds that wait for the same read a row at about the same
/// time. One that is gone is found again at the price of an evaluation.
const VERDICTS_MAX: usize = 8;

/// What filters have said of a row.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<VecDeque<Verdict>>);

#[derive(Debug)]
struct Verdict {
    test: Test,
    function: Option<FilterFunction>,
    all_leaves: bool,
    before: bool,
    passed: Passed,
}

/// What a row is asked: whether it passes a test, and a function if there is one, by its winner or by all leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub test: &'a Test,
    pub function: Option<&'a FilterFunction>,
    pub all_leaves: bool,
    /// Of the winner that the document had before.
    pub before: bool,
}

impl Verdicts {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Verdict>> {
        self.0.lock()
    }

    /// What was said.
    pub fn find(&self, asked: Asked<'_>) -> Option<Passed> {
        find(&self.kept(), asked)
    }

    /// Remembers what was said.
    pub fn add(&self, asked: Asked<'_>, passed: Passed) {
        let mut kept = self.kept();
        kept.retain(|verdict| !verdict.answers(asked));
        add(&mut kept, asked, passed);
    }

    /// What was said; else what is said now, remembered. Who asks meanwhile waits for that.
    ///
    /// # Errors
    /// Those of `judge`; nothing is remembered then.
    pub fn find_or_add<E>(&self, asked: Asked<'_>, judge: impl FnOnce() -> Result<Passed, E>) -> Result<Passed, E> {
        let mut kept = self.kept();
        if let Some(passed) = find(&kept, asked) {
            return Ok(passed);
        }
        let passed = judge()?;
        add(&mut kept, asked, passed.clone());
        Ok(passed)
    }
}

impl Verdict {
    fn answers(&self, Asked { test, function, all_leaves, before }: Asked<'_>) -> bool {
        (self.all_leaves, self.before) == (all_leaves, before)
            && self.test == *test
            && self.function.as_ref() == function
    }
}

fn find(kept: &VecDeque<Verdict>, asked: Asked<'_>) -> Option<Passed> {
    kept.iter().find(|verdict| verdict.answers(asked)).map(|verdict| verdict.passed.clone())
}

fn add(kept: &mut VecDeque<Verdict>, asked: Asked<'_>, passed: Passed) {
    if kept.len() == VERDICTS_MAX {
        kept.pop_front();
    }
    let Asked { test, function, all_leaves, before } = asked;
    kept.push_back(Verdict { test: test.clone(), function: function.cloned(), all_leaves, before, passed });
}

/// A test looks at the bodies of losing leaves, which only the disk has.
#[derive(Debug)]
pub(crate) struct NotInMemory;

impl Row {
    /// What passes a test, whose `winner` this is. It is evaluated once for everyone who asks, and counted then.
    ///
    /// # Errors
    /// [`NotInMemory`], unless a verdict from elsewhere is [kept](Row::keep_verdict).
    pub(crate) fn judge(
        &self,
        test: &Test,
        winner: Option<&DocView<'_>>,
        all_leaves: bool,
        counted: &FilterMetrics,
    ) -> Result<Passed, NotInMemory> {
        let change = &self.change;
        if test.selector.is_none() {
            return test.judge(change, winner, all_leaves, counted, |_| Err(NotInMemory));
        }
        if test.opens_losers(change, all_leaves) {
            return self.verdict(test, all_leaves).ok_or(NotInMemory);
        }
        let asked = Asked { test, function: None, all_leaves: false, before: false };
        self.verdicts.find_or_add(asked, || test.judge(change, winner, false, counted, |_| Err(NotInMemory)))
    }

    /// What is remembered of a test.
    pub(crate) fn verdict(&self, test: &Test, all_leaves: bool) -> Option<Passed> {
        self.verdicts.find(self.asked(test, all_leaves))
    }

    /// Remembers what passes a test, as was found elsewhere.
    pub(crate) fn keep_verdict(&self, test: &Test, all_leaves: bool, passed: Passed) {
        self.verdicts.add(self.asked(test, all_leaves), passed);
    }

    fn asked<'a>(&self, test: &'a Test, all_leaves: bool) -> Asked<'a> {
        Asked { test, function: None, all_leaves: test.opens_losers(&self.change, all_leaves), before: false }
    }

    /// What is remembered of a filter and the winner that the document had before.
    pub(crate) fn verdict_before(&self, filter: &Filter) -> Option<bool> {
        self.verdicts.find(asked_before(filter)).map(|passed| passed != Passed::Nothing)
    }

    /// Remembers whether that one passed.
    pub(crate) fn keep_verdict_before(&self, filter: &Filter, passed: bool) {
        self.verdicts.add(asked_before(filter), Passed::all_or_nothing(passed));
    }

    /// What is remembered of a filter's function, behind its test.
    pub(crate) fn function_verdict(&self, filter: &Filter, all_leaves: bool) -> Option<Passed> {
        self.verdicts.find(self.asked_of_function(filter, all_leaves))
    }

    /// Remembers what a filter's function lets pass of what its test does.
    pub(crate) fn keep_function_verdict(&self, filter: &Filter, all_leaves: bool, passed: Passed) {
        self.verdicts.add(self.asked_of_function(filter, all_leaves), passed);
    }

    fn asked_of_function<'a>(&self, filter: &'a Filter, all_leaves: bool) -> Asked<'a> {
        let all_leaves = all_leaves && self.change.leaves.len() > 1;
        Asked { test: &filter.test, function: filter.function.as_ref(), all_leaves, before: false }
    }
}

fn asked_before(filter: &Filter) -> Asked<'_> {
    Asked { test: &filter.test, function: filter.function.as_ref(), all_leaves: false, before: true }
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
    use crate::selector::Selector;

    fn test_of(number: usize) -> Test {
        Test { selector: Some(Selector::from_json(&format!("{{\"n\":{number}}}")).unwrap()), ..Test::NONE }
    }

    fn asked(test: &Test, all_leaves: bool) -> Asked<'_> {
        Asked { test, function: None, all_leaves, before: false }
    }

    fn judged(verdicts: &Verdicts, number: usize, says: Passed) -> Result<Passed, ()> {
        verdicts.find_or_add(asked(&test_of(number), false), || Ok(says))
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
        verdicts.add(asked(&test_of(1), true), Passed::Nothing);
        verdicts.add(asked(&test_of(1), true), Passed::All);
        assert_eq!(verdicts.find(asked(&test_of(1), true)), Some(Passed::All));
        assert_eq!((verdicts.find(asked(&test_of(1), false)), verdicts.find(asked(&test_of(2), true))), (None, None));
        assert_eq!(verdicts.kept().len(), 1);
    }

    #[test]
    fn an_error_is_not_remembered() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.find_or_add(asked(&test_of(1), false), || Err("disk")), Err("disk"));
        assert_eq!(judged(&verdicts, 1, Passed::All), Ok(Passed::All));
    }
}
