//! The subscriptions of one connection: what their feeds give, put together to messages.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use seqtide::EndReason;
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::sequence::{SeqFormat, Sequence};
use serde_json::value::RawValue;
use tokio::time::{Sleep, sleep};

use super::any_feed::Turned;
use super::asked::{Opened, Reader};
use super::connections::{Handle, Holder, News};
use super::message::{Message, Sub};
use super::resume_id::{self, ALL_DATABASES, DEFINITIONS_CHARS_MAX, Progress, Resume};
use super::turns::{Active, Turns};
use crate::connection::Cutting;
use crate::error::ApiError;
use crate::wire::native;
use crate::wire::pieces::{PIECE_BYTES, Pieces};

/// A connection without a subscription ends after so long.
const UNUSED: Duration = Duration::from_secs(10);

/// A subscription as ids keep it, open or not.
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its database; `None` of one that follows all databases of the server.
    pub db: Option<String>,
    /// All of it as it was given, where the request does not name it and ids have to say it.
    pub later: Option<Box<RawValue>>,
    /// What becomes of it when its client comes back.
    pub resume: Resume,
}

/// What a connection's subscriptions give, as messages; it ends when the server stops, or nobody wants anything of it.
pub struct Subscriptions {
    /// How long its reader is to wait before it comes back when the connection breaks.
    pub comeback: Duration,
    handle: Arc<Handle>,
    /// Of what the request named.
    checksum: u32,
    /// By the order in which they were made.
    known: BTreeMap<u64, Known>,
    next_key: u64,
    /// Of those that came later, as an id has them.
    definitions: String,
    turns: Turns,
    beat: Pin<Box<Sleep>>,
    /// Since when there has been no subscription.
    unused: Option<Pin<Box<Sleep>>>,
    message: Message,
    /// The server is being drained, which one of its feeds has said: the longest that a reader is to wait behind the
    /// end.
    drained: Option<Duration>,
    over: Option<Over>,
    /// Of a client that does not read, the whole is not asked for more.
    _cutting: Cutting,
}

/// What is known of a subscription.
struct Known {
    name: String,
    sub: Sub,
    db: Option<String>,
    format: SeqFormat,
    /// How it was given, if the request that opened the connection did not name it and ids have to say it.
    later: Option<Box<RawValue>>,
    /// What was given of it.
    given: Progress,
    /// What the client was told of its position.
    told: Sequence,
    state: State,
}

/// Why the whole is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    WithServer,
    Unused,
}

impl Over {
    /// The word for it on the wire.
    fn name(self) -> &'static str {
        match self {
            Over::WithServer => EndReason::Shutdown.name(),
            Over::Unused => "unused",
        }
    }
}

enum State {
    /// Its feed is open, and its name taken by this one.
    Open(Holder),
    /// Its feed is not open, and this becomes of it when the client comes back.
    Closed(Resume),
}

impl State {
    fn is_open(&self) -> bool {
        matches!(self, State::Open(_))
    }
}

impl Known {
    /// What becomes of it when the client comes back.
    fn resume(&self) -> Resume {
        match self.state {
            State::Open(_) => Resume::Behind(self.given),
            State::Closed(resume) => resume,
        }
    }
}

impl Subscriptions {
    /// Those of a connection, whose request named what has this checksum, whose reader comes back after this long, and
    /// which is cut by this.
    pub fn new(handle: Arc<Handle>, checksum: u32, comeback: Duration, cutting: Cutting) -> Subscriptions {
        let Reader { form, heartbeat, .. } = handle.reader;
        let mut message = Message::new(form);
        let (id, beat, retry) = (&handle.id, heartbeat.as_millis(), comeback.as_millis());
        let event = format!("{{\"event\":\"connection\",\"id\":\"{id}\",\"heartbeat\":{beat},\"retry\":{retry}}}");
        message.add(event.into());
        Subscriptions {
            comeback,
            handle,
            checksum,
            known: BTreeMap::new(),
            next_key: 0,
            definitions: String::new(),
            turns: Turns::default(),
            beat: Box::pin(sleep(heartbeat)),
            unused: None,
            message,
            drained: None,
            over: None,
            _cutting: cutting,
        }
    }

    fn has_ids(&self) -> bool {
        self.handle.reader.form.has_ids()
    }

