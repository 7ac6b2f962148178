//! Connections whose feeds give the same: one feed is read for all, and each row is joined once.

use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use bytes::Bytes;
use mio::Registry;
use seqtide::storage::model::sequence::Sequence;
use seqtide::{Drain, EndReason, FeedAbout, FeedId, FeedInfo, FeedMetrics, FeedState, Likeness};
use slab::Slab;
use tokio::time::Instant;

use super::feeds::Feeds;
use super::member::{Member, Sent, Standing};
use super::offer::{BEHIND_THE_END, Offer};
use super::reading::{Alone, Delivery, News, ReadingTask};
use super::{READ_TIMEOUT, patience};
use crate::wire::framing::Framing;

/// So many members are served in one go: everything else on the worker waits meanwhile.
const MEMBERS_AT_ONCE: usize = 128;

/// Slots are given back when there are so many times more than members: each costs a look in every round.
const SPARE_SLOTS: usize = 4;

/// A group's name; none is used twice in a worker.
pub type GroupId = u64;

/// Feeds that give the same.
pub struct Group {
    /// What its feeds give; `None` once nobody can join any more.
    likeness: Option<Likeness>,
    framing: Framing,
    /// So long a member may acknowledge nothing that does not pile up. Members are looked at as often.
    patience: Duration,
    /// When they were last.
    looked: Instant,
    offer: Offer,
    members: Slab<Member>,
    round: Round,
    alone: Box<dyn Alone>,
    /// How often rows had been purged when what is on offer was read.
    purges: u64,
    /// Its feed is behind.
    lags: bool,
    counters: FeedMetrics,
    /// With whom its members are shared in the next round.
    shares: Option<Shares>,
    _reading: ReadingTask,
}

/// The other workers with whom members are shared: who is in slot n goes to the one at n mod (others + 1), and stays
/// where that is behind the last.
struct Shares(Vec<Addr<Feeds>>);

/// The members being served one after the other, a few at a time, until each has had its turn. What comes meanwhile
/// goes to those who have not had it along with what they lack, and once more around to the others.
#[derive(Default)]
struct Round {
    /// The slots that there are. Who comes to another has been given what there was, and is none of the round's.
    slots: usize,
    /// The next.
    next: usize,
    /// How many are left.
    left: usize,
    /// A word for those who have everything up to a place.
    notice: Option<Notice>,
    /// With whom those who have everything are shared.
    shares: Option<Shares>,
}

impl Round {
    /// Goes once around so many slots from where it is.
    fn go_around(&mut self, slots: usize) {
        (self.slots, self.left) = (slots, slots);
    }

    /// Whether every slot had its turn.
    fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The other worker to which the member in a slot goes, if they are shared.
    fn elsewhere(&self, slot: usize) -> Option<&Addr<Feeds>> {
        let Shares(others) = self.shares.as_ref()?;
        others.get(slot % (others.len() + 1))
    }
}

impl Iterator for Round {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let slot = if self.next < self.slots { self.next } else { 0 };
        self.next = slot + 1;
        Some(slot)
    }
}

struct Notice {
    words: Bytes,
    at: Sequence,
    /// It says that the feed lags.
    of_lag: bool,
}

/// A member that is not one any more.
pub struct Leaver {
    pub member: Member,
    pub way: Way,
}

/// What becomes of a connection that leaves its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Its client is gone.
    Gone,
    /// All was said.
    Over,
    /// It reads for itself from now on.
    Apart,
    /// It is told its end by itself.
    Ends(EndReason),
    /// It goes to those like it at another worker.
    Moves(Addr<Feeds>),
}

impl Group {
    /// Nobody's yet, of feeds that give this; its rows come behind `start`.
    pub fn new(
        likeness: Likeness,
        framing: Framing,
        start: Sequence,
        alone: Box<dyn Alone>,
        reading: ReadingTask,
        counters: FeedMetrics,
    ) -> Group {
        Group {
            patience: patience(likeness.heartbeat()),
            looked: Instant::now(),
            likeness: Some(likeness),
            framing,
            offer: Offer::behind(start),
            members: Slab::new(),
            round: Round::default(),
            purges: alone.purges(),
            lags: false,
            alone,
            counters,
            shares: None,
            _reading: reading,
        }
    }

    /// The slot that the next member gets.
    pub fn vacant_slot(&self) -> usize {
        self.members.vacant_key()
    }

    /// Whether nobody is left.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether nothing follows.
    pub fn is_ended(&self) -> bool {
        self.offer.is_ended()
    }

    /// Closes the group to newcomers when nobody is left or nothing follows; gives then what it could be found by.
    pub fn close_if_over(&mut self) -> Option<Likeness> {
        let is_over = self.is_empty() || self.is_ended();
        self.likeness.take_if(|_| is_over)
    }

