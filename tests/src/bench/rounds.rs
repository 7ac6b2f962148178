//! Sides that take turns, so that what slows the machine for a while slows all of them.

use super::stolen::noting_stolen;

/// A round is disturbed when more of the processors' time than this was stolen from one of its turns.
const STOLEN_MAX: f64 = 0.05;

/// How often they do.
pub struct Rounds {
    /// Sides, by number from 0 on.
    pub sides: usize,
    /// Rounds that count.
    pub rounds: usize,
    /// Whether one before them does not.
    pub warm_up: bool,
}

/// What came of a round.
struct Round<T> {
    /// By side.
    results: Vec<T>,
    /// The share of the processors' time that was stolen from the turn from which most was.
    stolen: f64,
}

impl<T> Round<T> {
    fn is_disturbed(&self) -> bool {
        self.stolen > STOLEN_MAX
    }
}

impl Rounds {
    /// One turn of each side in each round, beginning with another one each time; the results that count, by side.
    ///
    /// Rounds are taken until as many as count were not disturbed, at most twice as many and one. Those count from
    /// which least was stolen; what came of them is no reason.
    pub fn take<T>(&self, what: &str, mut turn: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
        self.take_noted(what, |side| noting_stolen(|| turn(side)))
    }

    /// The same with turns that say how much was stolen from them.
    fn take_noted<T>(&self, what: &str, mut turn: impl FnMut(usize) -> (T, f64)) -> Vec<Vec<T>> {
        let mut taken: Vec<Round<T>> = Vec::new();
        for number in usize::from(!self.warm_up)..=2 * self.rounds + 1 {
            let undisturbed = taken.iter().filter(|round| !round.is_disturbed()).count();
            if undisturbed == self.rounds {
                break;
            }
            eprint!("{what}, round {number}, after {undisturbed} of {} undisturbed", self.rounds);
            let round = self.one(number, &mut turn);
            eprintln!(": {:.1} % stolen", 100.0 * round.stolen);
            taken.extend((number > 0).then_some(round));
        }
        taken.sort_by(|one, other| one.stolen.total_cmp(&other.stolen));
        let mut results: Vec<Vec<T>> = (0..self.sides).map(|_| Vec::new()).collect();
        for round in taken.into_iter().take(self.rounds) {
            results.iter_mut().zip(round.results).for_each(|(side, result)| side.push(result));
        }
        results
    }

    fn one<T>(&self, number: usize, turn: &mut impl FnMut(usize) -> (T, f64)) -> Round<T> {
        let mut turns: Vec<(usize, (T, f64))> =
            (0..self.sides).map(|place| (number + place) % self.sides).map(|side| (side, turn(side))).collect();
        turns.sort_by_key(|(side, _)| *side);
        let stolen = turns.iter().map(|(_, (_, stolen))| *stolen).fold(0.0, f64::max);
        Round { results: turns.into_iter().map(|(_, (result, _))| result).collect(), stolen }
    }
}

/// Something that is measured by itself; again where it was disturbed, as rounds are.
pub fn undisturbed<T>(what: &str, mut measure: impl FnMut() -> T) -> T {
    let rounds = Rounds { sides: 1, rounds: 1, warm_up: false };
    let results = rounds.take(what, |_| measure());
    results.into_iter().flatten().next().expect("one round of one side")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rounds that count, of two sides, and the shares that are stolen from the second one's turns; gives what
    /// was taken, in order, and what counts of the first one. A result is the number of the round.
    fn take(stolen: &[f64]) -> (Vec<usize>, Vec<usize>) {
        let (mut taken, mut numbers) = (Vec::new(), [0, 0]);
        let rounds = Rounds { sides: 2, rounds: 3, warm_up: true };
        let results = rounds.take_noted("test", |side| {
            taken.push(side);
            let number = numbers[side];
            numbers[side] += 1;
            (number, if side == 1 { stolen.get(number).copied().unwrap_or(0.0) } else { 0.0 })
        });
        assert_eq!(results[0], results[1], "of the same rounds");
        (taken, results[0].clone())
    }

    #[test]
    fn sides_take_turns_and_the_first_round_does_not_count() {
        assert_eq!(take(&[0.9]), (vec![0, 1, 1, 0, 0, 1, 1, 0], vec![1, 2, 3]));
        assert_eq!(take(&[0.0, 0.05, 0.01, 0.02]).1, [2, 3, 1]);
    }

    #[test]
    fn rounds_that_were_disturbed_are_taken_again_and_do_not_count() {
        let (taken, counted) = take(&[0.0, 0.1, 0.0, 0.2, 0.0]);
        assert_eq!((taken.len(), counted), (2 * 6, vec![2, 4, 5]));
    }

    #[test]
    fn where_nothing_but_disturbed_rounds_come_the_least_disturbed_count() {
        let (taken, counted) = take(&[0.0, 0.3, 0.2, 0.6, 0.1, 0.5, 0.01, 0.7, 0.0]);
        assert_eq!((taken.len(), counted), (2 * 8, vec![6, 4, 2]));
    }

    #[test]
    fn what_is_measured_by_itself_is_given() {
        assert_eq!(undisturbed("test", || 7), 7);
    }
}
