//! Options of CouchDB's feeds, `_changes` and `_db_updates`.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use seqtide::{
    Ahead, EndsAt, FeedKind, FeedMode, FeedOptions, Fields, Filter, RowShape, Selector, Since, UpdatesOptions,
};

use super::function::{AskedFunction, Names, query_object};
use super::{doc_ids, last_event_id, parse_since};
use crate::error::ApiError;
use crate::json::{self, Members};
use crate::query::Query;
use crate::wire::changes_body::Shape;

/// A feed asked for at `_changes`.
pub struct Asked {
    /// The feed, but for the function.
    pub options: FeedOptions,
    /// A function that its filter is to have besides.
    pub function: Option<AskedFunction>,
    /// What the answer looks like.
    pub shape: Shape,
    /// Rows whose number from the end of the limit is no multiple of this have no `seq`.
    pub seq_interval: Option<u64>,
}

impl Asked {
    /// `longest` bounds timeout and heartbeat.
    ///
    /// Source: CouchDB `chttpd_db:parse_changes_query`.
    ///
    /// # Errors
    /// 400 with CouchDB's text.
    pub fn parse(req: &HttpRequest, query: &Query, shows: AskedFilter, longest: Duration) -> Result<Asked, ApiError> {
        let AskedFilter { filter, fields, function } = shows;
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

/// Reads what `_db_updates` is asked for; unknown options are passed over. `longest` bounds timeout and heartbeat.
///
/// Source: CouchDB `global_changes_httpd:parse_global_changes_query`.
///
/// # Errors
/// 400 with CouchDB's text.
pub fn updates(req: &HttpRequest, query: &Query, longest: Duration) -> Result<(UpdatesOptions, Shape), ApiError> {
    let (kind, mode, shape) = feed(query)?;
    let heartbeat = match query.get("heartbeat") {
        Some("false") => None,
        _ => heartbeat(query, longest)?,
    };
    let options = UpdatesOptions {
        since: since(req, query, kind)?,
        mode,
        descending: query.flag("descending"),
        limit: non_negative(query, "limit")?,
        heartbeat,
        timeout: Some(timeout(query, longest)?),
        ahead: Ahead::Echo,
        kind,
        ..UpdatesOptions::default()
    };
    Ok((options, shape))
}

fn feed(query: &Query) -> Result<(FeedKind, FeedMode, Shape), ApiError> {
    match query.get("feed").unwrap_or("normal") {
        "normal" => Ok((FeedKind::Normal, FeedMode::Once, Shape::Object)),
        "longpoll" => Ok((FeedKind::Longpoll, FeedMode::Longpoll, Shape::Object)),
        "continuous" | "live" => Ok((FeedKind::Continuous, FeedMode::Live, Shape::Lines)),
        "eventsource" => Ok((FeedKind::Eventsource, FeedMode::Live, Shape::EventSource)),
        _ => Err(ApiError::bad_request("Supported `feed` types: normal, continuous, live, longpoll, eventsource")),
    }
}

fn since(req: &HttpRequest, query: &Query, kind: FeedKind) -> Result<Since, ApiError> {
    let asked = query.last_of(&["since", "last-event-id"]).unwrap_or("0");
    let in_header = last_event_id(req).filter(|_| kind == FeedKind::Eventsource);
    // The last row that came had no sequence (`seq_interval`): what came before comes once more. Behind `now` it would
    // be missing.
    let in_header = in_header.filter(|id| id != "null" || asked == "now");
    let text = in_header.as_deref().unwrap_or(asked);
    parse_since(text)
}

/// What a feed shows, as it was asked for.
#[derive(Default)]
pub struct AskedFilter {
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

impl AskedFilter {
    /// Reads it from the query, and from the body where there is one; it is looked at before all other options. It may
    /// name `ids_max` documents: a replicator that is given a list of them names them all.
    ///
    /// # Errors
    /// 400 with CouchDB's text; 413 for more documents.
    pub fn parse(query: &Query, body: Option<&[u8]>, ids_max: usize) -> Result<AskedFilter, ApiError> {
        let name = query.get("filter").unwrap_or("");
        let members = body_object(body)?;
        let member = |name: &str| members.get(name).map(|value| value.get());
        match name {
            _ if name.split('/').all(str::is_empty) => Ok(AskedFilter::default()),
            "_design" => Ok(Filter::design().into()),
            "_doc_ids" => {
                let list = if body.is_some() { member("doc_ids") } else { query.get("doc_ids") };
                let list = list.map(serde_json::from_str).transpose().map_err(|_| ApiError::not_json())?;
                Ok(Filter::ids(doc_ids(list, ids_max)?).into())
            }
            "_selector" if body.is_none() => Err(ApiError::bad_request("Selector must be specified in POST payload")),
            "_selector" => {
                let selector = Selector::from_json(member("selector").unwrap_or("null"))?;
                let fields = member("fields").map(Fields::from_json).transpose()?;
                Ok(AskedFilter { fields, ..Filter::selector(selector).into() })
            }
            "_view" => Ok(AskedFunction::view(query.get("view"), Names::Escaped)?.into()),
            _ if name.starts_with('_') => Err(ApiError::bad_request("unknown builtin filter name")),
            _ => Ok(AskedFunction::filter(name, Names::Escaped, query_object(query))?.into()),
        }
    }
}

/// A selector stays text: the order of its members counts, and every digit.
fn body_object(body: Option<&[u8]>) -> Result<Members<'_>, ApiError> {
    Members::of_options(body.filter(|body| !body.is_empty()).unwrap_or(b"{}"), json::BODY)
}

fn non_negative(query: &Query, key: &'static str) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get(key) else { return Ok(None) };
    let refuse = |what| Err(ApiError::bad_request(format!("The {key} {what} should be a non-negative integer")));
    match text.parse::<i128>() {
        Ok(number) if number < 0 => refuse("value"),
        Ok(number) => Ok(Some(u64::try_from(number).unwrap_or(u64::MAX))),
        Err(_) => refuse("parameter"),
    }
}

fn timeout(query: &Query, longest: Duration) -> Result<Duration, ApiError> {
    let given = non_negative(query, "timeout")?.map(Duration::from_millis);
    Ok(given.unwrap_or(longest).min(longest))
}

fn heartbeat(query: &Query, longest: Duration) -> Result<Option<Duration>, ApiError> {
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
