//! The connections there are, by their ids, and what others bring them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::Context;

use actix_web::http::StatusCode;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::any_feed::AnyFeed;
use super::asked::{Opened, Reader};
use super::resume_id::fits_into_ids;
use crate::error::ApiError;

/// The random part of an id, which nobody guesses: who knows it may change the connection's subscriptions.
const ID_BYTES: usize = 16;

/// Every connection with many subscriptions.
#[derive(Default)]
pub struct Connections {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    by_id: HashMap<String, Weak<Handle>>,
    /// The server stops: one that comes still is to end like the others.
    ended: bool,
}

impl Connections {
    /// Takes in a new one, for at most so many subscriptions. It is forgotten when its handle is dropped.
    ///
    /// # Errors
    /// 500 when the system gives no random number.
    pub fn add(self: &Arc<Self>, subscriptions_max: usize, reader: Reader) -> Result<Arc<Handle>, ApiError> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).map_err(|error| {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", error.to_string())
        })?;
        let mut open = self.open.lock();
        let handle = Arc::new(Handle {
            id: BASE64.encode(random),
            subscriptions_max,
            reader,
            connections: Arc::downgrade(self),
            inbox: Mutex::new(Inbox { ends: open.ended, ..Inbox::default() }),
            waiting: AtomicWaker::new(),
            overdue: Arc::default(),
        });
        open.by_id.insert(handle.id.clone(), Arc::downgrade(&handle));
        Ok(handle)
    }

    /// The one with this id.
    ///
    /// # Errors
    /// 404 when there is none.
    pub fn find(&self, id: &str) -> Result<Arc<Handle>, ApiError> {
        let found = self.open.lock().by_id.get(id).and_then(Weak::upgrade);
        found.filter(|handle| !handle.inbox.lock().is_over).ok_or_else(no_connection)
    }

    /// Tells them all that the server stops: each is over when its last feed has ended.
    pub fn end(&self) {
        let all: Vec<_> = {
            let mut open = self.open.lock();
            open.ended = true;
            open.by_id.values().filter_map(Weak::upgrade).collect()
        };
        for handle in all {
            handle.inbox.lock().ends = true;
            handle.waiting.wake();
        }
    }
}

fn no_connection() -> ApiError {
    ApiError::not_found("there is no such connection, or not any more")
}

/// A connection, for who wants something of it.
pub struct Handle {
    /// Its id.
    pub id: String,
    /// Who reads it.
    pub reader: Reader,
    /// How many subscriptions it has at most.
    pub subscriptions_max: usize,
    connections: Weak<Connections>,
    inbox: Mutex<Inbox>,
    waiting: AtomicWaker,
    overdue: Arc<Notify>,
}

/// What has come for a connection.
#[derive(Default)]
struct Inbox {
    names: HashMap<String, (Holder, Held)>,
    holders: u64,
    news: VecDeque<News>,
    ends: bool,
    /// Nothing comes for it any more.
    is_over: bool,
}

/// Who has a name. Whoever takes it anew is another: the one before may have its end still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder(u64);

/// What is held under a name.
enum Held {
    /// Nothing yet: its feed is being opened.
    Reserved,
    /// A subscription; with how it was given, if it is not in the request and ids have to say it.
    Subscribed(Option<Box<RawValue>>),
}

/// What is new for a connection.
pub enum News {
    /// A subscription, and who has its name.
    Subscribed(Box<Opened>, Holder),
    /// This one was given up.
    Unsubscribed(String),
    /// Something was asked for in vain; under this name, if it has one.
    Refused(Option<String>, ApiError),
}

/// A look-out for the end of a feed that its reader does not take; dropped with the feed.
pub struct Lookout(JoinHandle<()>);

impl Drop for Lookout {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A name that was taken, and is free again when this is dropped.
pub struct Reserved<'a> {
    handle: &'a Handle,
    name: String,
    holder: Holder,
}

