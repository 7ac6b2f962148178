//! Whose turn it is among the feeds of one connection.
//!
//! A feed that may have something to give stands in a queue; the first has a turn, in which it reads one page at most,
//! and goes to the end of the queue. So a subscription with a long way to go keeps no other from being heard, and one
//! page is on its way at a time, however many subscriptions there are; a few more where one takes long to read. Feeds
//! that have given all there is wait until they are woken. Nothing goes on while it is not polled.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::{AbortHandle, AbortRegistration, Abortable};
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, Sleep, sleep};

use super::any_feed::{AnyFeed, Turned};
use super::connections::Lookout;

/// A turn that takes longer, as where a function is slow, goes on beside those of the others.
const TURN: Duration = Duration::from_millis(50);

/// So many turns do at once: each may have a page.
const LONG_TURNS_MAX: usize = 8;

/// A subscription's feed.
pub struct Active {
    /// The subscription.
    pub key: u64,
    /// What it follows. Boxed: each future that it goes through would have room for it twice.
    pub feed: Box<AnyFeed>,
    _lookout: Lookout,
}

impl Active {
    /// The feed of a subscription, with the look-out that is kept for it.
    pub fn new(key: u64, feed: AnyFeed, lookout: Lookout) -> Active {
        Active { key, feed: Box::new(feed), _lookout: lookout }
    }
}

/// What a turn came to.
pub type Ended = (Active, Result<Turned, seqtide::Error>);

type InTurn = Pin<Box<dyn Future<Output = Ended> + Send>>;
type Waiting = Pin<Box<dyn Future<Output = Active> + Send>>;

/// A turn, until it is too long for the others to wait.
struct Taking {
    key: u64,
    turn: InTurn,
    too_long: Option<Pin<Box<Sleep>>>,
}

impl Taking {
    fn new(mut active: Active) -> Taking {
        let key = active.key;
        let turn = Box::pin(async move {
            let turned = active.feed.turn().await;
            (active, turned)
        });
        Taking { key, turn, too_long: None }
    }
}

/// Feeds that take turns.
#[derive(Default)]
pub struct Turns {
    /// Those that may have something to give.
    queue: VecDeque<Active>,
    now: Option<Taking>,
    /// Turns that go on beside those of the others, who do not wait for them any more.
    long: FuturesUnordered<Abortable<InTurn>>,
    waiting: FuturesUnordered<Abortable<Waiting>>,
    /// How those are given up that wait or have a long turn.
    ways_out: HashMap<u64, AbortHandle>,
}

impl Turns {
    /// Whether there is no feed. One that was given up counts until it is polled.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.now.is_none() && self.long.is_empty() && self.waiting.is_empty()
    }

    /// Has a feed's turn come behind those of the others.
    pub fn take_in(&mut self, active: Active) {
        self.queue.push_back(active);
    }

    /// Has it come when there is something for the feed, or at this moment.
    pub fn wait(&mut self, mut active: Active, until: Option<Instant>) {
        let way_out = self.way_out(active.key);
        let waiting: Waiting = Box::pin(async move {
            active.feed.wait(until).await;
            active
        });
        self.waiting.push(Abortable::new(waiting, way_out));
    }

    /// A feed's turn comes no more.
    pub fn give_up(&mut self, key: u64) {
        self.queue.retain(|active| active.key != key);
        self.now.take_if(|taking| taking.key == key);
        if let Some(way_out) = self.ways_out.remove(&key) {
            way_out.abort();
        }
    }

    /// Has the feeds take their turns until one has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        loop {
            self.take_in_woken(cx);
            if let Some(ended) = self.poll_long(cx) {
                return Poll::Ready(ended);
            }
            if self.now.is_none() {
                self.now = self.queue.pop_front().map(Taking::new);
            }
            let Some(taking) = &mut self.now else { return Poll::Pending };
            if let Poll::Ready(ended) = taking.turn.as_mut().poll(cx) {
                self.now = None;
                return Poll::Ready(ended);
            }
            let too_long = taking.too_long.get_or_insert_with(|| Box::pin(sleep(TURN)));
            ready!(too_long.as_mut().poll(cx));
            if self.long.len() >= LONG_TURNS_MAX {
                return Poll::Pending;
            }
            self.let_it_last();
        }
    }

    fn take_in_woken(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(woken)) = Pin::new(&mut self.waiting).poll_next(cx) {
            // One that was given up is none.
            if let Ok(active) = woken {
                self.ways_out.remove(&active.key);
                self.queue.push_back(active);
            }
        }
    }

    fn poll_long(&mut self, cx: &mut Context<'_>) -> Option<Ended> {
        while let Poll::Ready(Some(ended)) = Pin::new(&mut self.long).poll_next(cx) {
            if let Ok((active, turned)) = ended {
                self.ways_out.remove(&active.key);
                return Some((active, turned));
            }
        }
        None
    }

    /// The others wait no more for the turn that goes on now.
    fn let_it_last(&mut self) {
        if let Some(Taking { key, turn, .. }) = self.now.take() {
            let way_out = self.way_out(key);
            self.long.push(Abortable::new(turn, way_out));
        }
    }

    /// A way to give a feed up.
    fn way_out(&mut self, key: u64) -> AbortRegistration {
        let (abort, registration) = AbortHandle::new_pair();
        self.ways_out.insert(key, abort);
        registration
    }
}
