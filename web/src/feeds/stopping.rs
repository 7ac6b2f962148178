//! Answers to requests for feeds while the server is being stopped, for those who take an error (503, with
//! `Retry-After`) for the end of all: an `EventSource`, which gives up at any status but 200, and clients of CouchDB's
//! feeds, which know a CouchDB that is stopped by connections that end.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse};
use tokio_util::sync::CancellationToken;

use crate::connection::Cutter;
use crate::reply;
use crate::wire::draining;

/// An answer of Server-Sent Events that says when to come back, and no more.
pub fn come_back(retry: Duration, around: [&str; 2]) -> HttpResponse {
    let mut answer = HttpResponse::Ok();
    answer.content_type("text/event-stream");
    reply::not_held_back(&mut answer);
    answer.body(draining::come_back(retry, around))
}

/// Ends a request's connection without an answer, as late as may be: when all feeds have ended.
pub async fn leave_unanswered(req: &HttpRequest, ending: &CancellationToken) {
    ending.cancelled().await;
    Cutter::of(req).cut();
}
