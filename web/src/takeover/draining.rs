//! The members of a worker that end one after the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use seqtide::{Drain, FeedId};
use tokio::time::Instant;

/// A member, as long as it is at this worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// Its place among the sockets that are watched, which may be another's by now.
    pub watched: usize,
    /// Its feed's id, which tells.
    pub feed: FeedId,
}

/// Who is still to be told that it ends, and who is still to end.
pub struct Draining {
    pub drain: Drain,
    added: HashSet<MemberId>,
    to_tell: Vec<MemberId>,
    /// The one that ends next is the greatest.
    to_end: BinaryHeap<Reverse<(Instant, MemberId)>>,
}

impl Draining {
    /// Of nobody yet.
    pub fn new(drain: Drain) -> Draining {
        Draining { drain, added: HashSet::new(), to_tell: Vec::new(), to_end: BinaryHeap::new() }
    }

    /// Adds a member, unless it was added before.
    pub fn add(&mut self, member: MemberId) {
        if !self.added.insert(member) {
            return;
        }
        self.to_tell.push(member);
        self.to_end.push(Reverse((self.drain.ends_at(member.feed), member)));
    }

    /// Takes some who are to be told.
    pub fn next_told(&mut self, most: usize) -> Vec<MemberId> {
        self.to_tell.split_off(self.to_tell.len().saturating_sub(most))
    }

    /// Takes some whose end has come. Who has not been told yet is not among them.
    pub fn next_ended(&mut self, most: usize, now: Instant) -> Vec<MemberId> {
        let mut ended = Vec::new();
        while self.to_tell.is_empty()
            && ended.len() < most
            && self.to_end.peek().is_some_and(|Reverse((at, _))| *at <= now)
            && let Some(Reverse((_, member))) = self.to_end.pop()
        {
            ended.push(member);
        }
        ended
    }
}
