//! A feed: a subscriber with its hands. It reads pages from its source, waits, and gives events.

mod by_function;
pub mod documents;
pub mod event;
pub mod frames;
pub mod kind;
pub(crate) mod large_page;
mod leave;
pub mod options;
mod reading;
mod seen;
mod shared;
mod shown;
pub mod source;
pub mod stream;
pub(crate) mod subscriber;
mod told;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use seqtide_storage::Direction;
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use tokio::sync::watch;
use tokio::task::consume_budget;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::documents::Documents;
use self::event::{FeedEvent, Portion};
use self::options::{Ahead, FeedOptions, OLDEST_SEQ};
use self::reading::Reading;
use self::seen::Seen;
pub use self::shared::{Likeness, Reopening, Seat};
use self::source::{Source, Wanted};
use self::subscriber::{Notice, Step, Subscriber};
use self::told::{Obeyed, Told};
use crate::end_reason::EndReason;
use crate::error::Error;
use crate::feed::frames::FrameForm;
use crate::known::{FeedAbout, FeedId, FeedState, KnownFeed};
use crate::metrics::FeedMetrics;
use crate::permits::FeedPermit;
use crate::row::Row;

/// What there was when a feed was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Behind this place a feed gives everything there is.
    pub oldest_seq: Sequence,
    /// The update sequence.
    pub update_seq: Sequence,
}

/// What there is of a source when a feed of it is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThereIs {
    /// The update sequence.
    pub newest: Sequence,
    /// Where a feed ends that gives what there is, and one begins that goes back.
    pub end: Sequence,
}

/// What a feed does with a turn.
#[derive(Debug)]
pub enum Turn<R = Row> {
    /// It gives something.
    Gives(FeedEvent<R>),
    /// It has nothing to give so far, and is to have another turn.
    GoesOn,
    /// It has given all there is: it [waits](Feed::wait), at most until this moment.
    Waits(Option<Instant>),
    /// It has ended.
    Over,
}

/// How long a feed that was ended from outside may take to give what it has begun with.
pub const END_GRACE: Duration = Duration::from_secs(5);

/// An open feed. Dropping it is leaving it.
pub struct Feed<S: Source = Documents> {
    source: S,
    options: FeedOptions,
    subscriber: Subscriber,
    ended: watch::Receiver<Option<EndReason>>,
    about: Option<Arc<FeedAbout>>,
    told: Told,
    /// The token asked for lies ahead of the source.
    ahead: Option<Sequence>,
    /// What is said first, until it is said.
    opening: Option<FeedEvent<S::Row>>,
    /// Where it stands until `opening` and `first` have been given.
    begins: Sequence,
    finished: bool,
    /// What was looked ahead at.
    first: Option<FeedEvent<S::Row>>,
    /// A page that is being read. It goes on while signs of life are given, and when waiting for it is given up.
    reading: Option<Reading<S::Row>>,
    /// How many pages it has taken since it waited.
    pages: usize,
    /// It has read all there was when it was told to wait.
    is_level: bool,
    /// It rests until then if rows come before.
    rests_until: Option<Instant>,
    /// How often rows had been purged when it took the last page: a later purge may concern what that has.
    purges: u64,
    metrics: FeedMetrics,
    /// A feed that reads for others has none.
    seat: Option<Seat>,
    /// What its reader can have, where it tells what leaves.
    seen: Option<Seen>,
}

impl<S: Source> fmt::Debug for Feed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("database", &self.database().map(DbName::as_str)).finish_non_exhaustive()
    }
}

