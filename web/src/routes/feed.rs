//! The native door: `/{db}/_feed`, and `/_feed` of the whole server. SSE, WebSocket or lines by what the client
//! accepts, with the same options, events and tokens on all three.

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode};
use seqtide::Error;

use crate::call::{Answer, Call};
use crate::connection::Cutter;
use crate::cors::refuse_strange_page;
use crate::feed_options::last_event_id;
use crate::feed_options::native::{Followed, Options};
use crate::feeds::websocket::{self, Connection, Start};
use crate::feeds::{body, stopping};
use crate::takeover::Takeover;
use crate::wire::draining;
use crate::wire::form::Form;
use crate::{reply, request};

pub async fn feed(call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    feed_of(call, database).await
}

/// Answers a request for a feed of a database, or of the server.
pub async fn feed_of<F: Followed>(mut call: Call, followed: F) -> Answer {
    let form = Form::of(&call.req);
    if form == Form::Websocket {
        return over_websocket(call, followed);
    }
    let payload = call.payload();
    let Call { req, query, state, .. } = call;
    let mut options = Options::of_query(&query, F::KNOWN)?;
    if req.method() == Method::POST {
        let body = request::read_body(&req, payload, &state.bodies, state.config.limits.feed_body_bytes_max).await?;
        options.take_body(&body, F::KNOWN)?;
    }
    if let Some(id) = last_event_id(&req) {
        options.go_on_behind(&id);
    }
    let asked = F::parse(&options, form.kind(), state.config.feeds.heartbeat)?;
    let feed = match followed.open(asked).await {
        Err(Error::Draining { retry }) if form == Form::Sse => {
            return Ok(stopping::come_back(retry, draining::EVENT));
        }
        opened => opened?,
    };
    feed.read_by(req.peer_addr());
    let mut answer = HttpResponse::build(StatusCode::OK);
    answer.content_type(form.content_type());
    reply::not_held_back(&mut answer);
    let opening = form.opening(feed.comeback(state.config.feeds.retry));
    let cutting = Cutter::of(&req).cut_when(feed.overdue());
    Ok(reply::streaming(&req, answer, body::stream(feed, form, opening, Takeover::of(&req), cutting)))
}

fn over_websocket<F: Followed>(mut call: Call, followed: F) -> Answer {
    let payload = call.payload();
    let Call { req, query, state, .. } = call;
    refuse_strange_page(&req, &state)?;
    state.engine.check_room_for_feeds()?;
    let heartbeat = state.config.feeds.heartbeat;
    let last_event_id = last_event_id(&req).map(Cow::into_owned);
    let parse = move |mut options: Options| {
        if let Some(id) = &last_event_id {
            options.go_on_behind(id);
        }
        F::parse(&options, Form::Websocket.kind(), heartbeat)
    };
    let from_url = if query.is_empty() { None } else { Some(parse(Options::of_query(&query, F::KNOWN)?)?) };
    let (answer, connection) = Connection::new(&req, payload, state.config.limits.feed_body_bytes_max)?;
    let parse = move |text: &str| {
        let mut options = Options::default();
        options.take_body(text.as_bytes(), F::KNOWN)?;
        parse(options)
    };
    let start = match from_url {
        Some(options) => Start::Now(options),
        None => Start::AtMessage { parse, within: state.config.feeds.websocket_start },
    };
    let server_ends = state.ending.clone().cancelled_owned();
    let serving = websocket::serve(connection, start, async move |asked| followed.open(asked).await, server_ends);
    actix_web::rt::spawn(serving);
    Ok(answer)
}
