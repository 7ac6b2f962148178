//! What the log is told of an answer that breaks off in its midst: its client sees no more than that, or has nobody to
//! ask.

use actix_web::HttpRequest;
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use seqtide::storage::model::db_name::DbName;
use seqtide::{Error, Feed, Source};

/// Tells of a feed that cannot go on, wherever it is served.
pub fn feed<S: Source>(feed: &Feed<S>, error: &Error) {
    let (database, feed) = (feed.database().map(DbName::as_str), feed.id());
    tracing::error!(database, feed, %error, "a feed is cut short");
}

/// Tells of the answer to a request where what it is made of cannot be had any more.
pub fn telling<B: Stream<Item = Result<Bytes, Error>>>(
    req: &HttpRequest,
    body: B,
) -> impl Stream<Item = Result<Bytes, Error>> + use<B> {
    let (method, path) = (req.method().clone(), req.path().to_owned());
    body.inspect_err(move |error| tracing::error!(%method, path, %error, "an answer is cut short"))
}
