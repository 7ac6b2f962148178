//! What happens to databases: CouchDB's `/_db_updates`, and the native `/_feed` of the server.

use seqtide::FeedKind;

use super::{changes, feed};
use crate::call::{Answer, Call};
use crate::feed_options::couchdb;
use crate::reply;
use crate::wire::changes_body::Extras;

/// Source: CouchDB `global_changes_httpd`.
pub async fn db_updates(call: &Call) -> Answer {
    let (options, shape) = couchdb::updates(&call.req, &call.query, call.state.config.feeds.changes_timeout)?;
    let engine = &call.state.engine;
    // The answer to the same question is the same until something happens.
    let question = (engine.uuid(), engine.update_seq(), call.req.query_string());
    let etag = (options.kind == FeedKind::Normal).then(|| reply::etag_of(question));
    if let Some(not_modified) = reply::not_modified(&call.req, etag.as_deref()) {
        return Ok(not_modified);
    }
    let opened = engine.updates_feed(options);
    changes::answer(&call.req, &call.state, opened, shape, Extras::default(), etag).await
}

pub async fn feed(call: Call) -> Answer {
    let engine = call.state.engine.clone();
    feed::feed_of(call, engine).await
}
