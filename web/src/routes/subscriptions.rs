//! `/_feed/many`: a connection with many subscriptions; `/_feed/{connection}`: changes to them.

use std::convert::Infallible;

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use seqtide::Error;
use seqtide::storage::json::write_json_string;
use serde_json::value::RawValue;

use crate::call::{Answer, Call};
use crate::connection::Cutter;
use crate::cors::refuse_strange_page;
use crate::error::ApiError;
use crate::feed_options::last_event_id;
use crate::feed_options::native::{Options, SUBSCRIPTIONS};
use crate::feeds::stopping;
use crate::feeds::websocket::Connection;
use crate::subscriptions::asked::{self, Amendment, Asked, Client, Reader};
use crate::subscriptions::connections::Handle;
use crate::subscriptions::resume_id::Resume;
use crate::subscriptions::together::Subscriptions;
use crate::subscriptions::wanted::Wanted;
use crate::subscriptions::websocket;
use crate::wire::draining;
use crate::wire::form::Form;
use crate::wire::pieces::Pieces;
use crate::{reply, request};

/// Where a connection is opened.
pub const PATH: &str = "_feed/many";

/// What a request to open one may say; a body says the same.
const KNOWN: [&str; 3] = ["heartbeat", "last-event-id", SUBSCRIPTIONS];

/// Opens a connection.
pub async fn open(mut call: Call) -> Answer {
    let payload = call.payload();
    let Call { req, query, state, .. } = call;
    let form = Form::of(&req);
    let mut options = Options::of_query(&query, &KNOWN)?;
    let message_bytes_max = state.config.limits.feed_body_bytes_max;
    let upgraded = if form == Form::Websocket {
        refuse_strange_page(&req, &state)?;
        Some(Connection::new(&req, payload, message_bytes_max)?)
    } else {
        if req.method() == Method::POST {
            options.take_body(&request::read_body(&req, payload, &state.bodies, message_bytes_max).await?, &KNOWN)?;
        }
        None
    };
    if let Some(id) = last_event_id(&req) {
        options.go_on_behind(&id);
    }
    let heartbeat = options.heartbeat()?.unwrap_or(state.config.feeds.heartbeat);
    let reader = Reader { form, heartbeat, address: req.peer_addr() };
    let client = Client { state: &state, reader };
    let wanted = Wanted::read(&options, &client)?;
    // Where there is no room for all, those that have none are refused, and the others begin. Of a server that is
    // drained there is nothing to be had.
    match state.engine.check_room_for_feeds() {
        Err(Error::Draining { retry }) if form == Form::Sse => return Ok(stopping::come_back(retry, draining::LIST)),
        Err(draining @ Error::Draining { .. }) => return Err(draining.into()),
        _ => {}
    }
    let handle = state.connections.add(state.config.limits.subscriptions_max, reader)?;
    let cutting = Cutter::of(&req).cut_when(handle.overdue());
    let subscriptions = wanted.open(&client, &handle, cutting).await?;
    if let Some((answer, connection)) = upgraded {
        let state = state.clone();
        let hear = async move |text: String| {
            let client = Client { state: &state, reader };
            hear(&client, &handle, &text).await;
        };
        actix_web::rt::spawn(websocket::serve(connection, subscriptions, hear));
        return Ok(answer);
    }
    let mut answer = HttpResponse::build(StatusCode::OK);
    answer.content_type(form.content_type());
    reply::not_held_back(&mut answer);
    let opening = form.opening(subscriptions.comeback);
    Ok(reply::streaming(&req, answer, body(opening, subscriptions)))
}

fn body(opening: Bytes, subscriptions: Subscriptions) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let pieces = |mut message: Pieces| stream::iter(std::iter::from_fn(move || message.take().map(Ok)));
    let opening = Some(opening).filter(|opening| !opening.is_empty());
    stream::iter(opening.map(Ok)).chain(subscriptions.flat_map(pieces))
}

