//! A `PUT` of one document in its plainest form, which most writes have: answered at the socket. The framework takes as
//! long for its request and answer as all else that is done for it.
//!
//! What it answers is what [`update::put`](crate::routes) does, of which it has all parts that decide on anything. What
//! it is not sure of, and all that is refused before it is written, it leaves to the framework.

use std::time::SystemTime;

use actix_web::HttpResponse;
use actix_web::body::MessageBody;
use actix_web::http::{Method, StatusCode};
use actix_web::web::Data;
use httparse::{Header, Request};
use httpdate::HttpDate;
use seqtide::storage::Write;
use seqtide::storage::model::doc_id::DocId;
use seqtide::{Database, WriteOptions, Written};
use tokio_util::task::TaskTracker;

use crate::connection::listener::KEEP_ALIVE;
use crate::connection::{Answering, SHORTCUT_FOR, Shortcut};
use crate::routes::edit::{check_own_id, edit, scan, written_json};
use crate::routes::update::outcome;
use crate::state::State;
use crate::{cors, reply, request_id};

/// Headers that change nothing of what is answered.
const MEANINGLESS: [&str; 9] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "content-length",
    "sec-fetch-mode",
    "user-agent",
    "x-forwarded-for",
    "x-real-ip",
];

/// Answers plain `PUT`s.
pub struct PlainPuts {
    state: Data<State>,
    /// Those that are under way; closed when no more are to be.
    under_way: TaskTracker,
}

impl PlainPuts {
    /// Of a server that waits for those under way when it ends.
    pub fn new(state: Data<State>, under_way: TaskTracker) -> PlainPuts {
        PlainPuts { state, under_way }
    }
}

impl Shortcut for PlainPuts {
    fn answer(&self, head: &Request<'_, '_>, body: &[u8]) -> Option<Answering> {
        let Target { db, id, host } = Target::of(head)?;
        let limits = &self.state.config.limits;
        // The framework does not know that anybody waits, nor that something came since it has answered last.
        let may_take_long = limits.write_timeout + SHORTCUT_FOR >= KEEP_ALIVE;
        if may_take_long || body.len() > limits.request_bytes_max || self.under_way.is_closed() {
            return None;
        }
        let (database, id) = (self.state.database(db).ok()?, DocId::parse(id).ok()?);
        let mut document = scan(body, &self.state).ok()?;
        check_own_id(&mut document).ok()?;
        let status = if document.deleted { StatusCode::OK } else { StatusCode::CREATED };
        let edit = edit(id.clone(), None, document).ok()?;
        let (state, host) = (self.state.clone(), host.to_owned());
        Some(Answering::new(self.under_way.token(), async move {
            let written = state.write_with(&database, vec![Write::Edit(edit)], WriteOptions::default()).await;
            match written.and_then(|written| Ok((seq_of(&written), outcome(&database, &id, written)?))) {
                Ok((seq, rev)) => made(status, &host, &database, &id, &seq, &rev),
                Err(error) => refused(&database, &id, HttpResponse::from_error(error)),
            }
        }))
    }
}

/// Where a plain `PUT` writes to.
#[derive(Debug, PartialEq, Eq)]
struct Target<'a> {
    db: &'a str,
    id: &'a str,
    /// What the client calls the server.
    host: &'a str,
}

impl<'a> Target<'a> {
    /// `None` where a request may be another than it seems, or ask for more.
    fn of(head: &Request<'_, 'a>) -> Option<Target<'a>> {
        if head.method != Some("PUT") || head.version != Some(1) {
            return None;
        }
        let (db, id) = head.path?.strip_prefix('/')?.split_once('/')?;
        let mut host = None;
        for &Header { name, value } in head.headers.iter() {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            match value {
                _ if is("host") && host.is_none() => host = Some(std::str::from_utf8(value).ok()?),
                b"application/json" if is("content-type") => {}
                b"keep-alive" if is("connection") => {}
                _ if MEANINGLESS.into_iter().any(is) => {}
                _ => return None,
            }
        }
        let host = host.filter(|host| !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic()))?;
        (is_plain(db) && is_plain(id)).then_some(Target { db, id, host })
    }
}

/// Whether a segment of a path is a name as it stands, and no endpoint's.
fn is_plain(segment: &str) -> bool {
    segment.starts_with(|first: char| first.is_ascii_alphanumeric())
        && segment.bytes().all(|byte| PLAIN[usize::from(byte)])
}

