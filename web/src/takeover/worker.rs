//! What a worker has one of.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use actix::{Actor, Addr};

use super::feeds::Feeds;
use super::homes::Homes;
use super::roll::Workers;

/// A worker of the server, and its [`Feeds`].
#[derive(Clone)]
pub struct Worker {
    feeds: Rc<RefCell<Option<Addr<Feeds>>>>,
    workers: Workers,
}

impl Worker {
    /// Starts one of these workers on the thread that calls. It has feeds from the beginning: others may share theirs
    /// with it before it is asked for one.
    pub fn start(workers: &Workers) -> Worker {
        let worker = Worker { feeds: Rc::default(), workers: workers.clone() };
        if let Err(error) = worker.feeds() {
            // It tries again when it is asked for one.
            tracing::error!(%error, "a web thread cannot serve feeds");
        }
        worker
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
