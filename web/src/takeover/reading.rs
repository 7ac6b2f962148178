//! Reading a feed for whoever is to be sent its rows.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, Message, MessageResponse};
use actix_web::rt::task::JoinHandle;
use bytes::Bytes;
use futures_util::FutureExt;
use seqtide::storage::model::sequence::Sequence;
use seqtide::{EndReason, Feed, FeedAbout, FeedEvent, FeedRow, FeedState, Likeness, Portion, Reopening, Seat, Source};
use tokio::time::Instant;

use super::block::{Block, Blocks};
use super::feeds::Feeds;
use super::group::{Group, GroupId};
use super::offer::Last;
use super::straggler::Straggler;
use crate::cut_short;
use crate::error::ApiError;
use crate::wire::Wire;
use crate::wire::framing::Framing;
use crate::wire::heard::Heard;

/// A round that was shorter than this is followed by the next at once.
const REST_MIN: Duration = Duration::from_millis(1);

/// The longest that a row waits for others behind a long round.
const REST_MAX: Duration = Duration::from_millis(10);

/// As many rows are given one by one, as they come; more together.
const FEW_ROWS: usize = 4;

/// So long few rows that come during a round are given along in it; then it is to end.
const JOINS_FOR: Duration = Duration::from_millis(10);

/// So many long rounds in a row are too much for one worker.
const LONG_ROUNDS: usize = 8;

/// A round that takes longer than this is long, and one that rests and finds the next row there already.
const LONG_ROUND: Duration = Duration::from_millis(2);

/// What a feed gave.
pub enum News {
    /// Rows, in order, without those that had been purged when it was so often.
    Rows { blocks: Vec<Block>, purges: u64 },
    /// A word for who has everything up to a place.
    Notice { words: Bytes, at: Sequence },
    /// The feed lags: a word for the same, if they were not told.
    Lags { words: Bytes, at: Sequence },
    /// It is live again: a word for one reader alone.
    IsLive { words: Bytes },
    /// The last words.
    End(Last),
}

impl News {
    /// How many rows they are.
    fn rows(&self) -> usize {
        match self {
            News::Rows { blocks, .. } => blocks.iter().map(|block| block.rows_behind(Sequence::ZERO)).sum(),
            _ => 0,
        }
    }
}

/// Waits for what a live feed gives next; `None` when nothing follows.
pub async fn next<S: Source, W: Wire>(feed: &mut Feed<S>, wire: &mut W) -> Option<News> {
    let framing = wire.framing();
    let format = feed.seq_format();
    Some(match feed.next().await {
        Ok(Some(FeedEvent::Change(Portion::Rows(rows)))) => {
            let (shape, mut blocks, mut parts) = (feed.options().shape, Blocks::new(framing), Vec::with_capacity(1));
            for row in rows {
                wire.add_row(&*row, shape, &mut parts);
                blocks.add(row.seq(), &parts);
                parts.clear();
            }
            News::Rows { blocks: blocks.finish(), purges: feed.purges() }
        }
        Ok(Some(FeedEvent::Change(Portion::Frames(_)))) => {
            tracing::error!("a feed that is shared gave rows that cannot be");
            News::End(Last::to_all(framing.failed("rows cannot be sent")))
        }
        Ok(Some(end @ FeedEvent::End { reason, seq, .. })) => {
            let words = framing.around(&wire.notice(format, &end));
            let words = [&words[..], &framing.last(reason)].concat().into();
            News::End(Last { words, end: Some((seq, reason)) })
        }
        Ok(Some(other)) => {
            let (words, at) = (framing.around(&wire.notice(format, &other)).into(), feed.position());
            match other {
                FeedEvent::Lagging { .. } => News::Lags { words, at },
                FeedEvent::Live { .. } => News::IsLive { words },
                _ => News::Notice { words, at },
            }
        }
        Ok(None) => return None,
        Err(error) => {
            cut_short::feed(feed, &error);
            let error = ApiError::from(error);
            let words = framing.around(wire.failure(&error).as_bytes());
            News::End(Last::to_all([&words[..], &framing.failed(error.reason())].concat().into()))
        }
    })
}

