//! What a worker has one of.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use actix::{Actor, Addr, Arbiter};

use super::feeds::Feeds;
use super::homes::Homes;
use super::roll::Workers;

/// A worker of the server; its [`Feeds`] are started when the first feed is to be served.
#[derive(Clone)]
pub struct Worker {
    feeds: Rc<RefCell<Option<Addr<Feeds>>>>,
    workers: Workers,
}

impl Worker {
    /// One of these workers.
    pub fn of(workers: &Workers) -> Worker {
        Worker { feeds: Rc::default(), workers: workers.clone() }
    }

    /// Starts one that takes no connections, on a thread of its own: it serves feeds that others share with it. It ends
    /// with the actors' system, on which this is called.
    ///
    /// # Errors
    /// When the system has no more threads, or no open files for one.
    pub fn start_helping(workers: &Workers) -> io::Result<()> {
        let workers = workers.clone();
        Arbiter::try_new()?.spawn_fn(move || {
            if let Err(error) = Worker::of(&workers).feeds() {
                tracing::error!(%error, "a web thread cannot help with feeds");
            }
        });
        Ok(())
    }

    /// Where feeds that give the same are served.
    pub fn homes(&self) -> &Homes {
        self.workers.homes()
    }

    /// The worker's feeds.
    ///
    /// # Errors
    /// When the system has nothing left to watch sockets with.
    pub fn feeds(&self) -> io::Result<Addr<Feeds>> {
        let mut started = self.feeds.borrow_mut();
        if let Some(feeds) = &*started
            && feeds.connected()
        {
            return Ok(feeds.clone());
        }
        let feeds = started.insert(Feeds::new(self.workers.clone())?.start());
        self.workers.add(feeds.clone());
        Ok(feeds.clone())
    }
}
