//! Which request goes where: one table. Paths are taken apart here, because an escaped slash belongs to a name.

mod bulk_docs;
mod bulk_get;
pub(crate) mod changes;
mod database;
mod dbs_info;
mod design;
mod document;
pub(crate) mod feed;
mod feed_index;
mod feeds;
mod function;
mod idempotency;
pub(crate) mod listing;
mod local;
mod open_revs;
mod purge;
mod revs;
mod server;
mod subscriptions;
mod update;
mod updates;

pub(crate) use server::new_id;

use std::borrow::Cow;

use actix_web::http::{Method, StatusCode, header};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use seqtide::storage::model::db_name::DbName;
use seqtide::storage::model::doc_id::{DocId, LocalId};

use crate::call_state::CallState;
use crate::dashboard;
use crate::error::ApiError;
use crate::query::{Query, decode};
use crate::state::State;
use feed::header_has;

/// A request, its path and query decoded.
pub(crate) struct Call {
    pub req: HttpRequest,
    pub payload: Payload,
    pub query: Query,
    pub state: CallState,
}

impl Call {
    /// Reads the body, of at most the configured size.
    async fn body(self) -> Result<(HttpRequest, Query, CallState, bytes::Bytes), ApiError> {
        let Call { req, payload, query, state } = self;
        let body = match state.body() {
            Some(body) => body,
            None => crate::request::read_body(&req, payload, state.config.limits.request_bytes_max).await?,
        };
        Ok((req, query, state, body))
    }
}

type Answer = Result<HttpResponse, ApiError>;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    Server(String),
    /// A file of the dashboard, by its path below it.
    Dashboard(String),
    /// An open feed, by its id.
    Feed(String),
    Database(String),
    Endpoint {
        db: String,
        name: String,
    },
    Document {
        db: String,
        id: String,
    },
    /// A design document with its slash escaped: to be read elsewhere.
    DesignEscaped {
        db: String,
        id: String,
    },
    Attachment {
        db: String,
        id: String,
    },
}

/// Endpoints of a database that write to it, by whatever method does not read.
const WRITES: [&str; 4] = ["_bulk_docs", "_feed_index", "_purge", "_revs_limit"];

impl Place {
    /// Whether a WebSocket may be opened there.
    fn has_websocket(&self) -> bool {
        match self {
            Place::Server(name) => name == "_feed" || name == subscriptions::PATH,
            Place::Endpoint { name, .. } => name == "_feed",
            _ => false,
        }
    }

    /// The database a request writes to, if it writes to one that is there.
    fn written_database(&self, method: &Method) -> Option<&str> {
        match self {
            _ if matches!(*method, Method::GET | Method::HEAD) => None,
            Place::Database(db) => (*method == Method::POST).then_some(db),
            Place::Endpoint { db, name } => WRITES.contains(&name.as_str()).then_some(db),
            Place::Document { db, .. } | Place::DesignEscaped { db, .. } | Place::Attachment { db, .. } => Some(db),
            Place::Root | Place::Server(_) | Place::Dashboard(_) | Place::Feed(_) => None,
        }
    }
}

/// Takes a path apart. Slashes at its end, and several for one, do not matter.
///
/// Source: CouchDB `chttpd:handle_request_int`, which splits it so.
pub(crate) fn place(path: &str) -> Result<Place, ApiError> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let segments = segments.map(decode_segment).collect::<Result<Vec<_>, _>>()?;
    let segments: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
    let owned = |text: &str| text.to_owned();
    Ok(match segments[..] {
        [] => Place::Root,
        [name, ..] if SERVER_NOT_BUILT.contains(&name) => Place::Server(owned(name)),
        ["_dashboard", ..] => Place::Dashboard(segments[1..].join("/")),
        ["metrics"] => Place::Server(owned("metrics")),
        [name] if name.starts_with('_') && !is_system_database(name) => Place::Server(owned(name)),
        ["_feed", name] => Place::Server(format!("_feed/{name}")),
        [db] => Place::Database(owned(db)),
        ["_feeds", id] => Place::Feed(owned(id)),
        [db, id] if id.starts_with("_design/") => Place::DesignEscaped { db: owned(db), id: owned(id) },
        [db, name] if name.starts_with('_') && !name.contains('/') => {
            Place::Endpoint { db: owned(db), name: owned(name) }
        }
        [db, id] => Place::Document { db: owned(db), id: owned(id) },
        [db, kind @ ("_design" | "_local"), name] => Place::Document { db: owned(db), id: format!("{kind}/{name}") },
        [db, "_design", _, endpoint, ..] if DESIGN_NOT_BUILT.contains(&endpoint) => {
            Place::Endpoint { db: owned(db), name: owned(endpoint) }
        }
        // Whatever else it is called; source for design documents: CouchDB `chttpd_db:bad_action_req`.
        [db, kind @ ("_design" | "_local"), name, ..] => {
            Place::Attachment { db: owned(db), id: format!("{kind}/{name}") }
        }
        [db, listing, "queries"] if listing::is_listing(listing) => {
            Place::Endpoint { db: owned(db), name: format!("{listing}/queries") }
        }
        [db, "_feed", "many"] => Place::Endpoint { db: owned(db), name: owned(subscriptions::PATH) },
        [db, name, ..] if NOT_BUILT.contains(&name) => Place::Endpoint { db: owned(db), name: owned(name) },
        [db, "_compact", _] => Place::Endpoint { db: owned(db), name: owned("_compact/indexes") },
        [db, id, ..] => Place::Attachment { db: owned(db), id: owned(id) },
    })
}

