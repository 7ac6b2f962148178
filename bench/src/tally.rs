//! What one subscriber got of what was written: all of it, once, and in order?
//!
//! The writers of a load number their documents in turn: of `writers` writers the first one writes the numbers 0,
//! `writers`, 2 · `writers`, and so on. Each waits for an answer before it goes on, so its documents have one order.

use std::ops::Range;

/// Gaps that are remembered of a writer's documents. One that comes after its gap was forgotten counts as doubled.
const GAPS_MAX: usize = 1024;

/// How a document came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    InOrder,
    /// For the first time, and behind one that was to come after it.
    Misordered,
    /// It had come before.
    Doubled,
}

/// What has come, of every writer.
#[derive(Debug)]
pub(crate) struct Tally {
    writers: Vec<Seen>,
    /// The place of the last document in the order of all, where there is one.
    last_seq: Option<u64>,
    /// Documents that came, each counted once.
    distinct: u64,
}

/// What has come of one writer.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// How many it had written when the last one came that did.
    end: u64,
    /// Those before it that have not come.
    gaps: Vec<Range<u64>>,
}

impl Tally {
    pub fn new(writers: usize) -> Tally {
        Tally { writers: vec![Seen::default(); writers], last_seq: None, distinct: 0 }
    }

    /// Takes note of a document, with its place in the order of all where it has one.
    pub fn note(&mut self, number: u64, seq: Option<u64>) -> Arrival {
        let writers = self.writers.len() as u64;
        let arrival = self.writers[(number % writers) as usize].note(number / writers);
        if arrival == Arrival::Doubled {
            return arrival;
        }
        self.distinct += 1;
        let is_behind = seq.is_some() && seq <= self.last_seq;
        self.last_seq = self.last_seq.max(seq);
        if is_behind { Arrival::Misordered } else { arrival }
    }

    /// How many of so many documents have not come.
    pub fn lost(&self, written: u64) -> u64 {
        written.saturating_sub(self.distinct)
    }
}

impl Seen {
    fn note(&mut self, place: u64) -> Arrival {
        if place >= self.end {
            if place > self.end {
                if self.gaps.len() == GAPS_MAX {
                    self.gaps.swap_remove(0);
                }
                self.gaps.push(self.end..place);
            }
            self.end = place + 1;
            return Arrival::InOrder;
        }
        let Some(gap) = self.gaps.iter().position(|gap| gap.contains(&place)) else { return Arrival::Doubled };
        let Range { start, end } = self.gaps.swap_remove(gap);
        self.gaps.extend([start..place, place + 1..end].into_iter().filter(|left| !left.is_empty()));
        Arrival::Misordered
    }
}

#[cfg(test)]
mod tests {
    use super::Arrival::{Doubled, InOrder, Misordered};
    use super::*;

    fn arrivals(writers: usize, numbers: &[u64]) -> (Vec<Arrival>, Tally) {
        let mut tally = Tally::new(writers);
        (numbers.iter().map(|number| tally.note(*number, None)).collect(), tally)
    }

    #[test]
    fn each_writer_has_an_order_of_its_own() {
        let (found, tally) = arrivals(2, &[1, 3, 0, 5, 2, 4]);
        assert_eq!(found, [InOrder; 6]);
        assert_eq!((tally.lost(6), tally.lost(8)), (0, 2));
    }

    #[test]
    fn what_comes_again_is_doubled_and_what_comes_late_misordered() {
        let (found, tally) = arrivals(1, &[0, 1, 1, 5, 3, 3, 2, 4, 0]);
        use Doubled as D;
        assert_eq!(found, [InOrder, InOrder, D, InOrder, Misordered, D, Misordered, Misordered, D]);
        assert_eq!(tally.lost(7), 1);
    }

    #[test]
    fn a_place_in_the_order_of_all_that_turns_back_is_misordered() {
        let mut tally = Tally::new(2);
        let found = [(0, 7), (1, 6), (2, 8), (3, 8)].map(|(number, seq)| tally.note(number, Some(seq)));
        assert_eq!(found, [InOrder, Misordered, InOrder, Misordered]);
    }
}