    /// Whether it is over because the server stops.
    pub fn ended_with_server(&self) -> bool {
        self.over == Some(Over::WithServer)
    }

    /// Keeps the place of a subscription that is not open in ids.
    pub fn keep_closed(&mut self, kept: Kept) {
        let Kept { name, db, later, resume } = kept;
        let (format, told) = (SeqFormat::Integer, Sequence::ZERO);
        let given = Progress { position: told, rows_left: None };
        self.keep(Known { sub: Sub::of(&name), name, db, format, later, given, told, state: State::Closed(resume) });
    }

    /// Takes a subscription in.
    pub fn open(&mut self, opened: Opened, holder: Holder, named: bool) {
        let Opened { name, db, given: asked, feed, lookout } = opened;
        let (format, given, later) = (feed.seq_format(), feed.progress(), (!named && self.has_ids()).then_some(asked));
        let (sub, position) = (Sub::of(&name), given.position);
        let known = Known { name, sub, db, format, later, given, told: position, state: State::Open(holder) };
        let key = self.keep(known);
        self.say(key, &format!("{{\"event\":\"subscribed\",\"seq\":{}}}", format.json(position)));
        self.turns.take_in(Active::new(key, feed, lookout));
        self.unused = None;
    }

    fn keep(&mut self, known: Known) -> u64 {
        // Whoever asks for the name anew wants none of the old ones back: there may be one that the request names and
        // one that came later.
        let old = self.known.iter().filter(|(_, other)| other.name == known.name).map(|(key, _)| *key);
        old.collect::<Vec<_>>().into_iter().for_each(|key| self.forget(key));
        let (key, is_later) = (self.next_key, known.later.is_some());
        self.next_key += 1;
        self.known.insert(key, known);
        if is_later {
            self.redefine();
        }
        key
    }

    /// Makes the part of ids anew that says how the later ones were given. Those that were refused when the client came
    /// back are in it while there is room.
    fn redefine(&mut self) {
        loop {
            let later = self.known.values().filter_map(|known| Some(known.later.as_ref()?.get()));
            self.definitions = resume_id::encode_definitions(later);
            let places_max = resume_id::places_max(self.handle.subscriptions_max);
            if self.definitions.len() <= DEFINITIONS_CHARS_MAX && self.known.len() <= places_max {
                return;
            }
            let refused = |known: &Known| known.later.is_some() && !known.state.is_open();
            let Some(key) = self.known.iter().find(|(_, known)| refused(known)).map(|(key, _)| *key) else { return };
            self.known.remove(&key);
        }
    }

    /// Adds an event of a subscription.
    fn say(&mut self, key: u64, json: &str) {
        if let Some(known) = self.known.get(&key) {
            self.message.add_of(&known.sub, &Bytes::copy_from_slice(json.as_bytes()));
        }
    }

    /// Tells that something was asked for in vain.
    pub fn refuse(&mut self, name: Option<&str>, why: &ApiError) {
        let json = format!("{{\"event\":\"refused\",{}}}", why.members());
        match name {
            Some(name) => self.message.add_of(&Sub::of(name), &json.into()),
            None => self.message.add(json.into()),
        }
    }

    /// One thing that is there to be done; `false` when there is nothing for now.
    fn step(&mut self, cx: &mut Context<'_>) -> bool {
        let (news, ends) = self.handle.take_news(cx);
        if !news.is_empty() {
            news.into_iter().for_each(|news| self.hear(news));
            return true;
        }
        if self.beat.as_mut().poll(cx).is_ready() {
            self.beat();
            return true;
        }
        match self.turns.poll(cx) {
            Poll::Ready((active, turned)) => {
                self.take(active, turned);
                true
            }
            Poll::Pending => self.turns.is_empty() && self.end_if_unused(cx, ends),
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Subscribed(opened, holder) => self.open(*opened, holder, false),
            News::Unsubscribed(name) => {
                let open = self.known.iter().find(|(_, known)| known.name == name && known.state.is_open());
                let Some(key) = open.map(|(key, _)| *key) else { return };
                self.say(key, "{\"event\":\"unsubscribed\"}");
                self.forget(key);
            }
            News::Refused(name, why) => self.refuse(name.as_deref(), &why),
        }
    }

