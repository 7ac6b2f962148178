//! `/_dashboard/figures`: every metric, once a second, as Server-Sent Events. The first event has them all, a later one
//! those that have changed; with `Last-Event-ID` the feed goes on where it was, as far back as samples are kept.

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::Figures;
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::reply;

/// Pages that follow the figures at once.
const READERS_MAX: usize = 100;

static READERS: Semaphore = Semaphore::const_new(READERS_MAX);

pub fn answer(call: &Call) -> Answer {
    let reader = READERS
        .try_acquire()
        .map_err(|_full| ApiError::unavailable(format!("{READERS_MAX} pages follow the figures already"), "5"))?;
    let given = call.req.headers().get("last-event-id").and_then(|value| value.to_str().ok());
    let place = given.or(call.query.get("since")).and_then(|place| place.parse().ok());
    let figures = Arc::clone(&call.state.figures);
    let following = Following { newest: figures.newest(), figures, place, _reader: reader };
    let pieces = stream::unfold(following, |mut following| async move {
        let piece = following.next().await?;
        Some((Ok::<_, Infallible>(piece), following))
    });
    let mut answer = HttpResponse::build(StatusCode::OK);
    answer.content_type("text/event-stream");
    reply::not_held_back(&mut answer);
    Ok(reply::streaming(&call.req, answer, pieces))
}

struct Following {
    newest: watch::Receiver<Option<u64>>,
    figures: Arc<Figures>,
    place: Option<u64>,
    /// Its place among the readers.
    _reader: SemaphorePermit<'static>,
}

impl Following {
    /// What is new, when there is something; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.newest.borrow_and_update().as_ref()?;
            let (text, place) = self.figures.behind(self.place);
            self.place = place;
            if !text.is_empty() {
                return Some(text.into());
            }
            self.newest.changed().await.ok()?;
        }
    }
}