    /// Takes a member and gives it what it does not have yet.
    pub fn join(&mut self, member: Member) -> Option<Leaver> {
        let slot = self.members.insert(member);
        // Whole frames of it may have come with its socket.
        let listened = match self.framing {
            Framing::Messages => self.members.get_mut(slot)?.listen(&[]),
            Framing::Chunks => Ok(()),
        };
        match listened {
            Ok(()) => self.serve(slot),
            Err(gone) => self.settle(slot, Err(gone)),
        }
    }

    /// Gives a member what it does not have yet: there is room again. It may have left.
    pub fn serve(&mut self, slot: usize) -> Option<Leaver> {
        self.forget_purged();
        let mut sent = Sent::default();
        let standing = self.members.get_mut(slot)?.serve(&self.offer, &mut sent);
        self.count(&sent);
        self.settle(slot, standing)
    }

    /// Hears what a member says, and answers. It may have left.
    pub fn hear(&mut self, slot: usize, registry: &Registry) -> Option<Leaver> {
        let heard = self.members.get_mut(slot)?.hear(self.framing, registry);
        match heard {
            Ok(()) => self.serve(slot),
            Err(gone) => self.settle(slot, Err(gone)),
        }
    }

    /// Takes news, or goes on with the last, and serves some members. What is on offer then takes at most so many
    /// bytes. Rows may come at any time, other news when everyone has the last.
    pub fn deliver(&mut self, news: Option<News>, bytes_max: usize) -> (Delivery, Vec<Leaver>) {
        self.forget_purged();
        if let Some(news) = news {
            self.begin_round(news);
        }
        let mut leavers = Vec::new();
        let mut sent = Sent::default();
        for _ in 0..MEMBERS_AT_ONCE {
            let Some(slot) = self.round.next() else { break };
            let Some(member) = self.members.get_mut(slot) else { continue };
            let standing = serve_in_round(member, &self.offer, &self.round, &mut sent);
            // What is left of a notice would not go along, and who lags would read for itself until it is live.
            let may_move = member.state == FeedState::Live && member.behind_since().is_none();
            leavers.extend(match (&standing, self.round.elsewhere(slot).filter(|_| may_move)) {
                (Ok(Standing::UpToDate), Some(feeds)) => {
                    Some(Leaver { way: Way::Moves(feeds.clone()), member: self.members.remove(slot) })
                }
                _ => self.settle(slot, standing),
            });
        }
        self.count(&sent);
        if !self.round.is_over() {
            return (Delivery::GoOn, leavers);
        }
        // Who has been told nothing but that there is nothing has everything, or is slow.
        let is_idle = self.round.notice.as_ref().is_some_and(|notice| !notice.of_lag);
        let keep = if is_idle { 0 } else { bytes_max };
        self.offer.trim(keep);
        if self.members.capacity() > SPARE_SLOTS * (self.members.len() + MEMBERS_AT_ONCE) {
            self.members.shrink_to_fit();
        }
        (Delivery::Done, leavers)
    }

    fn begin_round(&mut self, news: News) {
        let are_rows = matches!(news, News::Rows { .. });
        if self.round.is_over() || !are_rows {
            self.round.notice = None;
            self.round.shares = if self.lags { None } else { self.shares.take_if(|_| are_rows) };
        }
        self.round.go_around(self.members.capacity());
        match news {
            News::Rows { blocks, purges } => {
                self.offer.add(blocks);
                if purges != self.purges {
                    self.offer.trim(0);
                }
            }
            News::Notice { words, at } => self.round.notice = Some(Notice { words, at, of_lag: false }),
            News::Lags { words, at } => {
                self.lags = true;
                self.round.notice = Some(Notice { words, at, of_lag: true });
            }
            // Each is told when it has everything.
            News::IsLive { .. } => self.lags = false,
            News::End(last) => self.offer.end(last),
        }
    }

    /// What was read before something was purged may hold it: who does not have it yet reads for itself.
    fn forget_purged(&mut self) {
        let purges = self.alone.purges();
        if std::mem::replace(&mut self.purges, purges) != purges {
            self.offer.trim(0);
        }
    }

    /// Lets a member go that does not stay.
    fn settle(&mut self, slot: usize, standing: io::Result<Standing>) -> Option<Leaver> {
        let way = match standing.and_then(|standing| self.tell_live(slot, standing)) {
            Ok(Standing::UpToDate | Standing::Full) => return None,
            Ok(Standing::Behind) => Way::Apart,
            Ok(Standing::Ends(reason)) => Way::Ends(reason),
            Ok(Standing::Finished) => Way::Over,
            Err(_) => Way::Gone,
        };
        Some(Leaver { member: self.members.remove(slot), way })
    }

    /// Tells a member that it is live again, if it was told that it lags and has everything.
    fn tell_live(&mut self, slot: usize, standing: Standing) -> io::Result<Standing> {
        if let (Standing::UpToDate, false, Some(member)) = (standing, self.lags, self.members.get_mut(slot))
            && member.state == FeedState::Lagging
        {
            member.state = FeedState::Live;
            let mut sent = Sent::default();
            member.tell(&self.alone.is_live(member.position), &mut sent)?;
            self.count(&sent);
        }
        Ok(standing)
    }

