//! Which request goes where, by what its path names and its method.

mod bulk_docs;
mod bulk_get;
mod changes;
mod database;
mod dbs_info;
mod document;
pub(crate) mod edit;
mod feed;
mod feed_index;
mod feeds;
mod idempotency;
pub(crate) mod listing;
mod local;
mod not_built;
mod open_revs;
mod purge;
mod resource;
mod revs;
mod server;
mod subscriptions;
pub(crate) mod update;
mod updates;

pub(crate) use resource::Resource;

use actix_web::http::{Method, StatusCode, header};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use seqtide::storage::model::db_name::DbName;
use seqtide::storage::model::doc_id::{DocId, LocalId};

use crate::accept::wants_websocket;
use crate::call::{Answer, Call};
use crate::call_state::CallState;
use crate::dashboard;
use crate::error::ApiError;
use crate::query::Query;
use crate::state::State;

/// The methods of what can only be read.
const READ: &str = "GET,HEAD";

/// All methods.
const METHODS: &str = "GET,HEAD,POST,PUT,DELETE,COPY,OPTIONS";

/// Answers any request.
pub(crate) async fn dispatch(req: HttpRequest, payload: Payload, state: Data<State>) -> Answer {
    if req.method() == Method::OPTIONS {
        // What a browser asks beforehand is answered before it comes here.
        return Ok(HttpResponse::NoContent().insert_header((header::ALLOW, METHODS)).finish());
    }
    crate::intake::check(&req)?;
    let resource = Resource::of(req.uri().path())?;
    if wants_websocket(&req) && !resource.has_websocket() {
        return Err(ApiError::bad_request("no WebSocket is here: one is opened at /{db}/_feed, /_feed or /_feed/many"));
    }
    let query = Query::parse(req.query_string())?;
    let method = req.method().clone();
    let call = Call { req, payload: Some(payload), query, state: CallState::new(state) };
    match resource.written_database(&method) {
        Some(db) => idempotency::once(call, db, async |call| route(call, &method, &resource).await).await,
        None => route(call, &method, &resource).await,
    }
}

/// Each endpoint's work is a box of its own: a future is as large as the largest it may wait for, and is copied
/// wherever it is passed on. The allocator is quickest with boxes of up to a kilobyte.
async fn route(call: Call, method: &Method, resource: &Resource) -> Answer {
    match resource {
        Resource::Root => Ok(server::root(&call.only(READ)?)),
        Resource::Dashboard(path) => dashboard::answer(&call.only(READ)?, path),
        Resource::Server(name) => Box::pin(on_server(call, method, name)).await,
        Resource::Feed(id) => Box::pin(feeds::one(&call, method, id)).await,
        Resource::Connection(name) => Box::pin(subscriptions::change(call.only("POST")?, name)).await,
        Resource::Database(db) => Box::pin(on_database(call, method, db)).await,
        Resource::Endpoint { db, name } => Box::pin(on_endpoint(call, method, db, name)).await,
        Resource::Document { db, id } => Box::pin(on_document(call, method, db, id)).await,
        Resource::DesignEscaped { db, id } if matches!(*method, Method::GET | Method::HEAD) => {
            Ok(redirect_to_design(&call, db, id))
        }
        // A redirected write would come back as a GET from most clients.
        Resource::DesignEscaped { db, id } => Box::pin(on_document(call, method, db, id)).await,
        Resource::Attachment { db, id } => Box::pin(on_attachment(call, method, db, id)).await,
    }
}

