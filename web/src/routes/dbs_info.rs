//! `/_dbs_info`: what `GET /{db}` says, of many databases at once.

use std::convert::Infallible;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use seqtide::storage::json::write_json_string;
use seqtide::{Engine, Error};

use super::database::info_json;
use super::server;
use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::json::Members;
use crate::state::State;
use crate::{json, reply, request};

/// Most databases asked at once.
const AT_ONCE: usize = 4;

/// Options are those of `/_all_dbs`.
pub fn of_all(call: &Call) -> Answer {
    let names = server::listed(call)?.iter().map(ToString::to_string).collect();
    Ok(infos(&call.req, &call.state, names))
}

/// Source: CouchDB `chttpd_misc:handle_dbs_info_req`.
pub async fn of_keys(mut call: Call) -> Answer {
    request::require_json(&call.req)?;
    let keys = keys(&call.body().await?, call.state.config.limits.dbs_info_max)?;
    Ok(infos(&call.req, &call.state, keys))
}

fn keys(body: &[u8], keys_max: usize) -> Result<Vec<String>, ApiError> {
    let asked = Members::of_options(body, json::BODY)?;
    let keys = asked.get("keys").ok_or_else(|| ApiError::bad_request("`keys` member must exist."))?;
    let not_names = || ApiError::bad_request("`keys` member must be an array of names of databases.");
    let too_many = || ApiError::bad_request(format!("too_many_keys: at most {keys_max} are accepted"));
    json::elements(keys, keys_max, not_names, too_many)
}

/// The list, sent as it comes.
fn infos(req: &HttpRequest, state: &State, names: Vec<String>) -> HttpResponse {
    // Each may have to be opened in the place of another, which must not be one of these.
    let at_once = AT_ONCE.min(state.config.limits.databases_open_max / 2).max(1);
    let engine = state.engine.clone();
    let elements = stream::iter(names.into_iter().enumerate()).map(move |(at, name)| element(engine.clone(), at, name));
    let part = |text: &'static [u8]| stream::iter([Ok::<_, Infallible>(Bytes::from_static(text))]);
    let list = part(b"[").chain(elements.buffered(at_once).map(Ok)).chain(part(b"]\n"));
    reply::streaming(req, reply::json(StatusCode::OK), list)
}

/// `{"key":NAME,"info":{…}}`, or why there is no info. Of what no database can be called there is none.
async fn element(engine: Engine, at: usize, name: String) -> Bytes {
    let info = async { engine.database(&name)?.info().await };
    let mut out = if at == 0 { b"{\"key\":".to_vec() } else { b",{\"key\":".to_vec() };
    write_json_string(&mut out, &name);
    out.push(b',');
    match info.await {
        Ok(info) => {
            out.extend_from_slice(b"\"info\":");
            out.extend(info_json(&name, &info));
        }
        Err(Error::NoDatabase | Error::BadName(_)) => out.extend_from_slice(b"\"error\":\"not_found\""),
        Err(error) => ApiError::from(error).write_members(&mut out),
    }
    out.push(b'}');
    out.into()
}
