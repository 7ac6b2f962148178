//! Options of the native door's feeds, of a database and of the server.

use std::num::IntErrorKind;
use std::time::Duration;

use seqtide::storage::model::doc_id::DocId;
use seqtide::storage::model::sequence::Sequence;
use seqtide::{
    Ahead, Database, Databases, Documents, Engine, Feed, FeedKind, FeedMode, FeedOptions, Filter, RowShape, Selector,
    Since, Source, Test, UpdatesOptions,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::function::{AskedFunction, Names};
use super::{doc_ids, parse_since};
use crate::error::ApiError;
use crate::json::{self, Members};
use crate::nearest::nearest;
use crate::query::Query;

/// What is followed: a database, or the server with all that it has.
pub trait Followed: 'static {
    /// What its feeds are of.
    type Source: Source;
    /// What a feed is asked for.
    type Asked;
    /// Every option there is.
    const KNOWN: &'static [&'static str];

    /// Reads the options; a feed that asks for no heartbeat gets this one.
    fn parse(options: &Options, kind: FeedKind, heartbeat: Duration) -> Result<Self::Asked, ApiError>;

    /// Opens a feed.
    async fn open(&self, asked: Self::Asked) -> Result<Feed<Self::Source>, seqtide::Error>;
}

impl Followed for Database {
    type Source = Documents;
    type Asked = AskedDocuments;
    const KNOWN: &'static [&'static str] = &[
        "conflicts",
        "conflicts_only",
        "doc_ids",
        "filter",
        "heartbeat",
        "include_docs",
        "last-event-id",
        "leave",
        "limit",
        "live",
        "on_rewind",
        "prefix",
        QUERY,
        SELECTOR,
        "since",
        "snapshot",
        "style",
        "until",
        "view",
    ];

    fn parse(options: &Options, kind: FeedKind, heartbeat: Duration) -> Result<AskedDocuments, ApiError> {
        Ok(AskedDocuments { options: options.parse(kind, heartbeat)?, function: options.function()? })
    }

    async fn open(&self, asked: AskedDocuments) -> Result<Feed, seqtide::Error> {
        let AskedDocuments { mut options, function } = asked;
        if let Some(function) = function {
            options.filter.function = Some(function.find(self).await?);
        }
        self.feed(options).await
    }
}

/// What a feed of documents is asked for.
pub struct AskedDocuments {
    options: FeedOptions,
    /// A function that its filter is to have besides.
    function: Option<AskedFunction>,
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

/// Reads a time as RFC 3339 writes it.
fn parse_time(text: &str) -> Option<Since> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(Since::Time(time.into()))
}

/// Options that stay the text they were given as, from a body too.
const SELECTOR: &str = "selector";
const QUERY: &str = "query";

/// CouchDB's filters that are no functions, and what a feed here has instead.
const COUCHDBS_OWN: [(&str, &str); 4] = [
    ("_design", "the option `prefix`, as `_design/`"),
    ("_doc_ids", "the option `doc_ids`"),
    ("_selector", "the option `selector`"),
    ("_view", "the option `view`"),
];

/// The one of a connection with many feeds.
pub const SUBSCRIPTIONS: &str = "subscriptions";

/// Options as they were given, by name. From a query every value is text.
#[derive(Default)]
pub struct Options(Map<String, Value>);

impl Options {
    /// Takes options from a query.
    ///
    /// # Errors
    /// 400 for one that is not known, or is there twice.
    pub fn of_query(query: &Query, known: &[&str]) -> Result<Options, ApiError> {
        let mut options = Options::default();
        for key in query.keys() {
            if options.has(&key) {
                return Err(ApiError::bad_request(format!("`{key}` is given twice: a feed has one")));
            }
            let text = query.get(&key).unwrap_or_default();
            options.set(&key, Value::from(text), known)?;
        }
        Ok(options)
    }