/// Which bytes of a name stand for themselves. An id has many, and each is looked at.
const PLAIN: [bool; 256] = {
    let (mut plain, mut byte) = ([false; 256], 0);
    while byte < plain.len() {
        plain[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    plain
};

/// A write's place in the feed, as its database writes it.
fn seq_of(written: &Written) -> Vec<u8> {
    let mut seq = Vec::new();
    written.seq_format.plain(written.seq).write(&mut seq);
    seq
}

/// The answer to a document that was written as this revision.
fn made(status: StatusCode, host: &str, database: &Database, id: &DocId, seq: &[u8], rev: &str) -> Vec<u8> {
    let (db, id) = (database.name().as_str(), id.as_str());
    let (location, etag) = (["http://", host, "/", db, "/", id].concat(), reply::rev_etag(rev));
    let headers: [(&str, &[u8]); 4] = [
        ("content-type", b"application/json"),
        ("cache-control", b"must-revalidate"),
        ("seqtide-seq", seq),
        ("location", location.as_bytes()),
    ];
    let headers = headers.into_iter().chain(etag.as_ref().map(|etag| ("etag", etag.as_bytes())));
    answer(status, headers, &request_id::new_id(), &written_json(id, rev))
}

/// What the framework would make of an answer that says why nothing was written.
fn refused(database: &Database, id: &DocId, refusal: HttpResponse) -> Vec<u8> {
    let name = request_id::new_id();
    if refusal.status().is_server_error() {
        request_id::log(&name, &Method::PUT, &format!("/{}/{id}", database.name()), &refusal);
    }
    let (head, body) = refusal.into_parts();
    let body = body.try_into_bytes().unwrap_or_default();
    let headers = head.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    answer(head.status(), headers, &name, &body)
}

/// An answer to the request of this name: with headers of its own, and with those that all have.
fn answer<'a>(
    status: StatusCode,
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    name: &str,
    body: &[u8],
) -> Vec<u8> {
    let mut answer = Vec::with_capacity(640);
    let mut add = |parts: &[&[u8]]| parts.iter().for_each(|part| answer.extend_from_slice(part));
    let reason = status.canonical_reason().unwrap_or_default();
    add(&[b"HTTP/1.1 ", status.as_str().as_bytes(), b" ", reason.as_bytes()]);
    for (name, value) in headers {
        add(&[b"\r\n", name.as_bytes(), b": ", value]);
    }
    let (mut length, date) = (itoa::Buffer::new(), HttpDate::from(SystemTime::now()).to_string());
    for (name, value) in [
        ("content-length", length.format(body.len())),
        ("vary", cors::VARY),
        (request_id::REQUEST_ID.as_str(), name),
        ("date", &date),
    ] {
        add(&[b"\r\n", name.as_bytes(), b": ", value.as_bytes()]);
    }
    add(&[b"\r\n\r\n", body]);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(head: &str) -> bool {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = Request::new(&mut headers);
        assert!(request.parse(head.as_bytes()).unwrap().is_complete(), "{head}");
        Target::of(&request).is_some()
    }

    #[test]
    fn what_may_ask_for_more_than_a_plain_put_is_left_to_the_framework() {
        let put = |target: &str, headers: &str| format!("PUT {target} HTTP/1.1\r\nHost: a:1\r\n{headers}\r\n");
        let plain = "content-length: 2\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nAccept: */*\r\nX-Real-IP: ::1\r\n";
        for head in [put("/db/a", ""), put("/db/a-b.c~D_1", plain)] {
            assert!(is_taken(&head), "{head}");
        }
        for target in [
            "/db",
            "/db/",
            "//a",
            "/db//a",
            "/db/_local/a",
            "/db/_design/a",
            "/_users/a",
            "/db/_a",
            "/db/a/b",
            "/db/a?rev=1-a",
            "/db/%61",
            "/d%62/a",
            "/db/a%2Fb",
            "/db/.",
            "/db/..",
            "http://a:1/db/a",
            "/db/a?",
            "/db/a+b",
            "*",
        ] {
            assert!(!is_taken(&put(target, plain)), "{target}");
        }
        for headers in [
            "Host: b",
            "If-Match: \"1-a\"",
            "Idempotency-Key: a",
            "Origin: http://b",
            "Expect: 100-continue",
            "Content-Encoding: gzip",
            "Content-Type: multipart/related; boundary=a",
            "Connection: close",
            "Upgrade: h2c",
            "X-Forwarded-Host: b",
            "X-Forwarded-Proto: https",
            "Forwarded: host=b",
            "X-HTTP-Method-Override: DELETE",
            "Transfer-Encoding: chunked",
            "X-Unheard-Of: 1",
        ] {
            assert!(!is_taken(&put("/db/a", &format!("{headers}\r\n"))), "{headers}");
        }
        for head in [
            "PUT /db/a HTTP/1.1\r\n\r\n",
            "PUT /db/a HTTP/1.1\r\nHost:\r\n\r\n",
            "PUT /db/a HTTP/1.0\r\nHost: a\r\n\r\n",
            "POST /db/a HTTP/1.1\r\nHost: a\r\n\r\n",
            "DELETE /db/a HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert!(!is_taken(head), "{head}");
        }
    }
}
