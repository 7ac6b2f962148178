//! What a feed is told from outside, and when it is to do it.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Seat;
use super::options::FeedMode;
use crate::end_reason::EndReason;
use crate::known::{FeedId, Order};

/// What a feed is told; one that reads for others is told nothing.
#[derive(Clone)]
pub(super) struct Told {
    orders: Option<(FeedId, watch::Receiver<Option<Order>>)>,
    /// It is to end in its turn.
    pub ends_at: Option<Instant>,
    /// It has said so.
    said: bool,
}

/// What follows from what a feed was told.
pub(super) enum Obeyed {
    /// It ends.
    Ends(EndReason),
    /// It says that it ends shortly, and when to come back.
    Says { retry: Duration },
}

impl Told {
    pub fn nothing() -> Told {
        Told { orders: None, ends_at: None, said: false }
    }

    /// What the feed in this seat is told.
    pub fn of(seat: &Seat) -> Told {
        let orders = seat.known().map(|known| (known.record().id, known.orders()));
        Told { orders, ends_at: None, said: false }
    }

    /// Takes note that its reader knows that it ends shortly.
    pub fn note_said(&mut self) {
        self.said = true;
    }

    /// Whether it was told anything.
    pub fn anything(&self) -> bool {
        self.orders.as_ref().is_some_and(|(_, orders)| orders.borrow().is_some())
    }

    /// Waits until it is told more.
    pub async fn more(&mut self) {
        let Some((_, orders)) = &mut self.orders else { return pending().await };
        if orders.changed().await.is_err() {
            pending().await
        }
    }

    /// Waits until it is told to end at once.
    pub async fn the_end(self) {
        let Some((_, mut orders)) = self.orders else { return pending().await };
        if orders.wait_for(|order| matches!(order, Some(Order::End(_)))).await.is_err() {
            pending().await
        }
    }

    /// What it is to do now, if anything. A feed that ends by itself is given all of the time there is.
    pub fn next(&mut self, mode: FeedMode) -> Option<Obeyed> {
        let (id, orders) = self.orders.as_mut()?;
        let order = *orders.borrow_and_update();
        match order? {
            Order::End(reason) => Some(Obeyed::Ends(reason)),
            Order::Drain(drain) => {
                let due = if mode == FeedMode::Once { drain.until() } else { drain.ends_at(*id) };
                // Who is told a second time ends no later than by the first.
                let known = self.ends_at.map(|before| before.min(due));
                let ends_at = *self.ends_at.insert(known.unwrap_or(due));
                if known.is_some() {
                    return (Instant::now() >= ends_at).then_some(Obeyed::Ends(EndReason::Shutdown));
                }
                let says = !std::mem::replace(&mut self.said, true);
                says.then(|| Obeyed::Says { retry: drain.retry(*id, ends_at) })
            }
        }
    }
}
