//! A connection that sends one new document after the other.

use std::cell::Cell;

use crate::load::Sender;

pub struct Inserts<'a> {
    /// The number of the next document, shared by all connections.
    next: &'a Cell<u64>,
    write: fn(u64, &mut Vec<u8>),
    sent: u64,
    request: Vec<u8>,
    /// The number of the last document that was answered.
    pub acknowledged: Option<u64>,
}

impl<'a> Inserts<'a> {
    /// Takes numbers from `next`; `write` makes a request of one.
    pub fn new(next: &'a Cell<u64>, write: fn(u64, &mut Vec<u8>)) -> Inserts<'a> {
        Inserts { next, write, sent: 0, request: Vec::new(), acknowledged: None }
    }
}

impl Sender for Inserts<'_> {
    fn next(&mut self) -> Option<&[u8]> {
        self.sent = self.next.replace(self.next.get() + 1);
        self.request.clear();
        (self.write)(self.sent, &mut self.request);
        Some(&self.request)
    }

    fn answered(&mut self, _answer: &[u8]) {
        self.acknowledged = Some(self.sent);
    }
}
