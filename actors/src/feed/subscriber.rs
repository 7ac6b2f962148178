//! A subscriber as a state machine: it owns a position and says what is to be done next. It does no I/O and has no
//! clock of its own, so that it can be tested so.

#[cfg(test)]
mod tests;

use std::time::Duration;

use seqtide_storage::Direction;
use seqtide_storage::model::sequence::Sequence;
use tokio::time::Instant;

use super::options::{FeedMode, FeedOptions, OLDEST_SEQ};
use super::source::{Passed, Wanted};
use crate::end_reason::EndReason;
use crate::known::FeedState;

/// So long a feed without a heartbeat is silent at most while it reads what it does not give: its reader, and whoever
/// stands between, could take it for dead. One that waits has said how long it does.
///
/// Source: CouchDB `fabric_view_changes:receive_results`, of a feed that does not wait.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What a subscriber says besides rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// It starts to wait and has sent nothing yet.
    Waiting,
    /// It has given everything there is.
    CaughtUp,
    /// Nothing was sent for the heartbeat's time.
    Heartbeat,
    /// It has no heartbeat, has read for long, and given nothing.
    StillReading,
    /// It was live and has fallen behind.
    Lagging,
    /// It is live again.
    Live,
    /// It has given what there was when it was opened.
    SnapshotEnd,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Read rows above `after`, up to `up_to`, at most `rows_max`, and tell [`Subscriber::read`] about them.
    Read { after: Sequence, up_to: Sequence, rows_max: usize, direction: Direction },
    /// Wait until woken, at most until this moment.
    Wait { until: Option<Instant> },
    /// Tell the reader.
    Say(Notice),
    /// The end.
    End(EndReason),
}

/// What a page brought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRead {
    /// The last row examined, given or not.
    pub examined: Option<Sequence>,
    /// Whether there is nothing more up to where the page was asked for.
    pub complete: bool,
    /// Rows given.
    pub rows: u64,
}

pub(crate) struct Subscriber {
    mode: FeedMode,
    heartbeat: Option<Duration>,
    timeout: Option<Duration>,
    /// Nothing above it is given.
    until: Sequence,
    rows_left: u64,
    rows_given: u64,
    /// Everything up to here has been examined: the token of a forward feed. A descending one is left with what is
    /// below.
    position: Sequence,
    walk: Walk,
    phase: Phase,
    last_sent: Instant,
    last_news: Instant,
    /// Nothing was looked at since the last heartbeat: reading comes before the next, however close together they are.
    only_beaten: bool,
    /// It has read since anything was sent, and nothing of that was given.
    read_in_vain: bool,
    said_waiting: bool,
    said_caught_up: bool,
    /// It has fallen behind what is in memory, and said so.
    lags: bool,
    /// It has said that it ends shortly: of how it stands it says no more.
    is_draining: bool,
    /// The place up to which it gives what there was when it was opened, until it has.
    snapshot: Option<Beginning>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beginning {
    up_to: Sequence,
    /// Its reader has nothing yet: what is deleted need not be told.
    is_first: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// Towards `up_to`: where it ends, or, with a moving end, what was the newest row when it was last looked at.
    Forward { up_to: Sequence, moving: bool },
    /// Towards the oldest; what is above `top` has been examined.
    Backward { top: Sequence },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Reading, or waiting for something to read.
    Following,
    /// Nothing more is read.
    Draining(EndReason),
}

impl Subscriber {
    /// A subscriber behind `position`; `end` is the last row there is.
    pub fn new(options: &FeedOptions, position: Sequence, end: Sequence, now: Instant) -> Subscriber {
        let until = options.until.unwrap_or(Sequence::MAX);
        let walk = match (options.descending, options.mode) {
            (true, _) => Walk::Backward { top: end.min(until) },
            (false, FeedMode::Once) => Walk::Forward { up_to: end.min(until), moving: false },
            (false, FeedMode::Longpoll | FeedMode::Live) => Walk::Forward { up_to: end.min(until), moving: true },
        };
        // Who comes back by a time has something, however early that is.
        let is_first = position == OLDEST_SEQ && !options.reader_may_have_more();
        Subscriber {
            mode: options.mode,
            heartbeat: options.heartbeat,
            timeout: options.timeout.filter(|_| options.heartbeat.is_none()),
            until,
            rows_left: options.limit.unwrap_or(u64::MAX),
            rows_given: 0,
            position: if options.descending { end.min(until) } else { position },
            walk,
            phase: Phase::Following,
            last_sent: now,
            last_news: now,
            only_beaten: false,
            read_in_vain: false,
            said_waiting: false,
            said_caught_up: false,
            lags: false,
            is_draining: false,
            snapshot: (options.snapshot && !options.descending).then_some(Beginning { up_to: end, is_first }),
        }
    }