fn decode_segment(segment: &str) -> Result<Cow<'_, str>, ApiError> {
    let reason = "Document id must be valid UTF-8";
    decode(segment).map_err(|_| ApiError::new(StatusCode::BAD_REQUEST, "illegal_docid", reason))
}

fn is_system_database(name: &str) -> bool {
    matches!(name, "_users" | "_replicator" | "_global_changes")
}

/// Endpoints of CouchDB's databases that are not built yet.
const NOT_BUILT: [&str; 11] = [
    "_auto_purge",
    "_compact/indexes",
    "_explain",
    "_find",
    "_index",
    "_partition",
    "_purged_infos_limit",
    "_security",
    "_shards",
    "_sync_shards",
    "_view_cleanup",
];

/// Those of its design documents, of which there are no others.
const DESIGN_NOT_BUILT: [&str; 10] =
    ["_info", "_list", "_nouveau", "_nouveau_info", "_rewrite", "_search", "_search_info", "_show", "_update", "_view"];

/// Those of its server, likewise, with all below them.
const SERVER_NOT_BUILT: [&str; 6] = ["_cluster_setup", "_membership", "_node", "_replicate", "_reshard", "_scheduler"];

const METHODS: &str = "GET,HEAD,POST,PUT,DELETE,COPY,OPTIONS";

/// Answers any request.
pub(crate) async fn dispatch(req: HttpRequest, payload: Payload, state: Data<State>) -> Answer {
    if req.method() == Method::OPTIONS {
        // What a browser asks beforehand is answered before it comes here.
        return Ok(HttpResponse::NoContent().insert_header((header::ALLOW, METHODS)).finish());
    }
    crate::intake::check(&req)?;
    let place = place(req.uri().path())?;
    if header_has(&req, header::UPGRADE, "websocket") && !place.has_websocket() {
        return Err(ApiError::bad_request("no WebSocket is here: one is opened at /{db}/_feed, /_feed or /_feed/many"));
    }
    let query = Query::parse(req.query_string())?;
    let method = req.method().clone();
    let call = Call { req, payload, query, state: CallState::new(state) };
    match place.written_database(&method) {
        Some(db) => idempotency::once(call, db, async |call| route(call, &method, &place).await).await,
        None => route(call, &method, &place).await,
    }
}

/// Each endpoint's work is a box of its own: a future is as large as the largest it may wait for, and is copied wherever
/// it is passed on.
async fn route(call: Call, method: &Method, place: &Place) -> Answer {
    match place {
        Place::Root => server::root(&call),
        Place::Dashboard(path) => dashboard::answer(&call, method, path),
        Place::Server(name) => Box::pin(on_server(call, method, name)).await,
        Place::Feed(id) => Box::pin(feeds::one(&call, method, id)).await,
        Place::Database(db) => Box::pin(on_database(call, method, db)).await,
        Place::Endpoint { db, name } => Box::pin(on_endpoint(call, method, db, name)).await,
        Place::Document { db, id } => Box::pin(on_document(call, method, db, id)).await,
        Place::DesignEscaped { db, id } if matches!(*method, Method::GET | Method::HEAD) => {
            Ok(redirect_to_design(&call, db, id))
        }
        // A redirected write would come back as a GET from most clients.
        Place::DesignEscaped { db, id } => Box::pin(on_document(call, method, db, id)).await,
        Place::Attachment { db, .. } => on_attachment(&call, method, db),
    }
}