    /// No feed is open: ends the connection if it is to end, or has had none for long; `false` when neither is so yet.
    fn end_if_unused(&mut self, cx: &mut Context<'_>, ends: bool) -> bool {
        let unused = self.unused.get_or_insert_with(|| Box::pin(sleep(UNUSED)));
        let over = match unused.as_mut().poll(cx) {
            _ if ends || self.drained.is_some() => Over::WithServer,
            Poll::Pending => return false,
            Poll::Ready(()) if self.handle.close_if_unused() => Over::Unused,
            // One is being opened. Where it comes to nothing, the time begins anew.
            Poll::Ready(()) => {
                self.unused = None;
                return false;
            }
        };
        self.end(over);
        true
    }

    fn end(&mut self, over: Over) {
        self.handle.close();
        self.message.add(format!("{{\"event\":\"end\",\"reason\":\"{}\"}}", over.name()).into());
        self.over = Some(over);
    }

    /// Takes what came of a turn.
    fn take(&mut self, active: Active, turned: Result<Turned, seqtide::Error>) {
        let Some(known) = self.known.get_mut(&active.key) else { return };
        known.given = active.feed.progress();
        match turned {
            Ok(Turned::Rows(rows)) => self.give(active, rows),
            Ok(Turned::Says(event)) => self.pass_on(active, &event),
            Ok(Turned::GoesOn) => self.turns.take_in(active),
            Ok(Turned::Waits(until)) => self.turns.wait(active, until),
            Ok(Turned::Over) => {}
            Err(error) => {
                active.feed.cut_short(&error);
                let error = ApiError::from(error);
                let is_named = known.later.is_none();
                self.say(active.key, &native::failure(&error));
                self.close(active.key, is_named);
            }
        }
    }

    /// Puts rows of a feed into the message.
    fn give(&mut self, active: Active, rows: Vec<(Sequence, Bytes)>) {
        let Some(known) = self.known.get_mut(&active.key) else { return };
        let before = self.message.bytes();
        for (seq, json) in rows {
            self.message.add_of(&known.sub, &json);
            known.told = seq;
        }
        active.feed.sent(self.message.bytes().saturating_sub(before));
        self.turns.take_in(active);
    }

    /// Puts into the message what a feed says.
    fn pass_on(&mut self, active: Active, event: &native::Event) {
        let Some(known) = self.known.get_mut(&active.key) else { return };
        let before = self.message.bytes();
        if let Some(retry) = event.retry {
            let longest = self.drained.map_or(retry, |longest| longest.max(retry));
            self.drained = Some(longest);
            self.message.come_back_after(longest);
        }
        self.message.add_of(&known.sub, &event.json());
        known.told = known.given.position;
        active.feed.sent(self.message.bytes().saturating_sub(before));
        match event.end {
            Some(EndReason::Shutdown) => {
                self.close(active.key, true);
                // It goes on for who comes back, and nobody does who is given the others still. While the server is
                // drained these have their turns to end.
                if self.drained.is_none() {
                    self.end(Over::WithServer);
                }
            }
            Some(_) => self.close(active.key, false),
            None => self.turns.take_in(active),
        }
    }

    /// A subscription's feed has ended: its name is free. Without ids nobody asks for it any more.
    fn close(&mut self, key: u64, goes_on_later: bool) {
        let has_ids = self.has_ids();
        let Some(known) = self.known.get_mut(&key) else { return };
        if let State::Open(holder) = known.state {
            self.handle.ended(&known.name, holder);
        }
        if goes_on_later && has_ids {
            known.state = State::Closed(known.resume());
        } else {
            self.forget(key);
        }
    }

    /// A subscription is over. One that the request names leaves its place in an id, where there are ids.
    fn forget(&mut self, key: u64) {
        self.turns.give_up(key);
        let has_ids = self.has_ids();
        let Some(known) = self.known.get_mut(&key) else { return };
        known.state = State::Closed(Resume::Never);
        let is_later = known.later.is_some();
        if is_later || !has_ids {
            self.known.remove(&key);
        }
        if is_later {
            self.redefine();
        }
    }