async fn on_server(call: Call, method: &Method, name: &str) -> Answer {
    match name {
        "_active_tasks" => Ok(server::active_tasks(&call.only(READ)?).await),
        "_all_dbs" => server::all_dbs(&call.only(READ)?),
        "_db_updates" => updates::db_updates(&call.only(READ)?).await,
        "_dbs_info" => match *method {
            Method::POST => dbs_info::of_keys(call).await,
            _ => dbs_info::of_all(&call.only("GET,HEAD,POST")?),
        },
        "_feed" => updates::feed(call.only("GET,POST")?).await,
        subscriptions::PATH => subscriptions::open(call.only("GET,POST")?).await,
        "_feeds" => feeds::list(&call.only(READ)?).await,
        // To CouchDB's replicator that there are no sessions is 404: it goes on with the name and password of its URL.
        "_session" => Err(ApiError::not_found("there are no sessions, since there are no users")),
        "_up" => Ok(server::up(&call.only(READ)?)),
        "_uuids" => server::uuids(&call.only(READ)?),
        "metrics" => Ok(server::metrics(&call.only(READ)?).await),
        name if not_built::is_of_server(name) => Err(ApiError::not_implemented("requests to this endpoint")),
        name => Err(unknown(method, name)),
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
    match name {
        "_bulk_docs" => bulk_docs::bulk_docs(call.only("POST")?, db).await,
        "_bulk_get" => bulk_get::bulk_get(call.only("POST")?, db).await,
        "_changes" => changes::changes(call.only("GET,POST,HEAD")?, db).await,
        "_compact" => database::compact(&call.only("POST")?, db).await,
        "_ensure_full_commit" => database::ensure_full_commit(&call.only("POST")?, db).await,
        "_feed" => feed::feed(call.only("GET,POST")?, db).await,
        "_feed_index" => match *method {
            Method::PUT => feed_index::put(call, db).await,
            Method::DELETE => feed_index::delete(&call, db).await,
            _ => feed_index::get(&call.only("DELETE,GET,HEAD,PUT")?, db).await,
        },
        "_missing_revs" => revs::missing_revs(call.only("POST")?, db).await,
        "_purge" => purge::purge(call.only("POST")?, db).await,
        "_revs_diff" => revs::revs_diff(call.only("POST")?, db).await,
        "_revs_limit" => match *method {
            Method::PUT => database::set_revs_limit(call, db).await,
            _ => database::revs_limit(&call.only("GET,HEAD,PUT")?, db).await,
        },
        subscriptions::PATH => {
            let reason = "many subscriptions are followed at the server's root, /_feed/many: each names its database";
            Err(ApiError::not_found(reason))
        }
        name if listing::is_listing(name) => listing::answer(call, db, name).await,
        name if not_built::is_of_database(name) || not_built::is_of_design(name) => {
            call.state.database(db)?;
            Err(ApiError::not_implemented("requests to this endpoint"))
        }
        name => {
            call.state.database(db)?;
            // What would be written is a document, and its id is none.
            if !matches!(*method, Method::GET | Method::HEAD | Method::POST) {
                DocId::parse(name)?;
            }
            Err(ApiError::not_found("missing"))
        }
    }
}

/// What few requests need is a box again, so that the box of a `GET` or a `PUT` is smaller.
async fn on_document(call: Call, method: &Method, db: &str, id: &str) -> Answer {
    let local = LocalId::parse(id).transpose()?;
    if let Some(id) = local {
        return Box::pin(on_local(call, method, db, id)).await;
    }
    match *method {
        Method::GET | Method::HEAD => document::get(&call, db, id).await,
        Method::PUT => update::put(call, db, id).await,
        Method::DELETE => Box::pin(update::delete(&call, db, id)).await,
        _ if method.as_str() == "COPY" => Box::pin(update::copy(&call, db, id)).await,
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

async fn on_attachment(call: Call, method: &Method, db: &str, id: &str) -> Answer {
    call.state.database(db)?;
    match *method {
        Method::GET | Method::HEAD => {
            // Of a document that cannot be read no attachment can.
            on_document(call, method, db, id).await?;
            Err(ApiError::not_found("Document is missing attachment"))
        }
        _ if LocalId::parse(id).is_some() => Err(local::no_attachments()),
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

    /// `MI_SMALL_SIZE_MAX` of `mimalloc`: up to here it has free blocks of each size at hand.
    const AT_HAND_BYTES: usize = 1024;

    #[test]
    fn what_a_write_waits_in_is_small() {
        fn bytes<A, B, C, D, F>(_: impl FnOnce(A, B, C, D) -> F) -> usize {
            size_of::<F>()
        }
        assert!(bytes(on_document) <= AT_HAND_BYTES, "{}", bytes(on_document));
        let dispatched = |req, payload, state, ()| dispatch(req, payload, state);
        // The framework adds what it hands over.
        assert!(bytes(dispatched) <= AT_HAND_BYTES * 3 / 4, "{}", bytes(dispatched));
    }
}
