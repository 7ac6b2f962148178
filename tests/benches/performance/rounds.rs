//! Sides that take turns, so that what slows the machine for a while slows all of them.

/// How often they do.
pub struct Rounds {
    pub sides: usize,
    /// Rounds that count.
    pub rounds: usize,
    /// Whether one before them does not.
    pub warm_up: bool,
}

impl Rounds {
    /// One turn of each side in each round, beginning with another one each time; the results that count, by side.
    pub fn take<T>(&self, what: &str, mut turn: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
        let mut results: Vec<Vec<T>> = (0..self.sides).map(|_| Vec::new()).collect();
        for round in usize::from(!self.warm_up)..=self.rounds {
            eprintln!("{what}, round {round} of {}", self.rounds);
            for place in 0..self.sides {
                let side = (round + place) % self.sides;
                let result = turn(side);
                results[side].extend((round > 0).then_some(result));
            }
        }
        results
    }
}