impl<S: Source> Feed<S> {
    /// Opens a feed behind a place of a source that wakes it from now on.
    pub(crate) fn open(
        source: S,
        options: FeedOptions,
        since: Sequence,
        there_is: ThereIs,
        permit: FeedPermit,
    ) -> Result<Feed<S>, Error> {
        let ThereIs { newest, end } = there_is;
        let ahead = (since > newest && !options.descending).then_some(since);
        if let (Ahead::Refuse, Some(_)) = (options.ahead, ahead) {
            return Err(Error::Ahead { update_seq: newest, format: source.seq_format() });
        }
        let position = match options.ahead {
            Ahead::Rewind if ahead.is_some() => Sequence::ZERO,
            Ahead::Echo if since.incarnation > newest.incarnation => Sequence::ZERO,
            Ahead::Rewind | Ahead::Echo | Ahead::Refuse => since,
        };
        let extent = Extent { oldest_seq: OLDEST_SEQ, update_seq: newest };
        let heartbeat = options.heartbeat;
        let subscriber = Subscriber::new(&options, position, end, Instant::now());
        let opening = Some(match (options.ahead, ahead) {
            (Ahead::Rewind, Some(since)) => FeedEvent::Rewind { since, extent, heartbeat },
            _ => FeedEvent::Open { seq: subscriber.position(), extent, heartbeat },
        });
        let seat = Seat::new(options.kind, permit);
        let feed = Feed { ahead, opening, ..Feed::with(source, options, subscriber, seat) };
        feed.note_given(0);
        Ok(feed)
    }

    fn with(mut source: S, options: FeedOptions, subscriber: Subscriber, seat: Seat) -> Feed<S> {
        Feed {
            seen: source.looks_from(&options, subscriber.position()),
            ended: source.ended(),
            begins: subscriber.position(),
            about: seat.known().map(|known| known.about()),
            told: Told::of(&seat),
            metrics: FeedMetrics::new(options.kind),
            purges: source.purges(),
            source,
            options,
            subscriber,
            ahead: None,
            opening: None,
            finished: false,
            first: None,
            reading: None,
            pages: 0,
            is_level: false,
            rests_until: None,
            seat: Some(seat),
        }
    }

    /// What the feed was asked for.
    pub fn options(&self) -> &FeedOptions {
        &self.options
    }

    /// From now on gives rows of the disk in this form; see [`FeedOptions::frames`].
    pub fn give_frames(&mut self, form: Option<FrameForm>) {
        if std::mem::replace(&mut self.options.frames, form) != form {
            // A page in the other form that is on its way has moved nothing yet: it is read again.
            self.reading = None;
        }
    }

    /// How often rows had been purged when the rows it gave last were looked over: a later purge may concern them.
    pub fn purges(&self) -> u64 {
        self.purges
    }

    /// The database it is of; `None` of a feed of all databases' updates.
    pub fn database(&self) -> Option<&DbName> {
        self.about.as_ref()?.database.as_ref()
    }

    /// Its number; a feed that reads for others has none.
    pub fn id(&self) -> Option<FeedId> {
        self.seat.as_ref().and_then(Seat::known).map(|known| known.record().id)
    }

    /// How its sequences are written.
    pub fn seq_format(&self) -> SeqFormat {
        self.source.seq_format()
    }

    /// Whether the token asked for lies ahead of all there is: it would hide writes, or be rewound.
    pub fn is_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Whether all that was known when it was opened is said.
    fn is_opened(&self) -> bool {
        self.opening.is_none() && self.first.is_none()
    }

    /// The token to resume from. What was looked ahead at has not been given; and who has not been told of a rewind has
    /// the token it came with, by which it is told when it comes back.
    pub fn position(&self) -> Sequence {
        match self.opening {
            Some(FeedEvent::Rewind { since, .. }) => since,
            _ if self.is_opened() => self.subscriber.position(),
            _ => self.begins,
        }
    }

    /// How many rows it gives at most behind its position, where it was asked for so many at most.
    pub fn rows_left(&self) -> Option<u64> {
        let limit = self.options.limit?;
        Some(if self.is_opened() { self.subscriber.rows_left() } else { limit })
    }

    /// Counts bytes of it that were handed to its reader.
    pub fn sent(&self, bytes: usize) {
        self.metrics.bytes(bytes);
        self.with_known(|known| known.sent(bytes));
    }

    /// How long its reader is to wait, `least` at least, before it comes back when its connection breaks. It differs
    /// from feed to feed, and is the longer the more are open: they are not to come back all at once.
    pub fn comeback(&self, least: Duration) -> Duration {
        self.seat.as_ref().map_or(least, |seat| seat.comeback(least))
    }

