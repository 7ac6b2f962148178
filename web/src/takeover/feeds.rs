//! The actor that serves a worker's taken-over connections.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message, StreamHandler};
use mio::{Poll, Registry, Token};
use seqtide::{Drain, END_GRACE, EndReason, Feed, FeedId, FeedState, Likeness, Order, Source};
use slab::Slab;
use tokio::time::Instant;

use super::draining::{Draining, MemberId};
use super::group::{Group, GroupId, Leaver, Way};
use super::member::{Member, WATCHED_FOR};
use super::readiness::{Ready, readiness};
use super::reading::{Apart, Deliver, Delivery, Founder, Reader, Share};
use super::roll::{DrainFeeds, EndFeed, List, Listed, Workers};
use crate::wire::Wire;
use crate::wire::heard::Heard;

/// Most bytes that one group keeps for its members.
const OFFER_BYTES_MAX: usize = 1 << 20;

/// Most bytes that all groups of a worker keep for their members.
const OFFERS_BYTES_MAX: usize = 16 << 20;

/// So many members are told that they end, and so many end, in one go: everything else on the worker waits meanwhile.
const DRAINED_AT_ONCE: usize = 128;

/// And then the next.
const DRAIN_EVERY: Duration = Duration::from_millis(10);

/// It is so often seen to it that members are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Members are shared among as many workers as get so many each: each is to read the feed for its own.
const SHARED_MIN: usize = 8;

/// The taken-over connections of a worker, by what their feeds give.
pub struct Feeds {
    /// What watches the sockets, until the actor is started.
    poll: Option<Poll>,
    registry: Registry,
    /// Where the member stands whose socket is watched.
    watched: Slab<(GroupId, usize)>,
    groups: HashMap<GroupId, Group>,
    /// Those that can be joined.
    by_likeness: HashMap<Likeness, GroupId>,
    next_group: GroupId,
    draining: Option<Draining>,
    workers: Workers,
}

/// A connection to be served from now on, by a live feed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Attach {
    apart: Apart,
    likeness: Likeness,
    founder: Box<dyn Founder + Send>,
}

impl Attach {
    /// A connection that has been sent what the feed gave, and whose client has begun to say this; `None` of a feed
    /// that reads for others.
    pub fn new<S: Source, W: Wire>(
        socket: std::net::TcpStream,
        heard: Option<Box<Heard>>,
        likeness: Likeness,
        mut feed: Feed<S>,
        wire: W,
    ) -> Option<Attach> {
        let apart = Apart { socket, heard, position: feed.position(), state: FeedState::Live, seat: feed.take_seat()? };
        Some(Attach { apart, likeness, founder: Box::new(Reader { feed, wire }) })
    }
}