/// What the reader of a group tells its worker's [`Feeds`]; without news it asks them to go on with the last.
#[derive(Message)]
#[rtype(result = "Delivery")]
pub struct Deliver {
    pub group: GroupId,
    pub news: Option<News>,
}

/// Have the members of a group, which are too many for one worker, shared among all.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Share(pub GroupId);

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, MessageResponse)]
pub enum Delivery {
    /// Some members have it; the others are next, when everything else on the worker has had its turn.
    GoOn,
    /// Every member has what it had room for.
    Done,
    /// There is nobody to read for.
    Over,
}

/// A feed of which a group can be made.
pub trait Founder {
    /// Makes a group that begins at the feed's place.
    fn found(self: Box<Self>, id: GroupId, likeness: Likeness, feeds: &Addr<Feeds>) -> Group;
}

/// A feed without a seat, and how it looks on the wire.
pub struct Reader<S: Source, W> {
    pub feed: Feed<S>,
    pub wire: W,
}

impl<S: Source, W: Wire> Founder for Reader<S, W> {
    fn found(self: Box<Self>, id: GroupId, likeness: Likeness, feeds: &Addr<Feeds>) -> Group {
        let (start, counters) = (self.feed.position(), self.feed.counters());
        let readers = Readers { reopening: self.feed.reopening(), wire: self.wire.clone(), feeds: feeds.clone() };
        let framing = self.wire.framing();
        let reading = actix_web::rt::spawn(self.read_for(id, feeds.clone()));
        Group::new(likeness, framing, start, Box::new(readers), ReadingTask(reading), counters)
    }
}

impl<S: Source, W: Wire> Reader<S, W> {
    /// Reads on when all members have what was read. Few rows are given as they come, also in the midst of a round.
    /// Behind a round of more it rests as long as that took: who cannot keep up gets more at once, and those who write
    /// are not kept from it by those who read.
    async fn read_for(mut self, group: GroupId, feeds: Addr<Feeds>) {
        let _ends = EndsGroup { group, feeds: feeds.clone(), framing: self.wire.framing() };
        let (mut rounds, mut are_few, mut long_rounds) = (self.feed.rounds(), true, 0);
        let mut came_meanwhile = None;
        loop {
            let news = match came_meanwhile.take() {
                None => next(&mut self.feed, &mut self.wire).await,
                news => news,
            };
            let Some(news) = news else { return };
            let begin = Instant::now();
            let rounds = rounds.as_mut().filter(|_| news.rows() > 0);
            let mut round = rounds.and_then(|rounds| rounds.begin(self.feed.position()));
            let joins_up_to = begin + if are_few { JOINS_FOR } else { Duration::ZERO };
            let Some(given) = self.give(news, group, &feeds, joins_up_to).await else { return };
            let took = begin.elapsed();
            if let Some(round) = &mut round {
                round.given(given.up_to, took);
            }
            are_few = given.rows <= FEW_ROWS;
            came_meanwhile = given.came_meanwhile;
            let around = given.since.elapsed();
            let is_long = around > LONG_ROUND || (around >= REST_MIN && self.feed.has_more());
            long_rounds = if is_long { long_rounds + 1 } else { 0 };
            if long_rounds == LONG_ROUNDS {
                long_rounds = 0;
                feeds.do_send(Share(group));
            }
            if !are_few && took >= REST_MIN {
                self.feed.rest(took.min(REST_MAX)).await;
            }
        }
    }

    /// Gives news to all members. Few rows that come until a moment join those that are being given: who has had a turn
    /// gets another, and who has not gets all of them at once. `None` when nobody is left.
    async fn give(&mut self, news: News, group: GroupId, feeds: &Addr<Feeds>, joins_up_to: Instant) -> Option<Given> {
        let (up_to, since) = (self.feed.position(), Instant::now());
        let mut given = Given { up_to, since, rows: news.rows(), came_meanwhile: None };
        let mut news = Some(news);
        loop {
            match feeds.send(Deliver { group, news: news.take() }).await {
                Ok(Delivery::GoOn) => {}
                Ok(Delivery::Done) => return Some(given),
                Ok(Delivery::Over) | Err(_) => return None,
            }
            let may_join = (1..FEW_ROWS).contains(&given.rows) && given.came_meanwhile.is_none();
            if may_join && self.feed.has_more() && Instant::now() < joins_up_to {
                match next(&mut self.feed, &mut self.wire).now_or_never().flatten() {
                    Some(rows @ News::Rows { .. }) => {
                        (given.up_to, given.since) = (self.feed.position(), Instant::now());
                        given.rows += rows.rows();
                        news = Some(rows);
                    }
                    other => given.came_meanwhile = other,
                }
            }
        }
    }
}