    /// A live subscriber that goes on behind `position` for one that was told last that it is in this state: what is
    /// said once has been said.
    pub fn resumed(options: &FeedOptions, position: Sequence, state: FeedState, now: Instant) -> Subscriber {
        Subscriber {
            said_waiting: true,
            said_caught_up: true,
            lags: state == FeedState::Lagging,
            is_draining: state == FeedState::Draining,
            snapshot: None,
            ..Subscriber::new(options, position, position, now)
        }
    }

    /// Whether nothing is left that it says once: what follows are rows, heartbeats and the end.
    pub fn is_following(&self) -> bool {
        self.phase == Phase::Following
            && self.said_caught_up
            && (self.said_waiting || self.rows_given > 0)
            && !self.lags
            && !self.is_draining
    }

    /// Takes note of what was said of how it stands.
    pub fn note_said(&mut self, notice: Notice) {
        self.lags = notice == Notice::Lagging;
    }

    /// Takes note that it was said that the feed ends shortly.
    pub fn note_said_draining(&mut self) {
        self.is_draining = true;
    }

    /// Whether only what is not deleted is given for now.
    pub fn is_first_snapshot(&self) -> bool {
        self.snapshot.is_some_and(|snapshot| snapshot.is_first)
    }

    /// The token to resume from. Of a descending feed, the last row given.
    pub fn position(&self) -> Sequence {
        self.position
    }

    /// How many rows it may still give.
    pub fn rows_left(&self) -> u64 {
        self.rows_left
    }

    /// Ends the feed at the next step.
    pub fn drain(&mut self, reason: EndReason) {
        self.phase = Phase::Draining(reason);
    }

    /// Says what is to be done next, the update sequence being `newest`, and all rows behind `memory_from` in memory.
    pub fn step(&mut self, now: Instant, newest: Sequence, memory_from: Sequence) -> Step {
        if let Phase::Draining(reason) = self.phase {
            return Step::End(reason);
        }
        let silent = now.saturating_duration_since(self.last_sent);
        if !self.only_beaten && self.heartbeat.is_some_and(|every| silent >= every) {
            return Step::Say(Notice::Heartbeat);
        }
        if self.rows_left == 0 && !(self.mode == FeedMode::Longpoll && self.rows_given == 0) {
            return Step::End(EndReason::Limit);
        }
        if self.snapshot.take_if(|snapshot| self.position >= snapshot.up_to).is_some() {
            return Step::Say(Notice::SnapshotEnd);
        }
        if matches!(self.walk, Walk::Forward { .. }) && self.position >= self.until {
            return Step::End(EndReason::Until);
        }
        self.move_end(newest);
        let rows_max = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
        if let Some(notice) = self.change_of_standing(memory_from) {
            return Step::Say(notice);
        }
        let (after, up_to, direction) = match self.walk {
            Walk::Forward { up_to, .. } if rows_max > 0 && self.position < up_to => {
                (self.position, up_to, Direction::Forward)
            }
            Walk::Backward { top } if rows_max > 0 && top > Sequence::ZERO => {
                (Sequence::ZERO, top, Direction::Backward)
            }
            _ => return self.caught_up(now),
        };
        if self.read_in_vain && self.heartbeat.is_none() && silent >= SILENCE_MAX {
            self.note_sent(now);
            return Step::Say(Notice::StillReading);
        }
        Step::Read { after, up_to, rows_max, direction }
    }

    /// What is to be said of how it stands. A first catch-up is no falling behind, nor is reading alone what is in
    /// memory.
    fn change_of_standing(&self, memory_from: Sequence) -> Option<Notice> {
        let Walk::Forward { up_to, moving: true } = self.walk else { return None };
        if self.mode != FeedMode::Live || !self.said_caught_up || self.is_draining {
            return None;
        }
        let is_behind = self.position < up_to && self.position < memory_from;
        match (self.lags, is_behind) {
            (false, true) => Some(Notice::Lagging),
            (true, false) => Some(Notice::Live),
            _ => None,
        }
    }