impl Feeds {
    /// The feeds of one of these workers, of which there are none yet.
    ///
    /// # Errors
    /// When the system has nothing left to watch sockets with.
    pub fn new(workers: Workers) -> io::Result<Feeds> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let (watched, groups, by_likeness) = Default::default();
        Ok(Feeds { poll: Some(poll), registry, watched, groups, by_likeness, next_group: 0, draining: None, workers })
    }

    fn attach(&mut self, attach: Attach, ctx: &mut Context<Feeds>) -> io::Result<()> {
        let Attach { mut apart, likeness, founder } = attach;
        let order = apart.seat.take_over();
        let place = self.watched.vacant_entry();
        let (watched, feed) = (place.key(), apart.seat.record().id);
        let mut member = Member::new(apart, watched);
        self.registry.register(&mut member.socket, Token(watched), WATCHED_FOR)?;
        let id = *self.by_likeness.entry(likeness.clone()).or_insert(self.next_group);
        if let Some(Order::End(reason)) = order {
            member.ends = Some(reason);
        }
        let group = self.groups.entry(id).or_insert_with(|| {
            self.next_group += 1;
            self.workers.homes().founded(&likeness, ctx.address());
            founder.found(id, likeness, &ctx.address())
        });
        place.insert((id, group.vacant_slot()));
        let leaver = group.join(member);
        self.dismiss(id, leaver);
        match order {
            None => {}
            Some(Order::End(reason)) => self.end(watched, reason, ctx),
            Some(Order::Drain(drain)) => self.draining(drain, ctx).add(MemberId { watched, feed }),
        }
        Ok(())
    }

    /// Lets go of members that do not stay, and of a group that nobody is left in or that is over.
    fn dismiss(&mut self, id: GroupId, leavers: impl IntoIterator<Item = Leaver>) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        for Leaver { mut member, way } in leavers {
            self.watched.remove(member.watched);
            if way == Way::Gone || self.registry.deregister(&mut member.socket).is_err() {
                continue;
            }
            match way {
                Way::Gone => {}
                Way::Over => member.linger(),
                Way::Apart => group.send_off(member, None),
                Way::Ends(reason) => group.send_off(member, Some(reason)),
                Way::Moves(feeds) => group.send_to(member, feeds),
            }
        }
        if let Some(likeness) = group.close_if_over() {
            self.by_likeness.remove(&likeness);
            self.workers.homes().over(&likeness);
        }
        if group.is_empty() {
            self.groups.remove(&id);
        }
    }

    /// Ends a member's feed; a reader that does not take what it was begun with is given up after a while.
    fn end(&mut self, watched: usize, reason: EndReason, ctx: &mut Context<Feeds>) {
        let Some((id, slot)) = self.watched.get(watched).copied() else { return };
        let Some(group) = self.groups.get_mut(&id) else { return };
        let Some(feed) = group.id_of(slot) else { return };
        let leaver = group.end(slot, reason);
        if leaver.is_none() {
            ctx.run_later(END_GRACE, move |feeds, _| feeds.cut(MemberId { watched, feed }));
        }
        self.dismiss(id, leaver);
    }

    /// Gives a member up that is still there.
    fn cut(&mut self, member: MemberId) {
        self.with(member, |group, slot| group.cut(slot));
    }

    /// Does something with a member, if it is still there.
    fn with(&mut self, member: MemberId, act: impl FnOnce(&mut Group, usize) -> Option<Leaver>) {
        let MemberId { watched, feed } = member;
        let Some((id, slot)) = self.watched.get(watched).copied() else { return };
        let Some(group) = self.groups.get_mut(&id).filter(|group| group.id_of(slot) == Some(feed)) else { return };
        let leaver = act(group, slot);
        self.dismiss(id, leaver);
    }

    /// Those who end one after the other, from now on.
    fn draining(&mut self, drain: Drain, ctx: &mut Context<Feeds>) -> &mut Draining {
        self.draining.get_or_insert_with(|| {
            ctx.run_interval(DRAIN_EVERY, |feeds, _| feeds.drain_some());
            Draining::new(drain)
        })
    }

    /// Tells some members that they end, and ends some; the others are next when everything else has had its turn.
    fn drain_some(&mut self) {
        let Some(draining) = &mut self.draining else { return };
        let (drain, told) = (draining.drain, draining.next_told(DRAINED_AT_ONCE));
        let ended = draining.next_ended(DRAINED_AT_ONCE, Instant::now());
        for member in told {
            self.with(member, |group, slot| group.say_draining(slot, &drain));
        }
        for member in ended {
            self.with(member, |group, slot| group.end(slot, EndReason::Shutdown));
        }
    }

    /// Gives up those who are there no more, as far as that shows.
    fn look(&mut self) {
        // All of a group together: it goes with the last of them, and nobody is found in it any more.
        let looked = self.groups.iter_mut().map(|(id, group)| (*id, group.look()));
        for (id, leavers) in looked.filter(|(_, leavers)| !leavers.is_empty()).collect::<Vec<_>>() {
            self.dismiss(id, leavers);
        }
    }

    /// All members, by their groups and slots.
    fn members(&self) -> impl Iterator<Item = (GroupId, usize, &Member)> {
        self.groups.iter().flat_map(|(id, group)| group.members().map(|(slot, member)| (*id, slot, member)))
    }

    fn offer_bytes_max(&self) -> usize {
        OFFER_BYTES_MAX.min(OFFERS_BYTES_MAX / self.groups.len().max(1))
    }
}

impl Actor for Feeds {
    type Context = Context<Feeds>;

    fn started(&mut self, ctx: &mut Context<Feeds>) {
        let Some(poll) = self.poll.take() else { return };
        match readiness(poll) {
            Ok(ready) => {
                ctx.add_stream(ready);
            }
            Err(error) => tracing::error!(%error, "the sockets of feeds are not watched"),
        }
        ctx.run_interval(LOOK_EVERY, |feeds, _| feeds.look());
    }
}

impl Handler<Attach> for Feeds {
    type Result = ();

    fn handle(&mut self, attach: Attach, ctx: &mut Context<Feeds>) {
        if let Err(error) = self.attach(attach, ctx) {
            tracing::error!(%error, "the connection of a feed cannot be watched");
        }
    }
}

impl Handler<List> for Feeds {
    type Result = Listed;

    fn handle(&mut self, list: List, _: &mut Context<Feeds>) -> Listed {
        let wanted = |member: &Member| !list.only_behind || member.behind_since().is_some();
        let mut found: Vec<(FeedId, GroupId, usize)> = self
            .members()
            .filter(|(_, _, member)| member.seat.record().id > list.after && wanted(member))
            .map(|(group, slot, member)| (member.seat.record().id, group, slot))
            .collect();
        if found.len() > list.most {
            found.select_nth_unstable(list.most);
            found.truncate(list.most);
        }
        let info = |(_, group, slot)| self.groups.get(&group)?.info(slot);
        let mut open = BTreeMap::new();
        for (about, members) in self.groups.values().filter_map(Group::about) {
            *open.entry(about.kind).or_default() += members;
        }
        Listed { feeds: found.into_iter().filter_map(info).collect(), open }
    }
}