async fn on_server(call: Call, method: &Method, name: &str) -> Answer {
    let read = matches!(*method, Method::GET | Method::HEAD);
    match (name, method.clone()) {
        (name, _) if SERVER_NOT_BUILT.contains(&name) => Err(ApiError::not_implemented("requests to this endpoint")),
        // To CouchDB's replicator that there are no sessions is 404: it goes on with the name and password of its URL.
        ("_session", _) => Err(ApiError::not_found("there are no sessions, since there are no users")),
        ("_dbs_info", Method::POST) => dbs_info::of_keys(call).await,
        ("_dbs_info", _) if !read => Err(ApiError::method_not_allowed("GET,HEAD,POST")),
        ("_feed", Method::GET | Method::POST) => updates::feed(call).await,
        (subscriptions::PATH, Method::GET | Method::POST) => subscriptions::open(call).await,
        ("_feed" | subscriptions::PATH, _) => Err(ApiError::method_not_allowed("GET,POST")),
        ("_active_tasks" | "_all_dbs" | "_db_updates" | "_feeds" | "_up" | "_uuids" | "metrics", _) if !read => {
            Err(ApiError::method_not_allowed("GET,HEAD"))
        }
        ("_active_tasks", _) => Ok(server::active_tasks(&call).await),
        ("_all_dbs", _) => server::all_dbs(&call),
        ("_db_updates", _) => updates::db_updates(&call).await,
        ("_dbs_info", _) => dbs_info::of_all(&call),
        ("_feeds", _) => feeds::list(&call).await,
        ("_up", _) => Ok(server::up(&call)),
        ("_uuids", _) => server::uuids(&call),
        ("metrics", _) => Ok(server::metrics(&call).await),
        (name, method) => match name.strip_prefix("_feed/") {
            Some(connection) if method == Method::POST => subscriptions::change(call, connection).await,
            Some(_) => Err(ApiError::method_not_allowed("POST")),
            None => Err(unknown(&method, name)),
        },
    }
}

/// What is no endpoint of the server might be meant as a database.
fn unknown(method: &Method, name: &str) -> ApiError {
    match DbName::parse(name) {
        Err(error) if *method == Method::PUT => error.into(),
        _ => ApiError::no_database(),
    }
}

async fn on_database(call: Call, method: &Method, db: &str) -> Answer {
    match *method {
        Method::GET | Method::HEAD => database::info(&call, db).await,
        Method::PUT => database::create(&call, db).await,
        Method::DELETE => database::delete(&call, db).await,
        Method::POST => update::post(call, db).await,
        _ => Err(ApiError::method_not_allowed("DELETE,GET,HEAD,POST")),
    }
}

async fn on_endpoint(call: Call, method: &Method, db: &str, name: &str) -> Answer {
    match (name, method.clone()) {
        ("_changes", Method::GET | Method::HEAD | Method::POST) => changes::changes(call, db).await,
        ("_changes", _) => Err(ApiError::method_not_allowed("GET,POST,HEAD")),
        ("_feed", Method::GET | Method::POST) => feed::feed(call, db).await,
        ("_feed", _) => Err(ApiError::method_not_allowed("GET,POST")),
        (subscriptions::PATH, _) => {
            let reason = "many subscriptions are followed at the server's root, /_feed/many: each names its database";
            Err(ApiError::not_found(reason))
        }
        (name, _) if listing::is_listing(name) => listing::answer(call, db, name).await,
        ("_bulk_docs", Method::POST) => bulk_docs::bulk_docs(call, db).await,
        ("_bulk_get", Method::POST) => bulk_get::bulk_get(call, db).await,
        ("_revs_diff", Method::POST) => revs::revs_diff(call, db).await,
        ("_missing_revs", Method::POST) => revs::missing_revs(call, db).await,
        ("_revs_limit", Method::GET | Method::HEAD) => database::revs_limit(&call, db).await,
        ("_revs_limit", Method::PUT) => database::set_revs_limit(call, db).await,
        ("_revs_limit", _) => Err(ApiError::method_not_allowed("GET,HEAD,PUT")),
        ("_feed_index", Method::GET | Method::HEAD) => feed_index::get(&call, db).await,
        ("_feed_index", Method::PUT) => feed_index::put(call, db).await,
        ("_feed_index", Method::DELETE) => feed_index::delete(&call, db).await,
        ("_feed_index", _) => Err(ApiError::method_not_allowed("DELETE,GET,HEAD,PUT")),
        ("_ensure_full_commit", Method::POST) => database::ensure_full_commit(&call, db).await,
        ("_compact", Method::POST) => database::compact(&call, db).await,
        ("_purge", Method::POST) => purge::purge(call, db).await,
        (
            "_bulk_docs" | "_bulk_get" | "_revs_diff" | "_missing_revs" | "_ensure_full_commit" | "_compact" | "_purge",
            _,
        ) => Err(ApiError::method_not_allowed("POST")),
        (name, _) if NOT_BUILT.contains(&name) || DESIGN_NOT_BUILT.contains(&name) => {
            call.state.database(db)?;
            Err(ApiError::not_implemented("requests to this endpoint"))
        }
        (_, Method::GET | Method::HEAD | Method::POST) => {
            call.state.database(db)?;
            Err(ApiError::not_found("missing"))
        }
        // What would be written is a document, and its id is none.
        _ => {
            call.state.database(db)?;
            DocId::parse(name)?;
            Err(ApiError::not_found("missing"))
        }
    }
}