    /// Takes note of who reads it, for who lists the feeds.
    pub fn read_by(&self, client: Option<SocketAddr>) {
        if let Some(client) = client {
            self.with_known(|known| known.read_by(client));
        }
    }

    /// Has it say no more than its end, and why.
    pub fn end_for(&mut self, reason: EndReason) {
        self.subscriber.drain(reason);
        self.told = Told::nothing();
    }

    /// Ready when it was told to end at once, and is still here after [`END_GRACE`]: its reader does not read.
    pub fn overdue(&self) -> impl Future<Output = ()> + Send + 'static {
        let told = self.told.clone();
        async move {
            told.the_end().await;
            sleep(END_GRACE).await;
        }
    }

    fn with_known(&self, note: impl FnOnce(&KnownFeed)) {
        if let Some(known) = self.seat.as_ref().and_then(Seat::known) {
            note(known);
        }
    }

    /// Takes note that its reader is told that it is in this state.
    fn note_state(&self, state: FeedState) {
        self.with_known(|known| known.note_state(state));
    }

    /// Takes note of where it stands, having given so many more rows.
    fn note_given(&self, rows: usize) {
        let position = self.position();
        self.with_known(|known| known.note_given(rows, position));
    }

    /// Waits for what comes behind the opening, for so long, and keeps it for [`Feed::next`]: what prevents the feed
    /// from beginning is known then, if it comes about soon.
    ///
    /// # Errors
    /// As [`Feed::next`].
    pub(crate) async fn look_ahead(&mut self, longest: Duration) -> Result<(), Error> {
        if let Ok(first) = timeout(longest, self.go_on()).await {
            self.first = first?;
        }
        Ok(())
    }

    /// Gives what comes next; `None` after the end. Nothing is lost when the future is dropped before it is ready.
    ///
    /// # Errors
    /// [`Error::Storage`] when the disk cannot be read, [`Error::Function`] when a function of the filter gives no
    /// answer: the feed is over, and its last token stays good.
    pub async fn next(&mut self) -> Result<Option<FeedEvent<S::Row>>, Error> {
        match self.opening.take().or_else(|| self.first.take()) {
            Some(event) => Ok(Some(event)),
            None => self.go_on().await,
        }
    }

    /// Gives what comes behind the opening.
    async fn go_on(&mut self) -> Result<Option<FeedEvent<S::Row>>, Error> {
        loop {
            match self.take_turn().await? {
                Turn::Gives(event) => return Ok(Some(event)),
                Turn::GoesOn => {}
                Turn::Waits(until) => self.wait(until).await,
                Turn::Over => return Ok(None),
            }
        }
    }

    /// What [`Feed::next`] does, but for waiting, and with one page read at most: for who has many feeds take turns.
    /// Nothing is lost when the future is dropped before it is ready.
    ///
    /// # Errors
    /// As [`Feed::next`].
    pub async fn turn(&mut self) -> Result<Turn<S::Row>, Error> {
        match self.opening.take().or_else(|| self.first.take()) {
            Some(event) => Ok(Turn::Gives(event)),
            None => self.take_turn().await,
        }
    }

    async fn take_turn(&mut self) -> Result<Turn<S::Row>, Error> {
        if self.finished {
            return Ok(Turn::Over);
        }
        // What is in memory is there at once, page after page: others have their turn, too.
        consume_budget().await;
        if let Some(reason) = *self.ended.borrow_and_update() {
            self.subscriber.drain(reason);
        }
        if let Some(event) = self.obey() {
            return Ok(Turn::Gives(event));
        }
        let newest = self.source.newest();
        Ok(match self.subscriber.step(Instant::now(), newest, self.source.memory_from()) {
            Step::Read { .. } if self.rest_out().await => Turn::GoesOn,
            Step::Read { after, up_to, rows_max, direction } => {
                self.is_level = false;
                let (large, live_only) = (self.takes_large_pages(), self.subscriber.is_first_snapshot());
                let seen = self.seen;
                let wanted = Wanted { after, up_to, rows_max, direction, large, live_only, seen };
                self.with_known(KnownFeed::note_reading);
                let Some(page) = self.read(wanted).await? else { return Ok(Turn::GoesOn) };
                if self.seat.is_some() {
                    self.metrics.rows(page.len());
                }
                self.note_given(page.len());
                Turn::Gives(match page.frames.is_empty() {
                    true => FeedEvent::Change(Portion::Rows(page.rows)),
                    false => FeedEvent::Change(Portion::Frames(page.frames)),
                })
            }
            Step::Wait { until } => {
                self.note_given(0);
                self.with_known(KnownFeed::note_caught_up);
                self.is_level = true;
                Turn::Waits(until)
            }
            // Who looks ahead has nobody to tell yet.
            Step::Say(Notice::StillReading) if self.opening.is_some() => Turn::GoesOn,
            Step::Say(notice) => self.say(notice).await?.map_or(Turn::GoesOn, Turn::Gives),
            Step::End(reason) => Turn::Gives(self.end(reason).await?),
        })
    }

    /// Whether something has come that it has not looked at.
    pub fn has_more(&self) -> bool {
        self.position() < self.source.newest()
    }

    /// Rests for so long where something has come that it has not looked at. Else [`Feed::next`] and [`Feed::turn`] do
    /// so when a row comes within that time: where none does, nobody is woken for the end of a rest.
    pub async fn rest(&mut self, long: Duration) {
        let has_more = self.has_more();
        self.rests_until = Instant::now().checked_add(long).filter(|_| !has_more);
        if has_more {
            sleep(long).await;
        }
    }

    /// Rests until the moment that it was given; `false` where there is none, or it is over.
    async fn rest_out(&mut self) -> bool {
        let over = self.rests_until.take().filter(|over| *over > Instant::now());
        let Some(over) = over else { return false };
        sleep_until(over).await;
        true
    }

    /// Does as it is told from outside; the word for its reader, if there is one.
    fn obey(&mut self) -> Option<FeedEvent<S::Row>> {
        match self.told.next(self.options.mode)? {
            Obeyed::Ends(reason) => {
                self.subscriber.drain(reason);
                None
            }
            Obeyed::Says { retry } => {
                self.subscriber.note_said_draining();
                self.note_state(FeedState::Draining);
                Some(FeedEvent::Draining { seq: self.subscriber.position(), retry })
            }
        }
    }

    /// Waits until there may be something to give, at most until a moment, as [`Turn::Waits`] asks for it. There may be
    /// at once where no turn has asked for it since it waited last.
    pub async fn wait(&mut self, deadline: Option<Instant>) {
        self.pages = 0;
        if !self.is_level {
            return;
        }
        // Nobody is woken for a place. Who does not move on comes to none.
        let place = self.options.until.filter(|_| self.subscriber.moves_on());
        let there = place.map(|place| self.source.reached(place));
        let deadline = earlier(deadline, self.told.ends_at);
        tokio::select! {
            () = self.source.woken() => {}
            () = maybe(there) => {}
            _ = self.ended.changed() => {}
            () = self.told.more() => {}
            () = until(deadline) => {}
        }
        self.is_level = false;
        self.skip_what_does_not_concern();
    }

    /// The feed has read all there was before it waited: what came since and has not woken it moves its position on.
    fn skip_what_does_not_concern(&mut self) {
        if let Some(passed) = self.source.passed() {
            let before = self.subscriber.position();
            self.subscriber.pass_over(passed);
            let position = self.subscriber.position();
            if position > before && self.seen.is_some_and(|seen| seen.is_level(before)) {
                self.note_looked(position);
            }
        }
    }

    /// The event for a notice; `None` when the source closes meanwhile.
    async fn say(&mut self, notice: Notice) -> Result<Option<FeedEvent<S::Row>>, Error> {
        let seq = self.subscriber.position();
        Ok(Some(match notice {
            Notice::Waiting | Notice::StillReading => FeedEvent::Change(Portion::Nothing),
            Notice::CaughtUp => {
                self.note_given(0);
                self.with_known(KnownFeed::note_caught_up);
                self.note_state(FeedState::Live);
                FeedEvent::CaughtUp { seq }
            }
            Notice::Heartbeat => {
                let pending = self.pending(seq).await;
                let Some(pending) = self.unless_closed(pending)? else { return Ok(None) };
                self.subscriber.beaten(Instant::now());
                FeedEvent::Heartbeat { seq, pending }
            }
            Notice::Lagging => {
                let lag = self.source.lag(seq).await;
                let Some(lag) = self.unless_closed(lag)? else { return Ok(None) };
                self.subscriber.note_said(notice);
                self.note_state(FeedState::Lagging);
                FeedEvent::Lagging { seq, lag }
            }
            Notice::Live => {
                self.subscriber.note_said(notice);
                self.note_state(FeedState::Live);
                FeedEvent::Live { seq }
            }
            Notice::SnapshotEnd => FeedEvent::SnapshotEnd { seq },
        }))
    }

    async fn end(&mut self, reason: EndReason) -> Result<FeedEvent<S::Row>, Error> {
        let seq = self.subscriber.position();
        let complete = reason == EndReason::CaughtUp;
        let pending = if complete { Some(0) } else { self.pending(seq).await.ok() };
        self.finished = true;
        Ok(FeedEvent::End { reason, seq, pending })
    }

    /// Rows behind a token, or before it when descending.
    async fn pending(&mut self, seq: Sequence) -> Result<u64, Error> {
        let direction = if self.options.descending { Direction::Backward } else { Direction::Forward };
        if direction == Direction::Forward && seq >= self.source.newest() {
            return Ok(0);
        }
        self.source.pending(seq, direction).await
    }
}