    /// Takes options from a JSON object; those of the query win.
    ///
    /// # Errors
    /// 400 for what is no such object, JSON or not, and for an option that is not known.
    pub fn take_body(&mut self, body: &[u8], known: &[&str]) -> Result<(), ApiError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let no_object = "feed options in a body are a JSON object";
        let members = Members::of_options(body, no_object).map_err(|error| error.if_not_json(no_object))?;
        for (name, value) in members {
            if self.0.contains_key(&name) {
                continue;
            }
            let value = match name.as_str() {
                SELECTOR | QUERY | SUBSCRIPTIONS => Value::from(value.get()),
                _ => serde_json::from_str(value.get()).map_err(|_| ApiError::not_json())?,
            };
            self.set(&name, value, known)?;
        }
        Ok(())
    }

    /// Goes on behind this token, whatever else is said.
    pub fn go_on_behind(&mut self, token: &str) {
        self.0.insert("last-event-id".to_owned(), Value::from(token));
    }

    /// Gives so many rows at most, whatever was said.
    pub fn limit_to(&mut self, rows: u64) {
        self.0.insert("limit".to_owned(), Value::from(rows));
    }

    /// Whether this one was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All but these, as text that is equal where they are, in whichever order they were given.
    pub fn without(&self, names: &[&str]) -> String {
        let mut options: Vec<_> = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str())).collect();
        options.sort_unstable_by_key(|(name, _)| *name);
        options.into_iter().map(|(name, value)| format!("{}:{value},", Value::from(name.as_str()))).collect()
    }

    fn set(&mut self, name: &str, value: Value, known: &[&str]) -> Result<(), ApiError> {
        if !known.contains(&name) {
            let nearest = nearest(name, known.iter().copied());
            let nearest = nearest.map(|nearest| format!(" (is it `{nearest}`?)")).unwrap_or_default();
            let known = known.join(", ");
            let reason = format!("unknown feed option `{name}`{nearest}; the options are {known}");
            return Err(ApiError::bad_request(reason));
        }
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    fn parse(&self, kind: FeedKind, default_heartbeat: Duration) -> Result<FeedOptions, ApiError> {
        let all_leaves = self.choice("style", ["main_only", "all_docs"])? == "all_docs";
        let shape =
            RowShape { all_leaves, doc: self.flag("include_docs", false)?, conflicts: self.flag("conflicts", false)? };
        Ok(FeedOptions {
            since: self.since()?,
            began_at_time: self.began_at_time(),
            until: self.until()?,
            snapshot: self.flag("snapshot", false)?,
            leave: self.flag("leave", false)?,
            mode: self.mode()?,
            limit: self.limit()?,
            shape,
            filter: self.filter()?,
            heartbeat: Some(self.heartbeat()?.unwrap_or(default_heartbeat)),
            ahead: self.ahead()?,
            ..FeedOptions::live(kind)
        })
    }

    fn mode(&self) -> Result<FeedMode, ApiError> {
        Ok(if self.flag("live", true)? { FeedMode::Live } else { FeedMode::Once })
    }

    fn limit(&self) -> Result<Option<u64>, ApiError> {
        self.number("limit")
    }

    fn ahead(&self) -> Result<Ahead, ApiError> {
        let refused = self.choice("on_rewind", ["rewind", "error"])? == "error";
        Ok(if refused { Ahead::Refuse } else { Ahead::Rewind })
    }

    fn since(&self) -> Result<Since, ApiError> {
        self.since_of("a sequence, `0`, `now` or a time such as 2026-03-01T12:00:00Z (in a query `+` is written %2B)")
    }

    /// What may be given has these forms.
    fn since_of(&self, forms: &str) -> Result<Since, ApiError> {
        let since = match self.0.get("last-event-id").or_else(|| self.0.get("since")) {
            None => return Ok(Since::Now),
            Some(Value::String(text)) => parse_since(text).ok().or_else(|| parse_time(text)),
            Some(Value::Number(number)) => parse_since(&number.to_string()).ok(),
            Some(_) => None,
        };
        since.ok_or_else(|| self.wrong(if self.has("last-event-id") { "last-event-id" } else { "since" }, forms))
    }

    /// Whether `since` is a time, also where a token of that feed tells how far it came.
    fn began_at_time(&self) -> bool {
        self.0.get("since").and_then(Value::as_str).and_then(parse_time).is_some()
    }

    /// Where the feed starts, without times: nothing says when databases were updated.
    fn since_place(&self) -> Result<Since, ApiError> {
        const FORMS: &str = "a sequence, `0` or `now` in a feed of databases";
        match self.since_of(FORMS)? {
            Since::Time(_) => Err(self.wrong("since", FORMS)),
            since => Ok(since),
        }
    }

    fn until(&self) -> Result<Option<Sequence>, ApiError> {
        let seq = match self.0.get("until") {
            None => return Ok(None),
            Some(Value::String(text)) => parse_since(text).ok(),
            Some(value) => parse_since(&value.to_string()).ok(),
        };
        match seq {
            Some(Since::Seq(seq)) => Ok(Some(seq)),
            _ => Err(self.wrong("until", "a sequence, as rows have it")),
        }
    }

    /// All that is given must hold.
    fn filter(&self) -> Result<Filter, ApiError> {
        let mut filter = match (self.doc_ids()?, self.prefix()?) {
            (None, None) => Filter::ALL,
            (None, Some(prefix)) => Filter::prefix(prefix),
            (Some(ids), prefix) => {
                let starts_so = |id: &DocId| prefix.is_none_or(|prefix| id.as_str().starts_with(prefix));
                Filter::ids(ids.into_iter().filter(starts_so))
            }
        };
        filter.test = Test { selector: self.selector()?, conflicts_only: self.flag("conflicts_only", false)? };
        Ok(filter)
    }

    fn doc_ids(&self) -> Result<Option<Vec<DocId>>, ApiError> {
        let list = match self.0.get("doc_ids") {
            None => return Ok(None),
            Some(Value::String(text)) => RawValue::from_string(text.clone()),
            Some(list) => to_raw_value(list),
        };
        let list = list.map_err(|_| self.wrong("doc_ids", "a JSON list of ids"))?;
        // As many as there was room for in the request.
        doc_ids(Some(&list), usize::MAX).map(Some)
    }

    /// The one function there may be.
    fn function(&self) -> Result<Option<AskedFunction>, ApiError> {
        let (filter, view) = (self.text("filter")?, self.text("view")?);
        let query = self.text(QUERY)?;
        if query.is_some() && filter.is_none() {
            return Err(ApiError::bad_request("`query` is what a `filter` function is asked with, and none is given"));
        }
        if let Some((_, here)) = COUCHDBS_OWN.iter().find(|(name, _)| filter == Some(name)) {
            let filter = filter.unwrap_or_default();
            return Err(ApiError::bad_request(format!("`{filter}` is a filter of `_changes`; here that is {here}")));
        }
        match (filter, view) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(ApiError::bad_request("give either `filter` or `view`, not both")),
            (None, view) => AskedFunction::view(view, Names::Plain).map(Some),
            (Some(filter), None) => {
                AskedFunction::filter(filter, Names::Plain, self.query(query.unwrap_or("{}"))?).map(Some)
            }
        }
    }

    fn query(&self, text: &str) -> Result<Box<RawValue>, ApiError> {
        let is_object = json::object(text.as_bytes(), "").is_ok();
        let query = RawValue::from_string(text.to_owned()).ok().filter(|_| is_object);
        query.ok_or_else(|| self.wrong(QUERY, "a JSON object"))
    }

    fn selector(&self) -> Result<Option<Selector>, ApiError> {
        match self.0.get(SELECTOR) {
            Some(Value::String(text)) => {
                let selector = Selector::from_json(text).map_err(ApiError::from);
                selector.map(Some).map_err(|error| error.if_not_json(self.wrong(SELECTOR, "a JSON object").reason()))
            }
            _ => Ok(None),
        }
    }

    fn prefix(&self) -> Result<Option<&str>, ApiError> {
        self.text("prefix")
    }

    /// One that is text.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "text")),
        }
    }

    /// How often there is a sign of life, if it was asked for.
    ///
    /// # Errors
    /// 400 for what is no number of milliseconds, and for 0.
    pub fn heartbeat(&self) -> Result<Option<Duration>, ApiError> {
        match self.number("heartbeat") {
            Ok(Some(0)) | Err(_) => {
                Err(self.wrong("heartbeat", "a number of milliseconds of at least 1: it is never off"))
            }
            Ok(millis) => Ok(millis.map(Duration::from_millis)),
        }
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, ApiError> {
        match self.0.get(name) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(*value),
            Some(Value::String(text)) => text.parse().map_err(|_| self.wrong(name, "`true` or `false`")),
            Some(_) => Err(self.wrong(name, "`true` or `false`")),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let number = match self.0.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => match text.parse::<u64>() {
                // As much as there can be is not more than was asked for.
                Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(u64::MAX),
                number => number.ok(),
            },
            Some(value) => value.as_u64(),
        };
        number.map(Some).ok_or_else(|| self.wrong(name, "a number of at least 0"))
    }

    /// One of the choices; the first where none is given.
    fn choice(&self, name: &str, choices: [&'static str; 2]) -> Result<&'static str, ApiError> {
        let Some(given) = self.0.get(name) else { return Ok(choices[0]) };
        let chosen = choices.into_iter().find(|choice| given.as_str() == Some(choice));
        chosen.ok_or_else(|| self.wrong(name, &format!("`{}` or `{}`", choices[0], choices[1])))
    }

    fn wrong(&self, name: &str, right: &str) -> ApiError {
        let given = self.0.get(name).cloned().unwrap_or_default();
        ApiError::bad_request(format!("`{name}` is {right}, not {given}"))
    }
}
