//! The actor that serves a worker's taken-over connections.

use std::collections::HashMap;
use std::io;

use actix::{Actor, AsyncContext, Context, Handler, Message, StreamHandler};
use mio::{Interest, Poll, Registry, Token};
use seqtide::{Feed, Likeness, Source};
use slab::Slab;

use super::group::{Group, GroupId, Leaver};
use super::member::Member;
use super::readiness::{Ready, readiness};
use super::reading::{Apart, Deliver, Delivery, Founder, Reader};
use crate::feeds::heard::Heard;
use crate::feeds::wire::Wire;

/// Most bytes that one group keeps for its members.
const OFFER_BYTES_MAX: usize = 1 << 20;

/// Most bytes that all groups of a worker keep for their members.
const OFFERS_BYTES_MAX: usize = 16 << 20;

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
    /// A connection that has been sent what the feed gave, and whose client has begun to say this; `None` of a feed that
    /// reads for others.
    pub fn new<S: Source, W: Wire>(
        socket: std::net::TcpStream,
        heard: Option<Box<Heard>>,
        likeness: Likeness,
        mut feed: Feed<S>,
        wire: W,
    ) -> Option<Attach> {
        let apart = Apart { socket, heard, position: feed.position(), lags: false, seat: feed.take_seat()? };
        Some(Attach { apart, likeness, founder: Box::new(Reader { feed, wire }) })
    }
}

impl Feeds {
    /// The feeds of a worker, of which there are none yet.
    ///
    /// # Errors
    /// When the system has nothing left to watch sockets with.
    pub fn new() -> io::Result<Feeds> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let (watched, groups, by_likeness) = Default::default();
        Ok(Feeds { poll: Some(poll), registry, watched, groups, by_likeness, next_group: 0 })
    }

    fn attach(&mut self, attach: Attach, ctx: &Context<Feeds>) -> io::Result<()> {
        let Attach { apart, likeness, founder } = attach;
        let place = self.watched.vacant_entry();
        let mut member = Member::new(apart, place.key());
        self.registry.register(&mut member.socket, Token(place.key()), Interest::READABLE | Interest::WRITABLE)?;
        let id = *self.by_likeness.entry(likeness.clone()).or_insert(self.next_group);
        let group = self.groups.entry(id).or_insert_with(|| {
            self.next_group += 1;
            founder.found(id, likeness, &ctx.address())
        });
        place.insert((id, group.vacant_slot()));
        let leaver = group.join(member);
        self.dismiss(id, leaver);
        Ok(())
    }

    /// Lets go of members that do not stay, and of a group that nobody is left in or that is over.
    fn dismiss(&mut self, id: GroupId, leavers: impl IntoIterator<Item = Leaver>) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        for Leaver { mut member, goes_on } in leavers {
            self.watched.remove(member.watched);
            if goes_on && self.registry.deregister(&mut member.socket).is_ok() {
                group.send_off(member);
            }
        }
        if let Some(likeness) = group.close_if_over() {
            self.by_likeness.remove(&likeness);
        }
        if group.is_empty() {
            self.groups.remove(&id);
        }
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

impl Handler<Deliver> for Feeds {
    type Result = Delivery;

    fn handle(&mut self, Deliver { group: id, news }: Deliver, _: &mut Context<Feeds>) -> Delivery {
        let bytes_max = self.offer_bytes_max();
        let Some(group) = self.groups.get_mut(&id) else { return Delivery::Over };
        let (delivery, leavers) = group.deliver(news, bytes_max);
        self.dismiss(id, leavers);
        delivery
    }
}

impl StreamHandler<Vec<Ready>> for Feeds {
    fn handle(&mut self, ready: Vec<Ready>, _: &mut Context<Feeds>) {
        for Ready { watched, readable, writable } in ready {
            let Some(&(id, slot)) = self.watched.get(watched) else { continue };
            let Some(group) = self.groups.get_mut(&id) else { continue };
            let left = if readable { group.hear(slot) } else { None };
            let left = left.or_else(|| if writable { group.serve(slot) } else { None });
            self.dismiss(id, left);
        }
    }
}
