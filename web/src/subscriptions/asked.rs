//! What clients ask for: subscriptions when they open a connection, and changes to them later.

use std::net::SocketAddr;
use std::time::Duration;

use seqtide::{Database, Engine, UpdatesOptions};
use serde_json::value::RawValue;

use super::any_feed::AnyFeed;
use super::connections::{Handle, Lookout};
use super::resume_id::{ALL_DATABASES, Progress, Resume, Subject};
use crate::error::ApiError;
use crate::feed_options::native::{AskedDocuments, Followed, Options};
use crate::json::{Members, elements};
use crate::state::State;
use crate::wire::form::Form;

/// Longest name of a subscription, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The options of a database's feed that are the connection's here.
const OF_CONNECTION: [&str; 2] = ["heartbeat", "last-event-id"];

/// What says which subscription it is, and of what.
const OF_NAME: [&str; 2] = ["subscribe", "db"];

/// What says where a subscription begins: an id knows better where it stands, and a client may ask with its latest
/// `since`.
const OF_BEGINNING: [&str; 2] = ["on_rewind", "since"];

/// What all subscriptions of one client have in common.
pub struct Client<'a> {
    /// What the server has.
    pub state: &'a State,
    /// Who reads them.
    pub reader: Reader,
}

/// Who reads a connection, and how.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// How its messages look.
    pub form: Form,
    /// Its heartbeat, which is that of each of its feeds.
    pub heartbeat: Duration,
    /// The other end of it.
    pub address: Option<SocketAddr>,
}

/// A subscription that is asked for.
pub struct Asked {
    /// Its name, the client's own.
    pub name: String,
    /// Its database; `None` of one that follows all databases of the server.
    pub db: Option<String>,
    /// All of it as it was given.
    pub given: Box<RawValue>,
    /// What it is asked for, wherever it begins, as text that is equal where that is.
    asks_for: String,
    options: Options,
}

/// What a client wants changed.
pub enum Amendment {
    /// A subscription more.
    Subscribe(Asked),
    /// This one less.
    Unsubscribe(String),
}

impl Asked {
    /// Reads `{"subscribe":NAME,"db":DATABASE,…options}`; a database of `null` is all of them.
    ///
    /// # Errors
    /// 400 for what it may not be.
    pub fn read(given: &RawValue) -> Result<Asked, ApiError> {
        let members = Members::of_options(given.get().as_bytes(), "a subscription is a JSON object")?;
        let is_of_all = members.get("db").is_some_and(|db| db.get() == "null");
        let of_feed = if is_of_all { Engine::KNOWN } else { Database::KNOWN };
        let of_feed = of_feed.iter().filter(|name| !OF_CONNECTION.contains(name));
        let known: Vec<&str> = of_feed.copied().chain(OF_NAME).collect();
        let mut options = Options::default();
        options.take_body(given.get().as_bytes(), &known)?;
        let name = options.text("subscribe")?.unwrap_or_default().to_owned();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let reason = format!("`subscribe` is the subscription's name, of 1 to {NAME_BYTES_MAX} bytes");
            return Err(ApiError::bad_request(reason));
        }
        let db = if is_of_all { None } else { Some(options.text("db")?.unwrap_or(&name).to_owned()) };
        let asks_for = options.without(&[&OF_BEGINNING[..], &OF_NAME].concat());
        Ok(Asked { name, db, given: given.to_owned(), asks_for, options })
    }

    /// It, as ids know it.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            name: &self.name,
            db: self.db.as_deref().unwrap_or(ALL_DATABASES),
            options: &self.asks_for,
            has_limit: self.options.has("limit"),
        }
    }

    /// Reads the options of one that begins, or goes on.
    ///
    /// # Errors
    /// 400 for what they may not be.
    pub fn checked(mut self, client: &Client<'_>, resume: Resume) -> Result<Checked, ApiError> {
        if let Resume::Behind(Progress { position, rows_left }) = resume {
            self.options.go_on_behind(&position.to_integer().to_string());
            if let Some(rows_left) = rows_left {
                self.options.limit_to(rows_left);
            }
        }
        let (kind, heartbeat) = (client.reader.form.kind(), client.reader.heartbeat);
        let feed = match &self.db {
            Some(db) => AskedFeed::Documents(db.clone(), Database::parse(&self.options, kind, heartbeat)?),
            None => AskedFeed::Databases(Engine::parse(&self.options, kind, heartbeat)?),
        };
        Ok(Checked { name: self.name, db: self.db, given: self.given, feed })
    }
}

