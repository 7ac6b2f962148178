//! Live feeds that give the same from here on: one of them reads for all, the others keep no more than their seats.
//! Who falls behind reads for itself again.

use std::sync::Arc;
use std::time::Duration;

use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use tokio::time::Instant;

use super::options::{FeedMode, FeedOptions, Since};
use super::source::Source;
use super::subscriber::Subscriber;
use super::told::Told;
use super::{Feed, FeedMetrics};
use crate::feed::kind::FeedKind;
use crate::filter::Test;
use crate::known::{FeedAbout, FeedRecord, FeedState, KnownFeed, Order};
use crate::metrics::CountedOpen;
use crate::permits::FeedPermit;
use crate::rounds::OwnRounds;
use crate::row::RowShape;
use crate::selector::Fields;

/// A place among the open feeds, given back when dropped.
pub struct Seat {
    _open: CountedOpen,
    permit: FeedPermit,
    /// Of a feed that does not read for itself.
    record: FeedRecord,
}

impl Seat {
    pub(crate) fn new(kind: FeedKind, permit: FeedPermit) -> Seat {
        let record = permit.known().map(|known| known.record()).unwrap_or_default();
        Seat { _open: CountedOpen::new(kind), permit, record }
    }

    /// How long its reader is to wait before it comes back.
    pub(crate) fn comeback(&self, least: Duration) -> Duration {
        self.permit.comeback(least)
    }

    /// The feed, while it reads for itself.
    pub(crate) fn known(&self) -> Option<&KnownFeed> {
        self.permit.known().map(AsRef::as_ref)
    }

    /// The feed does not read for itself any more: who has its seat counts for it from now on. What it was told last.
    pub fn take_over(&mut self) -> Option<Order> {
        let known = self.permit.forget()?;
        self.record = known.record();
        known.order()
    }

    /// Counts rows and bytes that its reader was given.
    pub fn count(&mut self, rows: usize, bytes: usize) {
        self.record.rows += rows as u64;
        self.record.bytes += bytes as u64;
    }

    /// What goes with the feed, since it does not read for itself any more.
    pub fn record(&self) -> FeedRecord {
        self.record
    }
}

/// What a live feed gives from here on. Feeds whose likenesses are equal give the same rows behind the same place; it
/// is good for as long as one of them is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Likeness {
    source: [usize; 2],
    shape: RowShape,
    fields: Option<Arc<Fields>>,
    heartbeat: Option<Duration>,
    kind: FeedKind,
    /// Feeds that tell what leaves are woken for more than passes.
    leave: Option<Test>,
}

impl Likeness {
    /// The feeds' heartbeat.
    pub fn heartbeat(&self) -> Option<Duration> {
        self.heartbeat
    }
}

/// How feeds like one are opened again.
pub struct Reopening<S: Source> {
    source: S,
    options: FeedOptions,
    about: Option<Arc<FeedAbout>>,
}

impl<S: Source> Feed<S> {
    /// What the feed gives from here on: rows, heartbeats and the end. `None` while it has other things to say, and
    /// where nobody else's rows are of use to it: it counts them or the time without, ends at a place, asks a function,
    /// or waits for a place that has not come.
    pub fn likeness(&self) -> Option<Likeness> {
        let FeedOptions { mode, descending, until, limit, heartbeat, timeout, filter, .. } = &self.options;
        let is_endless = *mode == FeedMode::Live && !descending && until.is_none() && limit.is_none();
        let is_timed = timeout.is_some() && heartbeat.is_none();
        let may_share = is_endless && !is_timed && filter.function.is_none() && !self.told.anything();
        let is_live = self.subscriber.is_following() && self.is_opened() && self.position() <= self.source.newest();
        // Who tells what leaves must have seen all that those it joins have, and those that join it.
        let has_seen_all = self.seen.is_none_or(|seen| seen.stands_for_all(self.position()));
        if !may_share || !is_live || !has_seen_all {
            return None;
        }
        Some(Likeness {
            source: self.source.identity()?,
            shape: self.options.shape,
            fields: self.options.fields.clone(),
            heartbeat: *heartbeat,
            kind: self.options.kind,
            leave: self.options.leave.then(|| self.options.filter.test.clone()),
        })
    }

    /// Takes the feed's seat: it reads for others from now on, and whoever gives its rows to them counts these.
    pub fn take_seat(&mut self) -> Option<Seat> {
        self.told = Told::nothing();
        self.seat.take()
    }

    /// The rounds in which it gives its rows to many, if who writes is to keep step with them.
    pub fn rounds(&self) -> Option<OwnRounds> {
        self.source.rounds(self.position())
    }

    /// How feeds like this one are opened again.
    pub fn reopening(&self) -> Reopening<S> {
        Reopening { source: self.source.again(), options: self.options.clone(), about: self.about.clone() }
    }

    /// The feed's counters, for who counts longer than it lives.
    pub fn counters(&self) -> FeedMetrics {
        self.metrics.clone()
    }
}

impl<S: Source> Reopening<S> {
    /// How the feeds' sequences are written.
    pub fn seq_format(&self) -> SeqFormat {
        self.source.seq_format()
    }

    /// What the feeds are.
    pub fn about(&self) -> Option<Arc<FeedAbout>> {
        self.about.clone()
    }

    /// How often rows were purged: what was read when it was as often may be given.
    pub fn purges(&self) -> u64 {
        self.source.purges()
    }

    /// A live feed behind `position`, for who has this seat, is not served with others any more, and was told last that
    /// its feed is in this state.
    pub fn open(&self, position: Sequence, mut seat: Seat, state: FeedState) -> Feed<S> {
        if let Some(about) = &self.about {
            seat.permit.know_again(Arc::clone(about), seat.record, state);
        }
        let options = FeedOptions { since: Since::Seq(position), ..self.options.clone() };
        let subscriber = Subscriber::resumed(&options, position, state, Instant::now());
        let mut feed = Feed::with(self.source.again(), options, subscriber, seat);
        if state == FeedState::Draining {
            feed.told.note_said();
        }
        feed.note_given(0);
        feed
    }
}
