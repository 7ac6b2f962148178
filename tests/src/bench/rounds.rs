//! Sides that take turns, so that what slows the machine for a while slows all of them.

use std::thread::sleep;
use std::time::Duration;

use super::stolen::noting_stolen;

/// A turn is disturbed when more of the processors' time than this was stolen meanwhile.
const STOLEN_MAX: f64 = 0.05;
/// How long a turn waits before it is taken again, each time.
const WAITS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

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
    /// A turn that was disturbed is taken again, up to three times. Where each of them was, the one counts from which
    /// least was stolen; what came of it is no reason. The round that does not count has each turn once.
    pub fn take<T>(&self, what: &str, mut turn: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
        self.take_noted(what, |side| noting_stolen(|| turn(side)), sleep)
    }

    /// The same with turns that say how much was stolen from them, and another way to wait.
    fn take_noted<T>(
        &self,
        what: &str,
        mut turn: impl FnMut(usize) -> (T, Option<f64>),
        wait: impl Fn(Duration),
    ) -> Vec<Vec<T>> {
        let mut results: Vec<Vec<T>> = (0..self.sides).map(|_| Vec::new()).collect();
        for round in usize::from(!self.warm_up)..=self.rounds {
            eprint!("{what}, round {round} of {}; stolen:", self.rounds);
            let waits = if round == 0 { &[][..] } else { &WAITS };
            for place in 0..self.sides {
                let side = (round + place) % self.sides;
                let result = least_disturbed(|| turn(side), waits, &wait);
                results[side].extend((round > 0).then_some(result));
            }
            eprintln!();
        }
        results
    }
}

/// What comes of a turn, which is taken again behind each of these waits until one was not disturbed.
fn least_disturbed<T>(mut turn: impl FnMut() -> (T, Option<f64>), waits: &[Duration], wait: impl Fn(Duration)) -> T {
    let mut turn = || {
        let (result, stolen) = turn();
        let stolen = stolen.unwrap_or(0.0);
        eprint!(" {:.1} %", 100.0 * stolen);
        (result, stolen)
    };
    let (mut chosen, mut least) = turn();
    for &pause in waits {
        if least <= STOLEN_MAX {
            break;
        }
        eprint!(", again");
        wait(pause);
        let (result, stolen) = turn();
        if stolen < least {
            (chosen, least) = (result, stolen);
        }
    }
    chosen
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
            (taken.len() - 1, stolen.get(taken.len() - 1).copied())
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
        assert_eq!(waits, [2, 4, 2]);
    }

    #[test]
    fn of_turns_that_were_all_disturbed_the_least_disturbed_counts_and_there_is_an_end() {
        let (taken, counted, waits) = take(&[0.0, 0.0, 0.6, 0.3, 0.2, 0.4, 0.5, 0.4, 0.3, 0.2]);
        assert_eq!(taken, [0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0]);
        assert_eq!(counted, [[9, 10, 13], [4, 11, 12]]);
        assert_eq!(waits, [2, 4, 8, 2, 4, 8]);
    }

    #[test]
    fn what_is_measured_by_itself_is_given() {
        assert_eq!(undisturbed("test", || 7), 7);
    }
}