impl Handle {
    /// Takes a name for a subscription.
    ///
    /// # Errors
    /// 409 when it is in use, 413 when there may not be more, 503 when the client has not read what was changed.
    pub fn reserve(&self, name: &str) -> Result<Reserved<'_>, ApiError> {
        let mut inbox = self.inbox.lock();
        if inbox.is_over {
            return Err(no_connection());
        }
        if inbox.names.contains_key(name) {
            let reason = format!("there is a subscription {name:?} on this connection: unsubscribe it first");
            return Err(ApiError::new(StatusCode::CONFLICT, "conflict", reason));
        }
        let subscriptions_max = self.subscriptions_max;
        if inbox.names.len() >= subscriptions_max {
            let reason = format!("a connection has at most {subscriptions_max} subscriptions");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_subscriptions", reason));
        }
        // A client that does not read may not add to what it is to be told for ever.
        if inbox.news.len() >= subscriptions_max {
            let reason = format!("{subscriptions_max} changes wait until the connection is read, and no more may");
            return Err(ApiError::unavailable(reason, "1"));
        }
        inbox.holders += 1;
        let holder = Holder(inbox.holders);
        inbox.names.insert(name.to_owned(), (holder, Held::Reserved));
        Ok(Reserved { handle: self, name: name.to_owned(), holder })
    }

    /// Gives a subscription up.
    ///
    /// # Errors
    /// 404 when there is none of this name.
    pub fn unsubscribe(&self, name: &str) -> Result<(), ApiError> {
        let mut inbox = self.inbox.lock();
        if !matches!(inbox.names.get(name), Some((_, Held::Subscribed(_)))) {
            return Err(ApiError::not_found(format!("there is no subscription {name:?} on this connection")));
        }
        inbox.names.remove(name);
        self.tell(&mut inbox, News::Unsubscribed(name.to_owned()));
        Ok(())
    }

    /// Has the connection tell that something was asked for in vain.
    pub fn refuse(&self, name: Option<String>, why: ApiError) {
        self.tell(&mut self.inbox.lock(), News::Refused(name, why));
    }

    /// A subscription has ended: its name is free, unless another has it.
    pub fn ended(&self, name: &str, holder: Holder) {
        let mut inbox = self.inbox.lock();
        if inbox.names.get(name).is_some_and(|(known, _)| *known == holder) {
            inbox.names.remove(name);
        }
    }

    /// Looks out for [`AnyFeed::overdue`] of one of its feeds. Of a client that does not read, no feed is asked for
    /// anything.
    pub fn look_out_for(&self, feed: &AnyFeed) -> Lookout {
        let (due, overdue) = (feed.overdue(), Arc::clone(&self.overdue));
        Lookout(tokio::spawn(async move {
            due.await;
            overdue.notify_one();
        }))
    }

    /// Ready when one of its feeds is overdue.
    pub fn overdue(&self) -> impl Future<Output = ()> + 'static {
        let overdue = Arc::clone(&self.overdue);
        async move { overdue.notified().await }
    }

    /// Takes what is new, and has this task woken when there is more; with it, whether the connection is to end.
    pub fn take_news(&self, cx: &Context<'_>) -> (VecDeque<News>, bool) {
        self.waiting.register(cx.waker());
        let mut inbox = self.inbox.lock();
        (std::mem::take(&mut inbox.news), inbox.ends)
    }

    /// The connection is over: whoever brings it something is told so.
    pub fn close(&self) {
        self.inbox.lock().is_over = true;
    }

    /// Closes it unless something is on its way to it; whether it did.
    pub fn close_if_unused(&self) -> bool {
        let mut inbox = self.inbox.lock();
        let is_opening = inbox.names.values().any(|(_, held)| matches!(held, Held::Reserved));
        inbox.is_over = !is_opening && inbox.news.is_empty();
        inbox.is_over
    }

    fn tell(&self, inbox: &mut Inbox, news: News) {
        inbox.news.push_back(news);
        self.waiting.wake();
    }
}

impl Reserved<'_> {
    /// Takes note that there is a subscription under the name, which the connection knows; with how it was given, if it
    /// is not in the request that opened the connection and ids have to say it.
    pub fn hold(self, later: Option<Box<RawValue>>) -> Holder {
        self.handle.inbox.lock().names.insert(self.name.clone(), (self.holder, Held::Subscribed(later)));
        self.holder
    }

    /// Puts a subscription under the name that came later than the request that opened the connection.
    ///
    /// # Errors
    /// 404 when the connection is over by now, 413 when it does not fit into the connection's ids.
    pub fn fill(self, subscription: Opened) -> Result<(), ApiError> {
        let mut inbox = self.handle.inbox.lock();
        if inbox.is_over {
            return Err(no_connection());
        }
        let has_ids = self.handle.reader.form.has_ids();
        if has_ids {
            let earlier = inbox.names.values().filter_map(|(_, held)| match held {
                Held::Subscribed(Some(given)) => Some(given.get()),
                _ => None,
            });
            if !fits_into_ids(earlier.chain([subscription.given.get()])) {
                return Err(ApiError::too_large(
                    "what was subscribed to on this connection does not fit into its `id:` any more: name subscriptions \
                     in the request that opens a connection, where there is room",
                ));
            }
        }
        let later = has_ids.then(|| subscription.given.clone());
        inbox.names.insert(self.name.clone(), (self.holder, Held::Subscribed(later)));
        self.handle.tell(&mut inbox, News::Subscribed(Box::new(subscription), self.holder));
        Ok(())
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut inbox = self.handle.inbox.lock();
        // Where it was filled, the subscription may have been given up, and another be about to have the name.
        if matches!(inbox.names.get(&self.name), Some((holder, Held::Reserved)) if *holder == self.holder) {
            inbox.names.remove(&self.name);
            // The connection may be unused from now on.
            self.handle.waiting.wake();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(connections) = self.connections.upgrade() {
            connections.open.lock().by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wire::form::Form;

    #[test]
    fn the_end_of_a_subscription_does_not_free_the_name_for_a_third() {
        let connections = Arc::new(Connections::default());
        let reader = Reader { form: Form::Lines, heartbeat: Duration::from_secs(1), address: None };
        let handle = connections.add(10, reader).unwrap();
        let old = handle.reserve("a").unwrap().hold(None);
        handle.unsubscribe("a").unwrap();
        let new = handle.reserve("a").unwrap();
        handle.ended("a", old);
        assert!(handle.reserve("a").is_err(), "its feed is being opened");
        let new = new.hold(None);
        handle.ended("a", old);
        assert!(handle.reserve("a").is_err(), "there it is");
        handle.ended("a", new);
        assert!(handle.reserve("a").is_ok());
    }

    #[test]
    fn who_took_a_name_before_does_not_free_it_for_a_third() {
        let connections = Arc::new(Connections::default());
        let reader = Reader { form: Form::Lines, heartbeat: Duration::from_secs(1), address: None };
        let handle = connections.add(10, reader).unwrap();
        let old = handle.reserve("a").unwrap();
        let late = Reserved { handle: &handle, name: "a".to_owned(), holder: old.holder };
        old.hold(None);
        handle.unsubscribe("a").unwrap();
        let new = handle.reserve("a").unwrap();
        drop(late);
        assert!(handle.reserve("a").is_err(), "its feed is being opened");
        drop(new);
        assert!(handle.reserve("a").is_ok());
    }
}