/// The earlier of two moments, each of which may never come.
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

/// Waits for a moment that may never come.
async fn until(moment: Option<Instant>) {
    maybe(moment.map(sleep_until)).await;
}

/// Waits for what may never come.
async fn maybe(future: Option<impl Future<Output = ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::kind::FeedKind;
    use crate::{Engine, Since};

    #[tokio::test]
    async fn a_feed_that_has_looked_ahead_stands_where_it_begins_until_it_gives_what_it_saw() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let database = engine.create_database("db").await.unwrap();
        database.put("a", "{}").await.unwrap();
        let from_start = FeedOptions { since: Since::START, limit: Some(3), ..FeedOptions::live(FeedKind::Embedded) };
        let mut feed = database.feed(from_start).await.unwrap();
        feed.look_ahead(Duration::from_secs(30)).await.unwrap();
        assert_eq!(feed.position(), Sequence::ZERO);
        assert!(matches!(feed.next().await.unwrap(), Some(FeedEvent::Open { .. })));
        assert_eq!(feed.position(), Sequence::ZERO, "its rows have not been given");
        assert_eq!(feed.rows_left(), Some(3), "nor are they counted");
        assert!(matches!(feed.next().await.unwrap(), Some(FeedEvent::Change(Portion::Rows(_)))));
        assert_eq!((feed.position(), feed.rows_left()), (Sequence::new(0, 1), Some(2)));
        engine.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_feed_that_rewinds_stands_where_it_was_asked_to_begin_until_it_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let database = engine.create_database("db").await.unwrap();
        let asked = Sequence::new(0, 1_000_000);
        let ahead = FeedOptions { since: Since::Seq(asked), ..FeedOptions::live(FeedKind::Embedded) };
        let mut feed = database.feed(ahead).await.unwrap();
        engine.drain_feeds(Duration::from_secs(3600));
        feed.look_ahead(Duration::from_secs(30)).await.unwrap();
        assert_eq!(feed.position(), asked);
        assert!(matches!(feed.next().await.unwrap(), Some(FeedEvent::Rewind { .. })));
        assert_eq!(feed.position(), Sequence::ZERO);
        let next = feed.next().await.unwrap();
        assert!(matches!(next, Some(FeedEvent::Draining { seq: Sequence::ZERO, .. })), "{next:?}");
        engine.shutdown().await.unwrap();
    }
}