/// What a round came to.
struct Given {
    /// Everyone has had the rows up to here.
    up_to: Sequence,
    /// When the last of them came.
    since: Instant,
    /// How many there were.
    rows: usize,
    /// What came behind them that is not rows, and is still to be given.
    came_meanwhile: Option<News>,
}

/// A panic of who reads for a group ends its members: nothing would come any more, and newcomers would wait with them.
struct EndsGroup {
    group: GroupId,
    feeds: Addr<Feeds>,
    framing: Framing,
}

impl Drop for EndsGroup {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let end = News::End(Last::to_all(self.framing.failed("the feed's rows cannot be read")));
            self.feeds.do_send(Deliver { group: self.group, news: Some(end) });
        }
    }
}

/// The task that reads for a group; ended when dropped.
pub struct ReadingTask(JoinHandle<()>);

impl Drop for ReadingTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection that is in no group.
pub struct Apart {
    pub socket: std::net::TcpStream,
    /// What its client has begun to say, where that is heard.
    pub heard: Option<Box<Heard>>,
    /// Everything up to here was written.
    pub position: Sequence,
    /// How its feed stands, as it was told last.
    pub state: FeedState,
    pub seat: Seat,
}

/// How a member of a group goes on by itself.
pub trait Alone {
    /// Reads for a connection behind its position, until it has come to where rows `start` that others are given, or
    /// `ends` it. Then it joins those at its worker, or `at` another.
    fn go_on(&self, apart: Apart, start: Rc<Cell<Sequence>>, ends: Option<EndReason>, at: Option<Addr<Feeds>>);

    /// What each of the members' feeds is.
    fn about(&self) -> Option<Arc<FeedAbout>>;

    /// The word to one that was given everything up to a place that it ends shortly, and how long to wait then before
    /// coming back.
    fn draining(&self, seq: Sequence, retry: Duration) -> Bytes;

    /// How often rows were purged: what was read when it was as often may be given.
    fn purges(&self) -> u64;

    /// What is said to who has lagged and is with the others at a place.
    fn is_live(&self, position: Sequence) -> Bytes;
}

struct Readers<S: Source, W> {
    reopening: Reopening<S>,
    wire: W,
    feeds: Addr<Feeds>,
}

impl<S: Source, W: Wire> Alone for Readers<S, W> {
    fn go_on(&self, apart: Apart, start: Rc<Cell<Sequence>>, ends: Option<EndReason>, at: Option<Addr<Feeds>>) {
        let Apart { socket, heard, position, state, seat } = apart;
        let (mut feed, wire) = (self.reopening.open(position, seat, state), self.wire.clone());
        feed.read_by(socket.peer_addr().ok());
        if let Some(reason) = ends {
            feed.end_for(reason);
        }
        let feeds = at.filter(Addr::connected).unwrap_or_else(|| self.feeds.clone());
        actix_web::rt::spawn(Straggler { feed, wire, start }.serve(socket, heard, feeds));
    }

    fn about(&self) -> Option<Arc<FeedAbout>> {
        self.reopening.about()
    }

    fn draining(&self, seq: Sequence, retry: Duration) -> Bytes {
        let event = FeedEvent::<S::Row>::Draining { seq, retry };
        self.wire.framing().around(&self.wire.notice(self.reopening.seq_format(), &event)).into()
    }

    fn purges(&self) -> u64 {
        self.reopening.purges()
    }

    fn is_live(&self, position: Sequence) -> Bytes {
        let live = FeedEvent::<S::Row>::Live { seq: position };
        self.wire.framing().around(&self.wire.notice(self.reopening.seq_format(), &live)).into()
    }
}