/// Changes the subscriptions of a connection: one, or each of a list.
pub async fn change(mut call: Call, connection: &str) -> Answer {
    let payload = call.payload();
    let Call { req, query, state, .. } = call;
    if !query.is_empty() {
        return Err(ApiError::bad_request("a change of subscriptions has no options in its URL: they are in its body"));
    }
    let handle = state.connections.find(connection)?;
    let body = request::read_body(&req, payload, &state.bodies, state.config.limits.feed_body_bytes_max).await?;
    let text = std::str::from_utf8(&body).map_err(|_| ApiError::not_json())?;
    let client = Client { state: &state, reader: handle.reader };
    let changes = asked::one_or_more(text, 2 * state.config.limits.subscriptions_max)?;
    let mut json = Vec::new();
    if !text.trim_start().starts_with('[') {
        for given in changes {
            write_done(&mut json, &make(&client, &handle, &given).await.map_err(|(_, refused)| refused)?);
        }
    } else {
        json.push(b'[');
        for (at, given) in changes.iter().enumerate() {
            json.extend_from_slice(if at == 0 { b"" } else { b"," });
            match make(&client, &handle, given).await {
                Ok(done) => write_done(&mut json, &done),
                Err((name, refused)) => write_refused(&mut json, name.as_deref(), &refused),
            }
        }
        json.push(b']');
    }
    Ok(reply::json_body(StatusCode::OK, json))
}

/// A change that was made.
struct Done {
    name: String,
    /// Where a new subscription begins.
    seq: Option<String>,
}

/// Makes one change; what is refused comes with the name it would have had.
async fn make(client: &Client<'_>, handle: &Handle, given: &RawValue) -> Result<Done, (Option<String>, ApiError)> {
    match asked::amendment(given).map_err(|refused| (asked::name_in(given), refused))? {
        Amendment::Subscribe(asked) => {
            let name = asked.name.clone();
            subscribe(client, handle, asked).await.map_err(|refused| (Some(name), refused))
        }
        Amendment::Unsubscribe(name) => match handle.unsubscribe(&name) {
            Ok(()) => Ok(Done { name, seq: None }),
            Err(refused) => Err((Some(name), refused)),
        },
    }
}

async fn subscribe(client: &Client<'_>, handle: &Handle, asked: Asked) -> Result<Done, ApiError> {
    let name = asked.name.clone();
    let checked = asked.checked(client, Resume::AsAsked)?;
    let reserved = handle.reserve(&name)?;
    let opened = checked.open(client, handle).await?;
    let seq = opened.feed.seq_format().json(opened.feed.position()).to_string();
    reserved.fill(opened)?;
    Ok(Done { name, seq: Some(seq) })
}

/// Makes the changes that a message asks for. What is refused is told on the connection, and so is what is done.
async fn hear(client: &Client<'_>, handle: &Handle, text: &str) {
    match asked::one_or_more(text, 2 * client.state.config.limits.subscriptions_max) {
        Ok(changes) => {
            for given in changes {
                if let Err((name, refused)) = make(client, handle, &given).await {
                    handle.refuse(name, refused);
                }
            }
        }
        Err(refused) => handle.refuse(None, refused),
    }
}

fn write_done(json: &mut Vec<u8>, done: &Done) {
    json.extend_from_slice(b"{\"ok\":true,\"sub\":");
    write_json_string(json, &done.name);
    if let Some(seq) = &done.seq {
        json.extend_from_slice(b",\"seq\":");
        json.extend_from_slice(seq.as_bytes());
    }
    json.push(b'}');
}

fn write_refused(json: &mut Vec<u8>, name: Option<&str>, refused: &ApiError) {
    json.push(b'{');
    if let Some(name) = name {
        json.extend_from_slice(b"\"sub\":");
        write_json_string(json, name);
        json.push(b',');
    }
    refused.write_members(json);
    json.push(b'}');
}