async fn on_document(call: Call, method: &Method, db: &str, id: &str) -> Answer {
    if let Some(id) = LocalId::parse(id) {
        return on_local(call, method, db, id?).await;
    }
    match *method {
        Method::GET | Method::HEAD => document::get(&call, db, id).await,
        Method::PUT => update::put(call, db, id).await,
        Method::DELETE => update::delete(&call, db, id).await,
        _ if method.as_str() == "COPY" => update::copy(&call, db, id).await,
        _ => Err(ApiError::method_not_allowed("DELETE,GET,HEAD,PUT,COPY")),
    }
}

async fn on_local(call: Call, method: &Method, db: &str, id: LocalId) -> Answer {
    match *method {
        Method::GET | Method::HEAD => local::get(&call, db, id).await,
        Method::PUT => local::put(call, db, id).await,
        Method::DELETE => local::delete(&call, db, id).await,
        _ => Err(ApiError::method_not_allowed("DELETE,GET,HEAD,PUT")),
    }
}

fn on_attachment(call: &Call, method: &Method, db: &str) -> Answer {
    call.state.database(db)?;
    match *method {
        Method::GET | Method::HEAD => Err(ApiError::not_found("Document is missing attachment")),
        _ => Err(ApiError::not_implemented("attachments")),
    }
}

/// Source: CouchDB `chttpd_db:handle_design_req`: `/db/_design%2Fx` is elsewhere.
fn redirect_to_design(call: &Call, db: &str, id: &str) -> HttpResponse {
    let name = id.strip_prefix("_design/").unwrap_or(id);
    let (header, mut url) = crate::reply::location(&call.req, &[db, "_design", name]);
    if !call.req.query_string().is_empty() {
        url = format!("{url}?{}", call.req.query_string());
    }
    HttpResponse::build(StatusCode::MOVED_PERMANENTLY)
        .insert_header((header, url))
        .insert_header((header::CACHE_CONTROL, crate::reply::MUST_REVALIDATE))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_places() {
        let document = |id: &str| Place::Document { db: "db".into(), id: id.into() };
        for (path, expected) in [
            ("/", Place::Root),
            ("/_up", Place::Server("_up".into())),
            ("/metrics", Place::Server("metrics".into())),
            ("/_dashboard/", Place::Dashboard(String::new())),
            ("/_dashboard/js/app.js", Place::Dashboard("js/app.js".into())),
            ("/_users", Place::Database("_users".into())),
            ("/_feed/many", Place::Server("_feed/many".into())),
            ("/_feeds", Place::Server("_feeds".into())),
            ("/_feeds/7", Place::Feed("7".into())),
            ("/db", Place::Database("db".into())),
            ("/db/", Place::Database("db".into())),
            ("//db//", Place::Database("db".into())),
            ("/db//a", document("a")),
            ("/db//_design//x", document("_design/x")),
            ("/db/_partition/p/_all_docs", Place::Endpoint { db: "db".into(), name: "_partition".into() }),
            ("/db/_compact/d", Place::Endpoint { db: "db".into(), name: "_compact/indexes".into() }),
            ("/a%2Fb", Place::Database("a/b".into())),
            ("/db/_changes", Place::Endpoint { db: "db".into(), name: "_changes".into() }),
            ("/db/a", document("a")),
            ("/db/_all_docs/queries", Place::Endpoint { db: "db".into(), name: "_all_docs/queries".into() }),
            ("/db/a%2Fb%20c+d", document("a/b c d")),
            ("/db/_design/x", document("_design/x")),
            ("/db/_design%2Fx", Place::DesignEscaped { db: "db".into(), id: "_design/x".into() }),
            ("/db/_local/x", document("_local/x")),
            ("/db/_local%2Fx", document("_local/x")),
            ("/db/a/b", Place::Attachment { db: "db".into(), id: "a".into() }),
            ("/db/_design/x/_view/y", Place::Endpoint { db: "db".into(), name: "_view".into() }),
            ("/db/_design/x/_purge", Place::Attachment { db: "db".into(), id: "_design/x".into() }),
            ("/db/_design/x/_feed", Place::Attachment { db: "db".into(), id: "_design/x".into() }),
            ("/_node/_local/_config", Place::Server("_node".into())),
            ("/_session", Place::Server("_session".into())),
            ("/db/_design/x/y/z", Place::Attachment { db: "db".into(), id: "_design/x".into() }),
        ] {
            assert_eq!(place(path).unwrap(), expected, "{path}");
        }
        assert!(place("/db/%ff").is_err());
    }
}