    /// A longpoll that has given rows ends where it was on its way to, or it would never end while writes go on.
    fn move_end(&mut self, newest: Sequence) {
        if let Walk::Forward { up_to, moving: true } = &mut self.walk
            && !(self.mode == FeedMode::Longpoll && self.rows_given > 0)
        {
            let snapshot = self.snapshot.map_or(Sequence::MAX, |snapshot| snapshot.up_to);
            *up_to = newest.min(self.until).min(snapshot);
        }
    }

    /// When a heartbeat is due if nothing is sent before.
    fn heartbeat_due(&self) -> Option<Instant> {
        self.heartbeat.and_then(|every| self.last_sent.checked_add(every))
    }

    /// When it is to say that it is there if a page that has been read since `begun` is not given before.
    pub fn sign_due(&self, begun: Instant) -> Option<Instant> {
        match self.heartbeat {
            Some(_) => self.heartbeat_due(),
            None => self.last_sent.max(begun).checked_add(SILENCE_MAX),
        }
    }

    /// Takes note that a page is not there yet though it is to say that it is there.
    pub fn still_reading(&mut self) {
        self.only_beaten = false;
        self.read_in_vain = true;
    }

    /// Takes note of a heartbeat that was said.
    pub fn beaten(&mut self, now: Instant) {
        self.note_sent(now);
        self.only_beaten = true;
    }

    fn note_sent(&mut self, now: Instant) {
        self.last_sent = now;
        self.read_in_vain = false;
    }

    /// Nothing is left to read for now.
    fn caught_up(&mut self, now: Instant) -> Step {
        if !std::mem::replace(&mut self.said_caught_up, true) {
            return Step::Say(Notice::CaughtUp);
        }
        let ends_here = match self.mode {
            FeedMode::Once => true,
            FeedMode::Longpoll => self.rows_given > 0,
            FeedMode::Live => false,
        };
        if ends_here || matches!(self.walk, Walk::Backward { .. }) {
            return Step::End(EndReason::CaughtUp);
        }
        if self.rows_given == 0 && !std::mem::replace(&mut self.said_waiting, true) {
            self.note_sent(now);
            return Step::Say(Notice::Waiting);
        }
        if self.timeout.is_some_and(|timeout| now.saturating_duration_since(self.last_news) >= timeout) {
            return Step::End(EndReason::Timeout);
        }
        self.only_beaten = false;
        // A moment that no clock can say never comes.
        let beat_at = self.heartbeat_due();
        let end_at = self.timeout.and_then(|timeout| self.last_news.checked_add(timeout));
        Step::Wait { until: beat_at.or(end_at) }
    }

    /// Takes note of a page that was asked for up to `up_to`.
    pub fn read(&mut self, page: PageRead, up_to: Sequence, now: Instant) {
        self.rows_left -= page.rows;
        self.rows_given += page.rows;
        self.last_news = now;
        self.only_beaten = false;
        match page.rows {
            0 => self.read_in_vain = true,
            _ => self.note_sent(now),
        }
        match &mut self.walk {
            // Where nothing is left, the place asked for has been examined too.
            Walk::Forward { .. } if page.complete => self.position = up_to,
            Walk::Forward { .. } => self.position = page.examined.unwrap_or(self.position),
            Walk::Backward { top } => {
                self.position = page.examined.unwrap_or(self.position);
                *top = if page.complete { Sequence::ZERO } else { self.position.before() };
            }
        }
    }

    /// What a forward feed reads behind a page of this stretch, unless the page was its last.
    pub fn rest_of(&self, of: Wanted) -> Option<Wanted> {
        let is_left = matches!(self.walk, Walk::Forward { .. }) && self.position < of.up_to && self.rows_left > 0;
        let rows_max = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
        is_left.then_some(Wanted { after: self.position, rows_max, ..of })
    }

    /// Whether it moves on past what concerns nobody here. Who may read no rows has left them unread, and a descending
    /// position is no token.
    pub fn moves_on(&self) -> bool {
        self.rows_left > 0 && matches!(self.walk, Walk::Forward { .. })
    }

    /// Moves on to where nothing has concerned it. It is news all the same: as in CouchDB a feed ends by its timeout
    /// when nothing is written, not when nothing passes its filter.
    pub fn pass_over(&mut self, passed: Passed) {
        let place = passed.up_to.min(self.until);
        if self.moves_on() && place > self.position {
            self.position = place;
            self.last_news = self.last_news.max(passed.newest_at);
        }
    }
}
