//! What a feed's reader can have of a document that changes: which of its versions it was given, as far as that can be
//! told. A feed that tells what leaves decides by it.
//!
//! A version is passed over when the next one is written before the feed has come to its place. So of a document that
//! changes, the version before is known to have been looked at where that was passed while nothing of the change was
//! there.

use seqtide_storage::model::sequence::Sequence;

/// So many places are remembered.
const MARKS: usize = 4;

/// What was looked at, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Of what was there when the feed began its reader can have what lies up to here.
    had_up_to: Sequence,
    /// The update sequence then, or later, and before anything was read.
    opened: Sequence,
    /// The newest is last.
    marks: [Mark; MARKS],
}

/// All that lies up to a place was looked at, or had been when the feed began, before anything above `state` was
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    up_to: Sequence,
    state: Sequence,
}

/// What a reader can have of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// What the version before came to.
    Previous,
    /// What any of these came to.
    Any(Versions),
}

/// Some of a document's versions: the one that was current at a place, and those behind it up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The reader stood here before anything behind was written: what the version of then came to it has.
    pub current_at: Sequence,
    /// What was written behind this place it was not given.
    pub up_to: Sequence,
}

impl Seen {
    /// Of a feed that begins at `start`, when the update sequence is at most `opened`. What was written above
    /// `unsure_up_to` came when every feed had looked at the version before.
    pub fn new(start: Sequence, opened: Sequence, unsure_up_to: Sequence) -> Seen {
        Seen { had_up_to: start, opened, marks: [Mark { up_to: start, state: unsure_up_to }; MARKS] }
    }

    /// The same where its reader may have been further than the place: it was asked for by a time, or has been once.
    pub fn or_later(self) -> Seen {
        Seen { had_up_to: self.opened, ..self }
    }

    /// Takes note that a page was read in this state, and all up to a place has been looked at.
    pub fn note_looked(&mut self, up_to: Sequence, state: Sequence) {
        let mark = Mark { up_to, state };
        if self.marks[MARKS - 1] != mark {
            self.marks.rotate_left(1);
            self.marks[MARKS - 1] = mark;
        }
    }

    /// What a reader can have of a document whose row is at `seq` and was at `previous` before.
    pub fn held(&self, seq: Sequence, previous: Sequence) -> Held {
        if self.marks.iter().any(|mark| seq > mark.state && previous <= mark.up_to) {
            return Held::Previous;
        }
        Held::Any(self.any(seq))
    }

    /// Which versions it can have of a document whose row is at `seq`, where nothing is known of the one before.
    pub fn any(&self, seq: Sequence) -> Versions {
        let level = self.marks.iter().filter(|mark| mark.state <= mark.up_to).map(|mark| mark.state).max();
        // What was there when the feed began, and is not any more, is nothing it has given.
        let up_to = if seq <= self.opened { self.had_up_to } else { Sequence::MAX };
        Versions { current_at: level.unwrap_or(Sequence::ZERO), up_to }
    }

    /// Whether a feed that stands at `position` can look for every other one that is level there or further on: it must
    /// have passed where it was opened, for the others may have been given what was there before.
    pub fn stands_for_all(&self, position: Sequence) -> bool {
        position >= self.opened && self.is_level(position)
    }

    /// Whether all up to a place was looked at before anything above it was written.
    pub fn is_level(&self, position: Sequence) -> bool {
        self.marks.iter().any(|mark| mark.up_to >= position && mark.state <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(version: u64) -> Sequence {
        Sequence::new(0, version)
    }

    fn any(current_at: u64, up_to: Sequence) -> Held {
        Held::Any(Versions { current_at: seq(current_at), up_to })
    }

    #[test]
    fn from_the_beginning_nothing_was_given_of_what_was_there() {
        let seen = Seen::new(seq(0), seq(10), seq(0));
        assert_eq!(seen.held(seq(10), seq(3)), any(0, seq(0)));
        assert_eq!(seen.held(seq(11), seq(3)), any(0, Sequence::MAX), "it may have been passed over");
    }

    #[test]
    fn who_comes_back_has_the_version_before_unless_another_feed_was_behind_when_it_was_written_over() {
        let seen = Seen::new(seq(5), seq(10), seq(7));
        assert_eq!(seen.held(seq(8), seq(5)), Held::Previous);
        assert_eq!(seen.held(seq(7), seq(5)), any(0, seq(5)), "it may have been passed over");
        assert_eq!(seen.held(seq(8), seq(6)), any(0, seq(5)), "it was not there to be given");
    }

    #[test]
    fn who_comes_back_by_a_time_may_have_what_was_written_behind_it() {
        let seen = Seen::new(seq(5), seq(10), seq(7)).or_later();
        assert_eq!(seen.held(seq(8), seq(5)), Held::Previous);
        assert_eq!(seen.held(seq(8), seq(6)), any(0, seq(10)), "it was given before the time was noted");
        assert_eq!(seen.held(seq(11), seq(6)), any(0, Sequence::MAX));
    }

    #[test]
    fn what_was_looked_at_before_the_next_was_written_is_known_to_be_had() {
        let mut seen = Seen::new(seq(0), seq(10), seq(10));
        seen.note_looked(seq(6), seq(12));
        assert_eq!(seen.held(seq(13), seq(6)), Held::Previous);
        assert_eq!(seen.held(seq(12), seq(6)), any(0, Sequence::MAX));
        assert!(!seen.is_level(seq(6)));
        seen.note_looked(seq(12), seq(12));
        assert!(seen.is_level(seq(12)) && seen.held(seq(13), seq(12)) == Held::Previous);
        assert_eq!(seen.held(seq(15), seq(13)), any(12, Sequence::MAX), "what was current then it has looked at");
        for state in 14..20 {
            seen.note_looked(seq(13), seq(state));
        }
        assert!(!seen.is_level(seq(13)) && seen.held(seq(14), seq(12)) == any(0, Sequence::MAX));
    }
}
