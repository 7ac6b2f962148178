//! What the server says of itself: `/`, `/_up`, `/_all_dbs`, `/_active_tasks`, `/_uuids`, `/metrics`.

use std::cmp::Ordering;

use actix_web::HttpResponse;
use actix_web::http::{StatusCode, header};
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::db_name::DbName;
use seqtide::{Task, TaskKind};
use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::ids::new_id;
use crate::reply;

/// The level of CouchDB's interface that is followed.
const COUCHDB_LEVEL: &str = "3.5.0";

pub fn root(call: &Call) -> HttpResponse {
    let welcome = json!({
        "couchdb": "Welcome",
        "version": COUCHDB_LEVEL,
        "uuid": call.state.engine.uuid(),
        "features": [],
        "vendor": {"name": "Seqtide", "version": env!("CARGO_PKG_VERSION")},
    });
    reply::json_body(StatusCode::OK, welcome.to_string().into_bytes())
}

/// While the server is being stopped it says so, for whoever decides where clients are sent.
pub fn up(call: &Call) -> HttpResponse {
    match call.state.engine.is_draining() {
        false => reply::json_body(StatusCode::OK, b"{\"status\":\"ok\",\"seeds\":{}}".to_vec()),
        true => reply::json_body(StatusCode::SERVICE_UNAVAILABLE, b"{\"status\":\"draining\",\"seeds\":{}}".to_vec()),
    }
}

pub fn all_dbs(call: &Call) -> Answer {
    let mut out = vec![b'['];
    for (at, name) in listed(call)?.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json_string(&mut out, name.as_str());
    }
    out.push(b']');
    Ok(reply::json_body(StatusCode::OK, out))
}

/// The databases that a request asks for. Options are CouchDB's: `limit`, `skip`, `descending`, `startkey`, `endkey`,
/// `inclusive_end`, `key`.
pub fn listed(call: &Call) -> Result<Vec<DbName>, ApiError> {
    let key = |names: &[&str]| call.query.last_of(names).map(serde_json::from_str::<String>).transpose();
    let not_json = |_| ApiError::not_json();
    let only = key(&["key"]).map_err(not_json)?;
    let start = key(&["startkey", "start_key"]).map_err(not_json)?.or(only.clone());
    let end = key(&["endkey", "end_key"]).map_err(not_json)?.or(only);
    let (limit, skip) = (call.query.integer("limit")?, call.query.integer("skip")?.unwrap_or(0));
    let mut names = call.state.engine.databases();
    let is_descending = call.query.flag("descending");
    if is_descending {
        names.reverse();
    }
    let order = |name: &DbName, key: &str| match is_descending {
        false => name.as_str().cmp(key),
        true => key.cmp(name.as_str()),
    };
    let last = if call.query.get("inclusive_end") == Some("false") { Ordering::Less } else { Ordering::Equal };
    names.retain(|name| start.as_deref().is_none_or(|start| order(name, start).is_ge()));
    names.retain(|name| end.as_deref().is_none_or(|end| order(name, end) <= last));
    Ok(names.into_iter().skip(skip).take(limit.unwrap_or(usize::MAX)).collect())
}

/// Source: CouchDB, `/_active_tasks`; of the members those that mean something here.
pub async fn active_tasks(call: &Call) -> HttpResponse {
    let task = |task: Task| {
        json!({
            "type": match task.kind {
                TaskKind::Reclaiming => "database_compaction",
                TaskKind::Indexing => "indexer",
            },
            "database": task.database.as_str(),
            "started_on": task.started_secs,
            "updated_on": task.updated_secs,
            "progress": task.progress,
        })
    };
    let tasks: Vec<Value> = call.state.engine.tasks().await.into_iter().map(task).collect();
    reply::json_body(StatusCode::OK, Value::from(tasks).to_string().into_bytes())
}

pub fn uuids(call: &Call) -> Answer {
    let count = call.query.integer::<usize>("count")?.unwrap_or(1);
    let count_max = call.state.config.limits.uuids_max;
    if count > count_max {
        return Err(ApiError::bad_request(format!("count parameter too large: at most {count_max}")));
    }
    let uuids: Vec<String> = (0..count).map(|_| new_id()).collect();
    let body = json!({ "uuids": uuids }).to_string();
    let mut answer = reply::json(StatusCode::OK);
    answer.insert_header((header::CACHE_CONTROL, "no-cache"));
    Ok(answer.body(body + "\n"))
}

pub async fn metrics(call: &Call) -> HttpResponse {
    let text = call.state.metrics_text().await;
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)
}
