//! Answers that are sent page by page. Each page is read from a snapshot of its own, which is gone before the page's
//! bytes are sent; a client that reads slowly holds one page and no snapshot.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{Stream, StreamExt, stream};
use seqtide::documents::Reader;
use seqtide::storage::{Snapshot, StorageError};
use seqtide::{Database, Error};

use crate::call::Answer;
use crate::{cut_short, reply};

/// What ends a page of items, whichever comes first; an item is never cut.
const PAGE_ITEMS: usize = 200;
const PAGE_BYTES: usize = 1 << 20;

/// Something that is sent page by page.
pub trait Pages {
    /// The next page; `None` behind the last.
    async fn next_page(&mut self) -> Result<Option<Vec<u8>>, Error>;
}

/// An answer that is made while it is sent. Its first page is there before anything is said, so that where nothing can
/// be read there is an error in its place. A later error ends it without its proper end, so the client knows that it is
/// incomplete.
///
/// # Errors
/// What the first page cannot be read for.
pub fn streaming(
    req: &HttpRequest,
    answer: HttpResponseBuilder,
    body: impl Stream<Item = Result<Bytes, Error>> + 'static,
) -> LocalBoxFuture<'_, Answer> {
    let mut body = Box::pin(body);
    // Boxed: every future on the way down would have room for it, those of writes too.
    Box::pin(async move {
        let first = body.next().await.transpose()?;
        let body = stream::iter(first.map(Ok)).chain(body);
        Ok(reply::streaming(req, answer, cut_short::telling(req, body)))
    })
}

/// The pages as the body of such an answer.
pub fn paged(pages: impl Pages) -> impl Stream<Item = Result<Bytes, Error>> {
    stream::try_unfold(pages, |mut pages| async move {
        let page = pages.next_page().await?;
        Ok(page.map(|page| (Bytes::from(page), pages)))
    })
}

/// A list of items, each written from what is read for it.
pub struct Items<I, W> {
    database: Database,
    items: Arc<Vec<I>>,
    /// The next item.
    at: usize,
    write: W,
    head: Vec<u8>,
    between: &'static [u8],
    /// Taken by the last page.
    end: Option<Vec<u8>>,
}

impl<I, W> Items<I, W>
where
    I: Send + Sync + 'static,
    W: Fn(&mut Vec<u8>, &mut Reader<'_>, &I) -> Result<(), StorageError> + Clone + Send + 'static,
{
    pub fn new(database: Database, items: Vec<I>, write: W) -> Items<I, W> {
        Items { database, items: Arc::new(items), at: 0, write, head: Vec::new(), between: b"", end: Some(Vec::new()) }
    }

    /// The same with what stands before, between and behind the items.
    pub fn framed(self, head: Vec<u8>, between: &'static [u8], end: Vec<u8>) -> Items<I, W> {
        Items { head, between, end: Some(end), ..self }
    }
}

impl<I, W> Pages for Items<I, W>
where
    I: Send + Sync + 'static,
    W: Fn(&mut Vec<u8>, &mut Reader<'_>, &I) -> Result<(), StorageError> + Clone + Send + 'static,
{
    async fn next_page(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.end.is_none() {
            return Ok(None);
        }
        let mut out = std::mem::take(&mut self.head);
        if self.at < self.items.len() {
            let (items, start, between, write) = (Arc::clone(&self.items), self.at, self.between, self.write.clone());
            let read = move |snapshot: &Snapshot<'_>| {
                let (mut at, mut reader) = (start, Reader::new(snapshot));
                while at < items.len() && at < start + PAGE_ITEMS && out.len() < PAGE_BYTES {
                    out.extend_from_slice(if at > 0 { between } else { b"" });
                    write(&mut out, &mut reader, &items[at])?;
                    at += 1;
                }
                Ok((out, at))
            };
            (out, self.at) = self.database.read(read).await?;
        }
        if self.at == self.items.len() {
            out.extend(self.end.take().unwrap_or_default());
        }
        Ok(Some(out))
    }
}
