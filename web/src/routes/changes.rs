//! CouchDB's feed: `/{db}/_changes`, byte for byte.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::sequence::Sequence;
use seqtide::{
    Ahead, Database, EndsAt, Error, Feed, FeedKind, FeedMode, FeedOptions, Fields, Filter, RowShape, Selector, Since,
    Source,
};
use serde_json::Value;

use super::feed::last_event_id;
use super::function::{AskedFunction, query_object};
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::feeds::changes_body::{Changes, Extras, Shape};
use crate::feeds::{body, stopping};
use crate::json::{self, Members};
use crate::query::Query;
use crate::state::State;
use crate::takeover::{Cutter, Takeover};
use crate::{reply, request};

/// A feed asked for at `_changes`.
pub struct Asked {
    options: FeedOptions,
    function: Option<AskedFunction>,
    shape: Shape,
    /// Rows whose number from the end of the limit is no multiple of this have no `seq`.
    seq_interval: Option<u64>,
}

pub async fn changes(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    let post = call.req.method() == Method::POST;
    if post {
        request::require_json(&call.req)?;
    }
    let Call { req, payload, query, state } = call;
    let body = request::read_body(&req, payload, state.config.limits.feed_body_bytes_max).await?;
    let asked = Asked::parse(&req, &query, if post { Some(&body) } else { None }, state.config.feeds.changes_timeout)?;
    let etag = match asked.options.kind {
        FeedKind::Normal => Some(etag(&database, req.query_string(), &body).await?),
        _ => None,
    };
    if let Some(known) = etag.as_ref().filter(|etag| reply::is_known(&req, etag)) {
        return Ok(reply::not_modified(known.clone()));
    }
    let mut options = asked.options;
    if let Some(function) = asked.function {
        options.filter.function = Some(function.find(&database).await?);
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
            return Ok(stopping::come_back(retry, stopping::EVENT));
        }
        Err(draining @ Error::Draining { .. }) => {
            stopping::leave_unanswered(req, state).await;
            return Err(draining.into());
        }
        opened => opened?,
    };
    let mut answer = HttpResponse::build(StatusCode::OK);
    answer.content_type(shape.content_type());
    if let Some(etag) = etag {
        answer.insert_header((header::ETAG, etag));
    }
    if feed.options().mode == FeedMode::Once {
        answer.insert_header((header::CACHE_CONTROL, reply::MUST_REVALIDATE));
    } else {
        reply::not_held_back(&mut answer);
    }
    if feed.is_ahead() {
        tracing::warn!(
            path = req.path(),
            "a feed was asked for from ahead of all there is: it hides writes until then"
        );
        answer.insert_header((reply::SEQTIDE_SINCE, "ahead"));
    }
    feed.read_by(req.peer_addr());
    let wire = Changes::new(shape, extras, feed.options().limit);
    let cutting = Cutter::of(req).cut_when(feed.overdue());
    Ok(reply::streaming(req, answer, body::stream(feed, wire, shape.opening(), Takeover::of(req), cutting)))
}

/// Tells two answers apart: another database, another state of it, another question.
async fn etag(database: &Database, query: &str, body: &[u8]) -> Result<String, ApiError> {
    let info = database.info().await?;
    Ok(reply::etag_of((info.uuid, info.counters.update_seq, query, body)))
}

impl Asked {
    /// `longest` bounds timeout and heartbeat. The filter is looked at first.
    ///
    /// Source: CouchDB `chttpd_db:parse_changes_query`.
    pub fn parse(req: &HttpRequest, query: &Query, body: Option<&[u8]>, longest: Duration) -> Result<Asked, ApiError> {
        let AskedFilter { filter, fields, function } = asked_filter(query, body)?;
        let (kind, mode, shape) = feed(query)?;
        let style = match query.get("style") {
            None | Some("main_only") => false,
            Some("all_docs") => true,
            Some(other) => {
                return Err(ApiError::bad_request(format!("`style` is `main_only` or `all_docs`, not `{other}`")));
            }
        };
        let doc = query.flag("include_docs");
        let options = FeedOptions {
            since: since(req, query, kind)?,
            mode,
            ends_at: EndsAt::LastRow,
            descending: query.flag("descending"),
            limit: non_negative(query, "limit")?,
            shape: RowShape { all_leaves: style, doc, conflicts: doc && query.flag("conflicts") },
            fields: fields.map(Arc::new),
            filter,
            heartbeat: heartbeat(query, longest)?,
            timeout: Some(timeout(query, longest)?),
            ahead: Ahead::Echo,
            ..FeedOptions::live(kind)
        };
        Ok(Asked { options, function, shape, seq_interval: seq_interval(query)? })
    }
}

pub fn feed(query: &Query) -> Result<(FeedKind, FeedMode, Shape), ApiError> {
    match query.get("feed").unwrap_or("normal") {
        "normal" => Ok((FeedKind::Normal, FeedMode::Once, Shape::Object)),
        "longpoll" => Ok((FeedKind::Longpoll, FeedMode::Longpoll, Shape::Object)),
        "continuous" | "live" => Ok((FeedKind::Continuous, FeedMode::Live, Shape::Lines)),
        "eventsource" => Ok((FeedKind::Eventsource, FeedMode::Live, Shape::EventSource)),
        _ => Err(ApiError::bad_request("Supported `feed` types: normal, continuous, live, longpoll, eventsource")),
    }
}

