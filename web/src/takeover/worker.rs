//! What a worker has one of.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use actix::{Actor, Addr};

use super::feeds::Feeds;

/// A worker of the server; its [`Feeds`] are started when the first feed is to be served.
#[derive(Clone, Default)]
pub struct Worker(Rc<RefCell<Option<Addr<Feeds>>>>);

impl Worker {
    /// The worker's feeds.
    ///
    /// # Errors
    /// When the system has nothing left to watch sockets with.
    pub fn feeds(&self) -> io::Result<Addr<Feeds>> {
        let mut started = self.0.borrow_mut();
        if let Some(feeds) = &*started
            && feeds.connected()
        {
            return Ok(feeds.clone());
        }
        Ok(started.insert(Feeds::new()?.start()).clone())
    }
}
