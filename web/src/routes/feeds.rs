//! The feeds that are open: `/_feeds` lists them, `/_feeds/{id}` shows one or ends it.

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode, header};
use seqtide::storage::model::db_name::DbName;
use seqtide::{FeedId, FeedInfo};
use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::{known_feeds, reply};

/// Feeds in one answer, where the request names no number.
const LISTED: usize = 100;
/// Most feeds in one answer.
const LISTED_MAX: usize = 1000;

/// Options: `limit`, and `after`, the id of the last feed that is known already.
pub async fn list(call: &Call) -> Answer {
    let limit = call.query.integer("limit")?.unwrap_or(LISTED);
    if limit > LISTED_MAX {
        return Err(ApiError::bad_request(format!("`limit` is at most {LISTED_MAX}; `after` an id lists the next")));
    }
    let after = call.query.integer("after")?.unwrap_or(0);
    let known = known_feeds::list(&call.state.engine, &call.state.workers, after, limit).await;
    let rows = call.state.engine.rows_behind(&known.feeds).await;
    let feeds: Vec<Value> = known.feeds.iter().zip(rows).map(|(feed, rows)| shown(feed, rows)).collect();
    Ok(fresh(&json!({ "open": known.open, "feeds": feeds })))
}

pub async fn one(call: &Call, method: &Method, id: &str) -> Answer {
    let no_feed = || ApiError::not_found("there is no such feed, or it has ended");
    let id: FeedId = id.parse().map_err(|_| no_feed())?;
    let (engine, workers) = (&call.state.engine, &call.state.workers);
    match *method {
        Method::GET | Method::HEAD => {
            let feed = known_feeds::find(engine, workers, id).await.ok_or_else(no_feed)?;
            let rows = engine.rows_behind(std::slice::from_ref(&feed)).await;
            Ok(fresh(&shown(&feed, rows.first().copied().unwrap_or(0))))
        }
        Method::DELETE if known_feeds::end(engine, workers, id).await => Ok(reply::ok(StatusCode::OK)),
        Method::DELETE => Err(no_feed()),
        _ => Err(ApiError::method_not_allowed("DELETE,GET,HEAD")),
    }
}

/// A feed as JSON, which lacks so many rows.
fn shown(feed: &FeedInfo, rows_behind: u64) -> Value {
    let FeedInfo { record, about, client, state, position, behind_since } = feed;
    let seconds = behind_since.map_or(0.0, |since| since.elapsed().as_secs_f64());
    // A number or a text, whichever the database's sequences are.
    let seq: Value = serde_json::from_str(&about.seq_format.json(*position).to_string()).unwrap_or_default();
    json!({
        "id": record.id,
        "kind": about.kind.name(),
        "database": about.database.as_ref().map(DbName::as_str),
        "client": client.map(|client| client.to_string()),
        "filter": about.filter,
        "state": state.name(),
        "seq": seq,
        "lag": { "rows": rows_behind, "seconds": (seconds * 1000.0).round() / 1000.0 },
        "sent": { "rows": record.rows, "bytes": record.bytes },
        "opened_on": record.opened_secs,
    })
}

/// An answer that is another one the next time.
fn fresh(value: &Value) -> HttpResponse {
    let mut answer = reply::json(StatusCode::OK);
    answer.insert_header((header::CACHE_CONTROL, "no-cache"));
    answer.body(format!("{value}\n"))
}