    /// A sign of life, with the places that have moved without a word.
    fn beat(&mut self) {
        self.beat.set(sleep(self.handle.reader.heartbeat));
        let mut json = b"{\"event\":\"heartbeat\",\"seqs\":{".to_vec();
        let mut is_first = true;
        let has_moved = |known: &&mut Known| known.state.is_open() && known.told != known.given.position;
        for known in self.known.values_mut().filter(has_moved) {
            if !std::mem::replace(&mut is_first, false) {
                json.push(b',');
            }
            write_json_string(&mut json, &known.name);
            json.push(b':');
            known.format.json(known.given.position).write(&mut json);
            known.told = known.given.position;
        }
        json.extend_from_slice(b"}}");
        self.message.add(json.into());
    }

    fn id(&self) -> String {
        let places = self.known.values().map(|known| (known.db.as_deref().unwrap_or(ALL_DATABASES), known.resume()));
        resume_id::encode(self.checksum, places, &self.definitions)
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl Stream for Subscriptions {
    type Item = Pieces;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Pieces>> {
        while self.over.is_none() && self.message.bytes() < PIECE_BYTES && self.step(cx) {}
        if self.message.is_empty() {
            return if self.over.is_some() { Poll::Ready(None) } else { Poll::Pending };
        }
        let form = self.handle.reader.form;
        let message = std::mem::replace(&mut self.message, Message::new(form));
        Poll::Ready(Some(message.finish(|| self.id())))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;
    use actix_web::http::StatusCode;
    use actix_web::test::TestRequest;
    use futures_util::StreamExt;
    use seqtide::{Engine, FeedKind, FeedOptions};
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::connection::Cutter;
    use crate::subscriptions::any_feed::AnyFeed;
    use crate::subscriptions::connections::Connections;
    use crate::wire::form::Form;

    /// A connection without a subscription, and those among which it is.
    fn empty() -> (Arc<Connections>, Arc<Handle>, Subscriptions) {
        let connections = Arc::new(Connections::default());
        let reader = Reader { form: Form::Lines, heartbeat: Duration::from_secs(3600), address: None };
        let handle = connections.add(10, reader).unwrap();
        let cutting = Cutter::of(&TestRequest::default().to_http_request()).cut_when(std::future::pending());
        let subscriptions = Subscriptions::new(Arc::clone(&handle), 0, Duration::from_secs(1), cutting);
        (connections, handle, subscriptions)
    }

    /// The next message.
    async fn message(subscriptions: &mut Subscriptions) -> String {
        let mut pieces = subscriptions.next().await.expect("a message");
        let bytes: Vec<u8> = std::iter::from_fn(|| pieces.take()).flatten().collect();
        String::from_utf8(bytes).unwrap()
    }

    #[actix_web::test]
    async fn a_connection_for_which_a_subscription_is_being_opened_is_used() {
        tokio::time::pause();
        let (connections, handle, mut subscriptions) = empty();
        assert!(message(&mut subscriptions).await.contains("\"event\":\"connection\""));
        let reserved = handle.reserve("a").unwrap();
        let waited = timeout(3 * UNUSED, subscriptions.next()).await;
        assert!(waited.is_err(), "it ends while a feed is being opened for it");
        drop(reserved);
        let refused = Instant::now();
        assert_eq!(message(&mut subscriptions).await, "{\"event\":\"end\",\"reason\":\"unused\"}\n");
        assert!(refused.elapsed() >= UNUSED, "after {:?}", refused.elapsed());
        assert!(connections.find(&handle.id).is_err(), "it is over");
        assert!(subscriptions.next().await.is_none());
    }

    #[actix_web::test]
    async fn what_is_opened_for_a_connection_that_is_over_by_then_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(folder.path()).unwrap();
        let database = engine.create_database("db").await.unwrap();
        let (connections, handle, subscriptions) = empty();
        let reserved = handle.reserve("a").unwrap();
        let feed = AnyFeed::Documents(database.feed(FeedOptions::live(FeedKind::Lines)).await.unwrap());
        let lookout = handle.look_out_for(&feed);
        let (name, db, given) = ("a".to_owned(), Some("db".to_owned()), RawValue::NULL.to_owned());
        drop(subscriptions);
        let refused = reserved.fill(Opened { name, db, given, feed, lookout }).unwrap_err();
        assert_eq!(refused.status_code(), StatusCode::NOT_FOUND);
        assert!(connections.find(&handle.id).is_err());
        engine.shutdown().await.unwrap();
    }
}
