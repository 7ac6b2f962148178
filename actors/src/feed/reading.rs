//! How a feed reads: page by page, with its signs of life given meanwhile, and the next page on its way while one is
//! being sent.

use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::task::Poll;

use seqtide_storage::model::sequence::Sequence;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::large_page::PAGES_BEFORE;
use super::options::FeedOptions;
use super::source::{Page, Source, Wanted};
use super::subscriber::PageRead;
use super::{Feed, earlier, until};
use crate::end_reason::EndReason;
use crate::error::Error;

/// Behind a page of more bytes, a large page's own aside, which has a large document at its end, nothing is read before
/// that is on its way: a reader that stalls keeps one large document at most.
const READ_AHEAD_BEHIND: usize = 64 << 10;

type ReadPage<R> = Pin<Box<dyn Future<Output = Result<Page<R>, Error>> + Send>>;

/// A page on its way.
pub(super) struct Reading<R> {
    wanted: Wanted,
    /// How often rows had been purged when it was begun.
    purges: u64,
    begun: Instant,
    page: ReadPage<R>,
}

impl<S: Source> Feed<S> {
    /// Reads what is wanted: a page with rows, or `None`, also when a sign of life or the end is due before it is
    /// there.
    pub(super) async fn read(&mut self, wanted: Wanted) -> Result<Option<Page<S::Row>>, Error> {
        let reading = self.reading.get_or_insert_with(|| Reading {
            wanted,
            purges: self.source.purges(),
            begun: Instant::now(),
            page: Box::pin(self.source.read(&self.options, wanted)),
        });
        let due = until(earlier(self.subscriber.sign_due(reading.begun), self.told.ends_at));
        let page = tokio::select! {
            biased;
            page = &mut reading.page => page,
            _ = self.ended.changed() => return Ok(None),
            () = self.told.more() => return Ok(None),
            () = due => {
                self.subscriber.still_reading();
                return Ok(None);
            }
        };
        let (wanted, purges) = (reading.wanted, reading.purges);
        self.reading = None;
        let Some(page) = self.unless_closed(page)? else { return Ok(None) };
        // Before the page is looked over: what is purged meanwhile counts as what it may have.
        let purges_by_now = self.source.purges();
        let Some(page) = self.source.without_purged(page, purges) else {
            self.read_as_rows(wanted);
            return Ok(None);
        };
        self.pages += 1;
        self.purges = purges_by_now;
        let read = PageRead { examined: page.examined, complete: page.complete, rows: page.len() as u64 };
        self.subscriber.read(read, wanted.up_to, Instant::now());
        self.note_looked(page.state);
        if !page.frames.is_empty() && page.frames.bytes().len() <= page.frames.room() + READ_AHEAD_BEHIND {
            self.read_ahead(wanted).await;
        }
        if page.len() == 0 {
            // It may have taken long to look at, and the next one may be there at once: others have their turn.
            yield_now().await;
            return Ok(None);
        }
        Ok(Some(page))
    }

    /// Whether what it has been given so far is on its way.
    pub(super) fn takes_large_pages(&self) -> bool {
        self.pages >= PAGES_BEFORE
    }

    /// Takes note that all up to the position was looked at in this state.
    pub(super) fn note_looked(&mut self, state: Sequence) {
        if let Some(seen) = &mut self.seen {
            let position = self.subscriber.position();
            seen.note_looked(position, state);
            self.source.note_looked(position, state);
        }
    }

    /// Begins again with a page of which something was purged meanwhile: of rows that can be taken out, however often.
    fn read_as_rows(&mut self, wanted: Wanted) {
        let options = FeedOptions { frames: None, ..self.options.clone() };
        let purges = self.source.purges();
        let page = Box::pin(self.source.read(&options, wanted));
        self.reading = Some(Reading { wanted, purges, begun: Instant::now(), page });
    }

    /// Begins with the page behind the one that was just read of a stretch on the disk, so that it is there when this
    /// one has been sent.
    async fn read_ahead(&mut self, of: Wanted) {
        let Some(rest) = self.subscriber.rest_of(of).filter(|_| self.source.may_read_ahead()) else { return };
        let rest = Wanted { large: self.takes_large_pages(), ..rest };
        let purges = self.source.purges();
        let mut page: ReadPage<S::Row> = Box::pin(self.source.read(&self.options, rest));
        // Asked once, it goes to the thread that reads.
        if let Poll::Ready(read) = poll_fn(|context| Poll::Ready(page.as_mut().poll(context))).await {
            page = Box::pin(ready(read));
        }
        self.reading = Some(Reading { wanted: rest, purges, begun: Instant::now(), page });
    }

    /// What was read; `None` when the source closes, and the feed ends at the next step. Another error ends it now.
    pub(super) fn unless_closed<T>(&mut self, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(Error::NoDatabase | Error::Stopped) => {
                let reason = self.ended.borrow().unwrap_or(EndReason::Shutdown);
                self.subscriber.drain(reason);
                Ok(None)
            }
            Err(error) => {
                self.finished = true;
                Err(error)
            }
        }
    }
}