pub fn since(req: &HttpRequest, query: &Query, kind: FeedKind) -> Result<Since, ApiError> {
    let in_header = last_event_id(req).filter(|_| kind == FeedKind::Eventsource);
    let text = in_header.as_deref().or_else(|| query.last_of(&["since", "last-event-id"])).unwrap_or("0");
    parse_since(text)
}

/// Reads a token, in double quotes or without.
///
/// # Errors
/// 400 with CouchDB's text.
pub fn parse_since(text: &str) -> Result<Since, ApiError> {
    let malformed = || ApiError::bad_request("Malformed sequence supplied in 'since' parameter.");
    if text == "now" {
        return Ok(Since::Now);
    }
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    Sequence::parse(bare).map(Since::Seq).ok_or_else(malformed)
}

/// What a feed shows, as it was asked for.
#[derive(Default)]
struct AskedFilter {
    filter: Filter,
    /// What is left of documents.
    fields: Option<Fields>,
    /// A function that the filter is to have besides.
    function: Option<AskedFunction>,
}

impl From<Filter> for AskedFilter {
    fn from(filter: Filter) -> AskedFilter {
        AskedFilter { filter, ..AskedFilter::default() }
    }
}

impl From<AskedFunction> for AskedFilter {
    fn from(function: AskedFunction) -> AskedFilter {
        AskedFilter { function: Some(function), ..AskedFilter::default() }
    }
}

fn asked_filter(query: &Query, body: Option<&[u8]>) -> Result<AskedFilter, ApiError> {
    let name = query.get("filter").unwrap_or("");
    let members = body_object(body)?;
    let member = |name: &str| members.get(name).map(|value| value.get());
    match name {
        _ if name.split('/').all(str::is_empty) => Ok(AskedFilter::default()),
        "_design" => Ok(Filter::design().into()),
        "_doc_ids" => {
            let list = if body.is_some() { member("doc_ids") } else { query.get("doc_ids") };
            let list = list.map(serde_json::from_str).transpose().map_err(|_| ApiError::not_json())?;
            Ok(Filter::ids(doc_ids(list)?).into())
        }
        "_selector" if body.is_none() => Err(ApiError::bad_request("Selector must be specified in POST payload")),
        "_selector" => {
            let selector = Selector::from_json(member("selector").unwrap_or("null"))?;
            let fields = member("fields").map(Fields::from_json).transpose()?;
            Ok(AskedFilter { fields, ..Filter::selector(selector).into() })
        }
        "_view" => Ok(AskedFunction::view(query.get("view"))?.into()),
        _ if name.starts_with('_') => Err(ApiError::bad_request("unknown builtin filter name")),
        _ => Ok(AskedFunction::filter(name, query_object(query))?.into()),
    }
}

/// A selector stays text: the order of its members counts, and every digit.
fn body_object(body: Option<&[u8]>) -> Result<Members<'_>, ApiError> {
    Members::of_options(body.filter(|body| !body.is_empty()).unwrap_or(b"{}"), json::BODY)
}

/// Reads a list of document ids; those that no document can have are left out.
///
/// # Errors
/// 400 with CouchDB's text.
pub fn doc_ids(value: Option<Value>) -> Result<Vec<DocId>, ApiError> {
    let not_a_list = || ApiError::bad_request("`doc_ids` filter parameter is not a list of doc ids.");
    let ids: Vec<String> = serde_json::from_value(value.ok_or_else(not_a_list)?).map_err(|_| not_a_list())?;
    Ok(ids.iter().filter_map(|id| DocId::parse(id).ok()).collect())
}

pub fn non_negative(query: &Query, key: &'static str) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get(key) else { return Ok(None) };
    let refuse = |what| Err(ApiError::bad_request(format!("The {key} {what} should be a non-negative integer")));
    match text.parse::<i128>() {
        Ok(number) if number < 0 => refuse("value"),
        Ok(number) => Ok(Some(u64::try_from(number).unwrap_or(u64::MAX))),
        Err(_) => refuse("parameter"),
    }
}

pub fn timeout(query: &Query, longest: Duration) -> Result<Duration, ApiError> {
    let given = non_negative(query, "timeout")?.map(Duration::from_millis);
    Ok(given.unwrap_or(longest).min(longest))
}

pub fn heartbeat(query: &Query, longest: Duration) -> Result<Option<Duration>, ApiError> {
    match query.get("heartbeat").map(|text| (text, text.parse::<i64>())) {
        None => Ok(None),
        Some(("true", _)) => Ok(Some(longest)),
        Some((_, Ok(number @ 1..))) => Ok(Some(Duration::from_millis(number.unsigned_abs()).min(longest))),
        Some((_, Ok(_))) => {
            Err(ApiError::bad_request("The heartbeat value should be a positive integer (in milliseconds)."))
        }
        Some((_, Err(_))) => {
            Err(ApiError::bad_request("Invalid heartbeat value. Expecting a positive integer value (in milliseconds)."))
        }
    }
}

fn seq_interval(query: &Query) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get("seq_interval") else { return Ok(None) };
    let interval = text.parse().ok().filter(|interval| *interval > 0);
    interval.map(Some).ok_or_else(|| ApiError::bad_request("invalid_seq_interval"))
}