/// A subscription that may be had if its database has it.
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Its database; `None` of one that follows all databases of the server.
    pub db: Option<String>,
    /// All of it as it was given.
    pub given: Box<RawValue>,
    feed: AskedFeed,
}

/// What its feed is asked for.
enum AskedFeed {
    /// Of this database's documents.
    Documents(String, AskedDocuments),
    /// Of the server's databases.
    Databases(UpdatesOptions),
}

impl Checked {
    /// Opens its feed for this connection.
    ///
    /// # Errors
    /// As a request to the database's `_feed`, or the server's: 404, 410, 503.
    pub async fn open(self, client: &Client<'_>, handle: &Handle) -> Result<Opened, ApiError> {
        let Checked { name, db, given, feed } = self;
        let feed = match feed {
            AskedFeed::Documents(db, asked) => AnyFeed::Documents(client.state.database(&db)?.open(asked).await?),
            AskedFeed::Databases(asked) => AnyFeed::Databases(client.state.engine.open(asked).await?),
        };
        feed.read_by(client.reader.address);
        let lookout = handle.look_out_for(&feed);
        Ok(Opened { name, db, given, feed, lookout })
    }
}

/// A subscription.
pub struct Opened {
    /// Its name.
    pub name: String,
    /// Its database; `None` of one that follows all databases of the server.
    pub db: Option<String>,
    /// All of it as it was given.
    pub given: Box<RawValue>,
    /// What it gives.
    pub feed: AnyFeed,
    /// For the end of that.
    pub lookout: Lookout,
}

/// Reads one object, or a list of at most so many.
///
/// # Errors
/// 400 for what is no JSON, 413 for more.
pub fn one_or_more(json: &str, most: usize) -> Result<Vec<Box<RawValue>>, ApiError> {
    let no_json = |_| ApiError::bad_request("a subscription is a JSON object, and several are a list of them");
    let whole: Box<RawValue> = serde_json::from_str(json).map_err(no_json)?;
    if !whole.get().starts_with('[') {
        return Ok(vec![whole]);
    }
    let too_many = || ApiError::too_large(format!("too many of them at once: at most {most} are accepted"));
    elements(&whole, most, ApiError::not_json, too_many)
}

/// The name that a change is about, where it has one, whatever else is wrong with it.
pub fn name_in(given: &RawValue) -> Option<String> {
    let members = Members::of_options(given.get().as_bytes(), "").ok()?;
    let name = members.get("subscribe").or_else(|| members.get("unsubscribe"))?;
    serde_json::from_str(name.get()).ok().filter(|name: &String| name.len() <= NAME_BYTES_MAX)
}

/// Reads `{"subscribe":NAME,…}` or `{"unsubscribe":NAME}`.
///
/// # Errors
/// 400 for anything else.
pub fn amendment(given: &RawValue) -> Result<Amendment, ApiError> {
    let members = Members::of_options(given.get().as_bytes(), "a change of subscriptions is a JSON object")?;
    let Some(name) = members.get("unsubscribe") else { return Asked::read(given).map(Amendment::Subscribe) };
    match serde_json::from_str(name.get()) {
        Ok(name) if members.into_iter().count() == 1 => Ok(Amendment::Unsubscribe(name)),
        _ => Err(ApiError::bad_request("`unsubscribe` is the name of a subscription, and stands alone")),
    }
}
