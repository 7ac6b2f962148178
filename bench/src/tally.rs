//! What one subscriber got of what was written: all of it, once, and in order?
//!
//! The writers of a load number their documents in turn: of `writers` writers the first one writes the numbers 0,
//! `writers`, 2 · `writers`, and so on. Each waits for an answer before it goes on, so its documents have one order.

use std::cell::Cell;
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
    /// Nobody had sent it.
    Unwritten,
}

/// The last place that came in the order of all, where they have one.
#[derive(Debug, Default)]
pub(crate) struct Order(Option<u64>);

impl Order {
    /// Takes note of a place; whether it is not behind all that came before it.
    pub fn turns_back(&mut self, seq: Option<u64>) -> bool {
        let turns_back = seq.is_some() && seq <= self.0;
        self.0 = self.0.max(seq);
        turns_back
    }
}

/// What has come, of every writer.
#[derive(Debug)]
pub(crate) struct Tally {
    writers: Vec<Seen>,
    order: Order,
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
        Tally { writers: vec![Seen::default(); writers], order: Order::default(), distinct: 0 }
    }

    /// Takes note of a document, with its place in the order of all where it has one. `sent` has how many documents
    /// each writer has sent: what comes beyond those was not written, and leaves no trace in what has come.
    pub fn note(&mut self, number: u64, seq: Option<u64>, sent: &[Cell<u64>]) -> Arrival {
        let writers = self.writers.len() as u64;
        let (writer, place) = ((number % writers) as usize, number / writers);
        if place >= sent[writer].get() {
            return Arrival::Unwritten;
        }
        let arrival = self.writers[writer].note(place);
        if arrival == Arrival::Doubled {
            return arrival;
        }
        self.distinct += 1;
        if self.order.turns_back(seq) { Arrival::Misordered } else { arrival }
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
    use super::Arrival::{Doubled, InOrder, Misordered, Unwritten};
    use super::*;

    /// What comes of so many writers, of which each has sent six.
    fn arrivals(writers: usize, numbers: &[u64]) -> (Vec<Arrival>, Tally) {
        let (mut tally, sent) = (Tally::new(writers), vec![Cell::new(6); writers]);
        (numbers.iter().map(|number| tally.note(*number, None, &sent)).collect(), tally)
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
    fn what_nobody_sent_stands_for_nothing_that_is_lost() {
        let (found, tally) = arrivals(2, &[0, 13, 1, u64::MAX, 12, 3]);
        assert_eq!(found, [InOrder, Unwritten, InOrder, Unwritten, Unwritten, InOrder]);
        assert_eq!(tally.lost(6), 3);
    }

    #[test]
    fn a_place_in_the_order_of_all_that_turns_back_is_misordered() {
        let (mut tally, sent) = (Tally::new(2), vec![Cell::new(2); 2]);
        let found = [(0, 7), (1, 6), (2, 8), (3, 8)].map(|(number, seq)| tally.note(number, Some(seq), &sent));
        assert_eq!(found, [InOrder, Misordered, InOrder, Misordered]);
    }
}
