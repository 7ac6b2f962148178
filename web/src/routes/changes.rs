//! CouchDB's feed: `/{db}/_changes`, byte for byte.

use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use seqtide::{Database, Error, Feed, FeedKind, FeedMode, Source};

use crate::call::{Answer, Call};
use crate::connection::Cutter;
use crate::error::ApiError;
use crate::feed_options::couchdb::{Asked, AskedFilter};
use crate::feeds::{body, stopping};
use crate::state::State;
use crate::takeover::Takeover;
use crate::wire::changes_body::{Changes, Extras, Shape};
use crate::wire::draining;
use crate::{reply, request};

pub async fn changes(mut call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    let post = call.req.method() == Method::POST;
    if post {
        request::require_json(&call.req)?;
    }
    let payload = call.payload();
    let Call { req, query, state, .. } = call;
    let limits = &state.config.limits;
    let (body, ids_max) =
        (request::read_body(&req, payload, &state.bodies, limits.request_bytes_max).await?, limits.bulk_docs_max);
    let (in_query, text) = (query.clone(), req.query_string().to_owned());
    let parsed = request::parse(body, move |body| {
        let filter = AskedFilter::parse(&in_query, post.then_some(body), ids_max)?;
        Ok((filter, reply::etag_of((text, body))))
    });
    let (filter, question) = parsed.await?;
    let asked = Asked::parse(&req, &query, filter, state.config.feeds.changes_timeout)?;
    let etag = match asked.options.kind {
        FeedKind::Normal => Some(etag(&database, &question).await?),
        _ => None,
    };
    if let Some(not_modified) = reply::not_modified(&req, etag.as_deref()) {
        return Ok(not_modified);
    }
    let mut options = asked.options;
    if let Some(function) = asked.function {
        let found = function.find(&database).await.map_err(ApiError::of_function)?;
        options.filter.function = Some(found);
    }
    let opened = database.feed(options).await;
    let extras = Extras { seq_interval: asked.seq_interval, pending: true };
    answer(&req, &state, opened, asked.shape, extras, etag).await
}

/// The answer that a feed fills, at `_changes` and at `/_db_updates`.
pub async fn answer<S: Source>(
    req: &HttpRequest,
    state: &State,
    opened: Result<Feed<S>, Error>,
    shape: Shape,
    extras: Extras,
    etag: Option<String>,
) -> Answer {
    let feed = match opened {
        Err(Error::Draining { retry }) if shape == Shape::EventSource => {
            return Ok(stopping::come_back(retry, draining::EVENT));
        }
        Err(draining @ Error::Draining { .. }) => {
            stopping::leave_unanswered(req, &state.ending).await;
            return Err(draining.into());
        }
        opened => opened?,
    };
    let mut answer = HttpResponse::build(StatusCode::OK);
    answer.content_type(shape.content_type());
    if let Some(etag) = etag {
        answer.insert_header((header::ETAG, etag));
    }
    reply::not_held_back(&mut answer);
    if feed.options().mode == FeedMode::Once {
        answer.insert_header((header::CACHE_CONTROL, reply::MUST_REVALIDATE));
    }
    if feed.is_ahead() {
        tracing::warn!(
            path = req.path(),
            "a feed was asked for from ahead of all there is: it hides writes until then, or begins anew"
        );
        answer.insert_header((reply::SEQTIDE_SINCE, "ahead"));
    }
    feed.read_by(req.peer_addr());
    let wire = Changes::new(shape, extras, feed.options().limit);
    let cutting = Cutter::of(req).cut_when(feed.overdue());
    Ok(reply::streaming(req, answer, body::stream(feed, wire, shape.opening(), Takeover::of(req), cutting)))
}

/// Tells two answers apart: another database, another state of it, another question.
async fn etag(database: &Database, question: &str) -> Result<String, ApiError> {
    let info = database.info().await?;
    Ok(reply::etag_of((info.uuid, info.counters.update_seq, question)))
}