impl Handler<EndFeed> for Feeds {
    type Result = bool;

    fn handle(&mut self, EndFeed(feed): EndFeed, ctx: &mut Context<Feeds>) -> bool {
        let found = self.members().find(|(_, _, member)| member.seat.record().id == feed);
        let Some(watched) = found.map(|(_, _, member)| member.watched) else { return false };
        self.end(watched, EndReason::Revoked, ctx);
        true
    }
}

impl Handler<DrainFeeds> for Feeds {
    type Result = ();

    fn handle(&mut self, DrainFeeds(drain): DrainFeeds, ctx: &mut Context<Feeds>) {
        let id = |member: &Member| MemberId { watched: member.watched, feed: member.seat.record().id };
        let members: Vec<MemberId> = self.members().map(|(_, _, member)| id(member)).collect();
        let draining = self.draining(drain, ctx);
        members.into_iter().for_each(|member| draining.add(member));
    }
}

impl Handler<Deliver> for Feeds {
    type Result = Delivery;

    fn handle(&mut self, Deliver { group: id, news }: Deliver, ctx: &mut Context<Feeds>) -> Delivery {
        let bytes_max = self.offer_bytes_max();
        let Some(group) = self.groups.get_mut(&id) else { return Delivery::Over };
        let (delivery, leavers) = group.deliver(news, bytes_max);
        if delivery == Delivery::GoOn && group.is_ended() {
            // Who reads for it may be gone.
            ctx.notify(Deliver { group: id, news: None });
        }
        self.dismiss(id, leavers);
        delivery
    }
}

impl Handler<Share> for Feeds {
    type Result = ();

    fn handle(&mut self, Share(id): Share, ctx: &mut Context<Feeds>) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let (own, mut others) = (ctx.address(), self.workers.all());
        others.retain(|feeds| *feeds != own && feeds.connected());
        let members = group.members().count();
        others.truncate((members / SHARED_MIN).saturating_sub(1));
        if others.is_empty() {
            return;
        }
        if group.likeness().is_some_and(|likeness| self.workers.homes().share(likeness, &own)) {
            tracing::debug!(members, "feeds that give the same are shared among the workers");
            group.share_with(others);
        }
    }
}

impl StreamHandler<Vec<Ready>> for Feeds {
    fn handle(&mut self, ready: Vec<Ready>, _: &mut Context<Feeds>) {
        for Ready { watched, readable, writable } in ready {
            let Some(&(id, slot)) = self.watched.get(watched) else { continue };
            let Some(group) = self.groups.get_mut(&id) else { continue };
            let left = if readable { group.hear(slot, &self.registry) } else { None };
            let left = left.or_else(|| if writable { group.serve(slot) } else { None });
            self.dismiss(id, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use seqtide::{Engine, FeedKind, FeedOptions, RowShape};

    use super::super::READ_TIMEOUT;
    use super::*;
    use crate::wire::form::Form;

    async fn listed(feeds: &actix::Addr<Feeds>) -> Vec<seqtide::FeedInfo> {
        let list = List { after: FeedId::default(), only_behind: false, most: 10 };
        feeds.send(list).await.unwrap().feeds
    }

    #[actix_web::test]
    async fn who_does_not_read_is_given_up_where_nothing_comes_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let database = engine.create_database("db").await.unwrap();
        let shape = RowShape { doc: true, ..RowShape::default() };
        let mut feed = database.feed(FeedOptions { shape, ..FeedOptions::live(FeedKind::Lines) }).await.unwrap();
        while feed.likeness().is_none() {
            feed.next().await.unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let likeness = feed.likeness().unwrap();
        let feeds = Feeds::new(Workers::default()).unwrap().start();
        feeds.do_send(Attach::new(socket, None, likeness, feed, Form::Lines).unwrap());
        // More than the system's buffers take.
        let large = format!(r#"{{"pad":"{}"}}"#, "x".repeat(7 << 20));
        for id in ["a", "b", "c"] {
            database.put(id, &large).await.unwrap();
        }
        while listed(&feeds).await.iter().all(|feed| feed.behind_since.is_none()) {
            tokio::task::yield_now().await;
        }
        engine.delete_database("db").await.unwrap();
        tokio::time::pause();
        let paused = Instant::now();
        while !listed(&feeds).await.is_empty() {
            assert!(paused.elapsed() < READ_TIMEOUT * 3, "it is kept for ever");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        assert!(paused.elapsed() > READ_TIMEOUT / 2, "after {:?}", paused.elapsed());
        // What its system has of it, and no end.
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut said = Vec::new();
        let _reset = client.read_to_end(&mut said);
        assert!(!String::from_utf8_lossy(&said).contains("deleted"));
        tokio::time::resume();
        engine.shutdown().await.unwrap();
    }
}
