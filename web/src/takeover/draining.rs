//! The members of a worker that end one after the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use seqtide::{Drain, FeedId};
use tokio::time::Instant;

/// A member, by its place among the sockets that are watched and by its id: the place may be another's by now.
pub type Place = (usize, FeedId);

/// Who is still to be told that it ends, and who is still to end.
pub struct Draining {
    pub drain: Drain,
    added: HashSet<Place>,
    to_tell: Vec<Place>,
    /// The one that ends next is the greatest.
    to_end: BinaryHeap<Reverse<(Instant, Place)>>,
}

impl Draining {
    /// Of nobody yet.
    pub fn new(drain: Drain) -> Draining {
        Draining { drain, added: HashSet::new(), to_tell: Vec::new(), to_end: BinaryHeap::new() }
    }

    /// Adds a member, unless it was added before.
    pub fn add(&mut self, place: Place) {
        if !self.added.insert(place) {
            return;
        }
        self.to_tell.push(place);
        self.to_end.push(Reverse((self.drain.ends_at(place.1), place)));
    }

    /// Takes some who are to be told.
    pub fn next_told(&mut self, most: usize) -> Vec<Place> {
        self.to_tell.split_off(self.to_tell.len().saturating_sub(most))
    }

    /// Takes some whose end has come. Who has not been told yet is not among them.
    pub fn next_ended(&mut self, most: usize, now: Instant) -> Vec<Place> {
        let mut ended = Vec::new();
        while self.to_tell.is_empty()
            && ended.len() < most
            && self.to_end.peek().is_some_and(|Reverse((at, _))| *at <= now)
            && let Some(Reverse((_, place))) = self.to_end.pop()
        {
            ended.push(place);
        }
        ended
    }
}
