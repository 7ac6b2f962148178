//! What filters have said of a row, remembered so that one that many feeds share is evaluated once.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};

use crate::filter::{Passed, Test};
use crate::functions::FilterFunction;

/// Most verdicts remembered of a row. The oldest goes first: feeds that wait for the same read a row at about the same
/// time. One that is gone is found again at the price of an evaluation.
pub(crate) const VERDICTS_MAX: usize = 8;

/// What filters have said of a row.
#[derive(Debug, Default)]
pub(crate) struct Verdicts(Mutex<VecDeque<Verdict>>);

#[derive(Debug)]
pub(crate) struct Verdict {
    test: Test,
    function: Option<FilterFunction>,
    all_leaves: bool,
    before: bool,
    passed: Passed,
}

/// What a row is asked: whether it passes a test, and a function if there is one, by its winner or by all leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
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
