//! What happens to databases: CouchDB's `/_db_updates`, and the native `/_feed` of the server.

use std::time::Duration;

use seqtide::{Ahead, Databases, Engine, Feed, FeedKind, UpdatesOptions};

use super::changes;
use super::feed::{Followed, Options};
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::feeds::changes_body::{Extras, Shape};
use crate::reply;

/// Source: CouchDB `global_changes_httpd`.
pub async fn db_updates(call: &Call) -> Answer {
    let (options, shape) = asked(call)?;
    let engine = &call.state.engine;
    // The answer to the same question is the same until something happens.
    let question = (engine.uuid(), engine.update_seq(), call.req.query_string());
    let etag = (options.kind == FeedKind::Normal).then(|| reply::etag_of(question));
    if let Some(known) = etag.as_ref().filter(|etag| reply::is_known(&call.req, etag)) {
        return Ok(reply::not_modified(known.clone()));
    }
    let opened = engine.updates_feed(options);
    changes::answer(&call.req, &call.state, opened, shape, Extras::default(), etag).await
}

/// Source: CouchDB `global_changes_httpd:parse_global_changes_query`; unknown options are passed over.
fn asked(call: &Call) -> Result<(UpdatesOptions, Shape), ApiError> {
    let Call { req, query, state, .. } = call;
    let longest = state.config.feeds.changes_timeout;
    let (kind, mode, shape) = changes::feed(query)?;
    let heartbeat = match query.get("heartbeat") {
        Some("false") => None,
        _ => changes::heartbeat(query, longest)?,
    };
    let options = UpdatesOptions {
        since: changes::since(req, query, kind)?,
        mode,
        descending: query.flag("descending"),
        limit: changes::non_negative(query, "limit")?,
        heartbeat,
        timeout: Some(changes::timeout(query, longest)?),
        ahead: Ahead::Echo,
        kind,
        ..UpdatesOptions::default()
    };
    Ok((options, shape))
}

pub async fn feed(call: Call) -> Answer {
    let engine = call.state.engine.clone();
    super::feed::feed_of(call, engine).await
}

impl Followed for Engine {
    type Source = Databases;
    type Asked = UpdatesOptions;
    const KNOWN: &'static [&'static str] =
        &["heartbeat", "last-event-id", "limit", "live", "on_rewind", "prefix", "since", "until"];

    fn parse(options: &Options, kind: FeedKind, heartbeat: Duration) -> Result<UpdatesOptions, ApiError> {
        Ok(UpdatesOptions {
            since: options.since_place()?,
            until: options.until()?,
            mode: options.mode()?,
            limit: options.limit()?,
            prefix: options.prefix()?.map(Into::into),
            heartbeat: Some(options.heartbeat()?.unwrap_or(heartbeat)),
            ahead: options.ahead()?,
            kind,
            ..UpdatesOptions::default()
        })
    }

    async fn open(&self, asked: UpdatesOptions) -> Result<Feed<Databases>, seqtide::Error> {
        self.updates_feed(asked)
    }
}