    /// Has a member that is not watched any more read for itself, or end.
    pub fn send_off(&self, member: Member, ends: Option<EndReason>) {
        self.alone.go_on(member.apart(), self.offer.start(), ends, None);
    }

    /// Has a member that is not watched any more, and has everything, go on at another worker.
    pub fn send_to(&self, member: Member, feeds: Addr<Feeds>) {
        self.alone.go_on(member.apart(), Rc::default(), None, Some(feeds));
    }

    /// Has its members shared with the likes of it at these other workers, in the next round.
    pub fn share_with(&mut self, others: Vec<Addr<Feeds>>) {
        self.shares = Some(Shares(others));
    }

    /// What its feeds give; `None` once nobody can join any more.
    pub fn likeness(&self) -> Option<&Likeness> {
        self.likeness.as_ref()
    }

    /// What the members' feeds are, and how many there are.
    pub fn about(&self) -> Option<(Arc<FeedAbout>, usize)> {
        Some((self.alone.about()?, self.members.len()))
    }

    /// The members that have not been given the end, by their slots.
    pub fn members(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter().filter(|(_, member)| member.position < BEHIND_THE_END)
    }

    /// A member's feed as it stands.
    pub fn info(&self, slot: usize) -> Option<FeedInfo> {
        let member = self.members.get(slot)?;
        Some(FeedInfo {
            record: member.seat.record(),
            about: self.alone.about()?,
            client: member.socket.peer_addr().ok(),
            state: member.state,
            position: member.position,
            behind_since: member.behind_since(),
        })
    }

    /// Tells a member that its feed ends shortly.
    pub fn say_draining(&mut self, slot: usize, drain: &Drain) -> Option<Leaver> {
        let member = self.members.get_mut(slot)?;
        let is_told = std::mem::replace(&mut member.state, FeedState::Draining) == FeedState::Draining;
        if is_told || member.position == BEHIND_THE_END {
            return None;
        }
        let id = member.seat.record().id;
        let words = self.alone.draining(member.position, drain.retry(id, drain.ends_at(id)));
        let mut sent = Sent::default();
        let told = member.tell(&words, &mut sent);
        self.count(&sent);
        self.settle(slot, told.map(|()| Standing::UpToDate))
    }

    /// The id of a member's feed.
    pub fn id_of(&self, slot: usize) -> Option<FeedId> {
        Some(self.members.get(slot)?.seat.record().id)
    }

    /// Ends a member's feed, behind what it has been given in part.
    pub fn end(&mut self, slot: usize, reason: EndReason) -> Option<Leaver> {
        self.members.get_mut(slot)?.ends = Some(reason);
        self.serve(slot)
    }

    /// Looks after the members when it is time, whether or not there is anything for them: those who take nothing are
    /// given up, and the system looks after those who keep up.
    pub fn look(&mut self) -> Vec<Leaver> {
        if self.looked.elapsed() < self.patience {
            return Vec::new();
        }
        self.looked = Instant::now();
        let mut gone = Vec::new();
        for (slot, member) in &mut self.members {
            if member.has_stalled(READ_TIMEOUT) || member.look(self.patience).is_err() {
                gone.push(slot);
            }
        }
        gone.into_iter().filter_map(|slot| self.cut(slot)).collect()
    }

    /// Gives a member up.
    pub fn cut(&mut self, slot: usize) -> Option<Leaver> {
        self.settle(slot, Err(ErrorKind::TimedOut.into()))
    }

    fn count(&self, sent: &Sent) {
        self.counters.rows(sent.rows);
        self.counters.bytes(sent.bytes);
    }
}

fn serve_in_round(member: &mut Member, offer: &Offer, round: &Round, sent: &mut Sent) -> io::Result<Standing> {
    let standing = member.serve(offer, sent)?;
    if let (Standing::UpToDate, Some(Notice { words, at, of_lag })) = (standing, &round.notice)
        && member.position <= *at
        && !(*of_lag && member.state != FeedState::Live)
    {
        if *of_lag {
            member.state = FeedState::Lagging;
        }
        member.tell(words, sent)?;
        // What lies in between is not for its eyes.
        member.position = *at;
    }
    Ok(standing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_gives_each_slot_a_turn_and_another_where_something_joins_it() {
        let mut round = Round::default();
        assert!(round.is_over());
        round.go_around(5);
        assert_eq!(round.by_ref().take(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(!round.is_over());
        round.go_around(5);
        assert_eq!(round.by_ref().collect::<Vec<_>>(), [3, 4, 0, 1, 2], "those who have had none are first");
        assert!(round.is_over());
        round.go_around(2);
        assert_eq!(round.by_ref().collect::<Vec<_>>(), [0, 1], "slots were given back");
        round.go_around(4);
        assert_eq!(round.by_ref().collect::<Vec<_>>(), [2, 3, 0, 1], "there are more");
    }
}
