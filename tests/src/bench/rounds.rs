//! Sides that take turns, so that what slows the machine for a while slows all of them.

use std::thread::sleep;
use std::time::Duration;

use super::stolen::noting_stolen;

/// A turn is disturbed when more of the processors' time than this was stolen meanwhile.
const STOLEN_MAX: f64 = 0.05;
/// How many turns are taken again at most, for each that counts.
const AGAIN_MAX: usize = 2;
/// How long a turn waits that is taken again: twice as long each time, up to a bound.
const WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// How often they do.
pub struct Rounds {
    /// Sides, by number from 0 on.
    pub sides: usize,
    /// Rounds that count.
    pub rounds: usize,
    /// Whether one before them does not.
    pub warm_up: bool,
}

impl Rounds {
    /// One turn of each side in each round, beginning with another one each time; the results that count, by side.
    ///
    /// A turn that was disturbed is taken again, a little later, until it was not, or as many were taken again as may
    /// be. Then the one counts from which least was stolen; what came of it is no reason.
    pub fn take<T>(&self, what: &str, mut turn: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
        self.take_noted(what, |side| noting_stolen(|| turn(side)), sleep)
    }

    /// The same with turns that say how much was stolen from them, and another way to wait.
    fn take_noted<T>(
        &self,
        what: &str,
        mut turn: impl FnMut(usize) -> (T, f64),
        wait: impl Fn(Duration),
    ) -> Vec<Vec<T>> {
        let mut round = |number: usize, again: &mut usize| {
            eprint!("{what}, round {number} of {}; stolen:", self.rounds);
            let sides = (0..self.sides).map(|place| (number + place) % self.sides);
            let turns: Vec<_> = sides.map(|side| (side, calmest(|| turn(side), again, &wait))).collect();
            eprintln!();
            turns
        };
        if self.warm_up {
            round(0, &mut 0);
        }
        let mut results: Vec<Vec<T>> = (0..self.sides).map(|_| Vec::new()).collect();
        let mut again = AGAIN_MAX * self.sides * self.rounds;
        for number in 1..=self.rounds {
            for (side, result) in round(number, &mut again) {
                results[side].push(result);
            }
        }
        results
    }
}

/// What comes of a turn, which is taken as often as it is disturbed and `again` allows, which counts down.
fn calmest<T>(mut turn: impl FnMut() -> (T, f64), again: &mut usize, wait: impl Fn(Duration)) -> T {
    let (mut calmest, mut least) = turn();
    eprint!(" {:.1} %", 100.0 * least);
    let mut pause = WAIT;
    while least > STOLEN_MAX && *again > 0 {
        *again -= 1;
        wait(pause);
        pause = (2 * pause).min(LONGEST_WAIT);
        let (result, stolen) = turn();
        eprint!(" again {:.1} %", 100.0 * stolen);
        if stolen < least {
            (calmest, least) = (result, stolen);
        }
    }
    calmest
}

/// Something that is measured by itself; again where it was disturbed, as turns are.
pub fn undisturbed<T>(what: &str, mut measure: impl FnMut() -> T) -> T {
    let rounds = Rounds { sides: 1, rounds: 1, warm_up: false };
    let results = rounds.take(what, |_| measure());
    results.into_iter().flatten().next().expect("one round of one side")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// What is stolen from the turns, one after the other, of three rounds that count, of two sides. Gives whose turns
    /// they were, the numbers of those that count, by side, and the seconds that were waited.
    fn take(stolen: &[f64]) -> (Vec<usize>, Vec<Vec<usize>>, Vec<u64>) {
        let (mut taken, waits) = (Vec::new(), RefCell::<Vec<u64>>::default());
        let rounds = Rounds { sides: 2, rounds: 3, warm_up: true };
        let turn = |side| {
            taken.push(side);
            (taken.len() - 1, stolen.get(taken.len() - 1).copied().unwrap_or(0.0))
        };
        let counted = rounds.take_noted("test", turn, |pause: Duration| waits.borrow_mut().push(pause.as_secs()));
        (taken, counted, waits.into_inner())
    }

    #[test]
    fn sides_take_turns_and_the_first_round_does_not_count_however_disturbed() {
        let (taken, counted, waits) = take(&[0.9, 0.9, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]);
        assert_eq!(taken, [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!(counted, [[3, 4, 7], [2, 5, 6]]);
        assert!(waits.is_empty());
    }

    #[test]
    fn a_turn_that_was_disturbed_is_taken_again_and_does_not_count() {
        let (taken, counted, waits) = take(&[0.0, 0.0, 0.0, 0.1, 0.3, 0.0, 0.2]);
        assert_eq!(taken, [0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0]);
        assert_eq!(counted, [[5, 7, 10], [2, 8, 9]]);
        assert_eq!(waits, [1, 2, 1]);
    }

    #[test]
    fn of_turns_that_were_all_disturbed_the_least_disturbed_counts_and_there_is_an_end() {
        let stolen = [0.0, 0.0, 0.6, 0.3, 0.2, 0.6, 0.1, 0.5, 0.4, 0.7, 0.8, 0.9, 0.8, 0.7, 0.6];
        let (taken, counted, waits) = take(&[&stolen[..], &[0.5; 8]].concat());
        assert_eq!(taken, [&[0, 1][..], &[1; 13], &[0, 0, 1, 1, 0]].concat());
        assert_eq!(counted, [[15, 16, 19], [6, 17, 18]]);
        assert_eq!(waits, [1, 2, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
    }

    #[test]
    fn what_is_measured_by_itself_is_given() {
        assert_eq!(undisturbed("test", || 7), 7);
    }
}
