//! Connections that write new documents, one request after the other.

use std::ops::Range;
use std::time::Instant;

use crate::Error;
use crate::documents::{self, Stamp};
use crate::load::Sender;
use crate::service::Publish;

/// Single documents.
pub struct Inserts<'a> {
    publish: &'a Publish,
    /// The number of the next document, and what is added for the one after it.
    next: u64,
    step: u64,
    /// When the times of documents begin; none where nobody measures their way.
    epoch: Option<Instant>,
    request: Vec<u8>,
    /// The number of the last document that was answered.
    pub acknowledged: Option<u64>,
}

impl<'a> Inserts<'a> {
    /// A connection of so many: together they number their documents from `first` on, each its own in order.
    pub fn new(publish: &'a Publish, first: u64, connection: usize, connections: usize) -> Inserts<'a> {
        let (next, step) = (first + connection as u64, connections as u64);
        Inserts { publish, next, step, epoch: None, request: Vec::new(), acknowledged: None }
    }

    /// Has each document say when it was sent.
    #[must_use]
    pub fn stamped_from(self, epoch: Instant) -> Inserts<'a> {
        Inserts { epoch: Some(epoch), ..self }
    }

    /// The number behind all that were sent over this connection.
    pub fn end(&self) -> u64 {
        self.next
    }
}

impl Sender for Inserts<'_> {
    fn next(&mut self, at: Instant) -> Option<&[u8]> {
        let micros = self.epoch.map_or(0, |epoch| at.duration_since(epoch).as_micros() as u64);
        self.request.clear();
        self.publish.write(Stamp { number: self.next, micros }, &mut self.request);
        self.next += self.step;
        Some(&self.request)
    }

    fn answered(&mut self, _answer: &[u8]) -> Result<(), Error> {
        self.acknowledged = Some(self.next - self.step);
        Ok(())
    }
}

/// New documents of a database, many a request.
pub struct Batches<'a> {
    database: &'a str,
    /// The number of the next document, what is added for the next request, and the number behind the last.
    next: u64,
    step: u64,
    end: u64,
    /// Documents of a request, and of the one under way.
    batch: u64,
    sent: u64,
    request: Vec<u8>,
}

impl<'a> Batches<'a> {
    /// A connection of so many that share the documents of these numbers, `batch` a request.
    pub fn new(
        database: &'a str,
        batch: u64,
        numbers: Range<u64>,
        connection: usize,
        connections: usize,
    ) -> Batches<'a> {
        let (next, step) = (numbers.start + connection as u64 * batch, connections as u64 * batch);
        Batches { database, next, step, end: numbers.end, batch, sent: 0, request: Vec::new() }
    }
}

impl Sender for Batches<'_> {
    fn next(&mut self, _at: Instant) -> Option<&[u8]> {
        let numbers = self.next..self.end.min(self.next.saturating_add(self.batch));
        if numbers.is_empty() {
            return None;
        }
        self.sent = numbers.end - numbers.start;
        self.next = self.next.saturating_add(self.step);
        self.request.clear();
        documents::write_bulk(self.database, numbers, &mut self.request);
        Some(&self.request)
    }

    fn answered(&mut self, answer: &[u8]) -> Result<(), Error> {
        documents::expect_revs(answer, self.sent)
    }
}
