//! Answers to requests for feeds while the server is being stopped, for those who take an error (503, with `Retry-After`) for the end
//! of all: an `EventSource`, which gives up at any status but 200, and clients of CouchDB's feeds, which know a CouchDB that is
//! stopped by connections that end.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse};

use crate::connection::Cutter;
use crate::reply;
use crate::state::State;

/// What stands before and behind a `draining` as an event of its own.
pub const EVENT: [&str; 2] = ["event: draining\ndata: ", ""];
/// The same as one of a list.
pub const LIST: [&str; 2] = ["data: [", "]"];

/// A Server-Sent Event that says when to come back.
pub fn draining(retry: Duration, [before, behind]: [&str; 2]) -> String {
    let retry = retry.as_millis();
    format!("{before}{{\"event\":\"draining\",\"retry\":{retry}}}{behind}\nretry: {retry}\n\n")
}

/// An answer of Server-Sent Events that says when to come back, and no more.
pub fn come_back(retry: Duration, around: [&str; 2]) -> HttpResponse {
    let mut answer = HttpResponse::Ok();
    answer.content_type("text/event-stream");
    reply::not_held_back(&mut answer);
    answer.body(draining(retry, around))
}

/// Ends a request's connection without an answer, as late as may be: when all feeds have ended.
pub async fn leave_unanswered(req: &HttpRequest, state: &State) {
    state.ending.cancelled().await;
    Cutter::of(req).cut();
}
