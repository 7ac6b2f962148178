//! Answers.

use std::hash::{DefaultHasher, Hash, Hasher};

use actix_web::http::{Method, StatusCode, Version, header};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::{Stream, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use seqtide::storage::model::sequence::{SeqFormat, Sequence};

/// What of a name is not escaped in a URL.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The highest sequence a write produced.
pub const SEQTIDE_SEQ: header::HeaderName = header::HeaderName::from_static("seqtide-seq");

/// Says that a feed was asked for from ahead of all there is.
pub const SEQTIDE_SINCE: header::HeaderName = header::HeaderName::from_static("seqtide-since");

/// Says `true` on the answer to a write that was carried out before.
pub const IDEMPOTENCY_REPLAYED: header::HeaderName = header::HeaderName::from_static("idempotency-replayed");

/// The type of almost every body.
pub const JSON: header::HeaderValue = header::HeaderValue::from_static("application/json");

/// What `Cache-Control` says of an answer that may be kept, and asked about before it is used again.
pub const MUST_REVALIDATE: header::HeaderValue = header::HeaderValue::from_static("must-revalidate");

/// Starts a JSON answer.
pub fn json(status: StatusCode) -> HttpResponseBuilder {
    let mut answer = HttpResponse::build(status);
    answer.insert_header((header::CONTENT_TYPE, JSON));
    answer.insert_header((header::CACHE_CONTROL, MUST_REVALIDATE));
    answer
}

/// A JSON answer; a line end is added, as CouchDB does.
pub fn json_body(status: StatusCode, mut body: Vec<u8>) -> HttpResponse {
    body.push(b'\n');
    json(status).body(body)
}

/// A streaming answer. To a client of HTTP/1.0 it goes without chunks, and ends with the connection; to `HEAD` it has
/// no body, and none is made.
pub fn streaming<E>(
    req: &HttpRequest,
    mut answer: HttpResponseBuilder,
    body: impl Stream<Item = Result<Bytes, E>> + 'static,
) -> HttpResponse
where
    E: Into<Box<dyn std::error::Error>> + 'static,
{
    if req.method() == Method::HEAD {
        return answer.streaming(stream::empty::<Result<Bytes, E>>());
    }
    if req.version() > Version::HTTP_10 {
        return answer.streaming(body);
    }
    let mut answer = answer.force_close().streaming(body);
    answer.head_mut().no_chunking(true);
    answer
}

/// Has nobody on the way keep an answer that goes on, or hold its pieces back.
pub fn not_held_back(answer: &mut HttpResponseBuilder) {
    answer.insert_header((header::CACHE_CONTROL, "no-cache")).insert_header(("X-Accel-Buffering", "no"));
}

/// The body of an answer that says no more.
pub const OK_LINE: &str = "{\"ok\":true}\n";

/// [`OK_LINE`]
pub fn ok(status: StatusCode) -> HttpResponse {
    json(status).body(OK_LINE)
}

/// Starts the JSON answer to a write that has this place in its database's feed.
pub fn written(status: StatusCode, format: SeqFormat, seq: Sequence) -> HttpResponseBuilder {
    let mut answer = json(status);
    answer.insert_header((SEQTIDE_SEQ, format.plain(seq).to_string()));
    answer
}

/// A `Location`: the server as the client calls it, if it does, and path segments, escaped.
pub fn location(req: &HttpRequest, segments: &[&str]) -> (header::HeaderName, String) {
    let connection = req.connection_info();
    let host = connection.host();
    // The framework has a name of its own for a server that is not named, or not in ASCII.
    let given = req.headers().get(header::HOST);
    let is_named = given.is_some_and(|given| given.to_str().is_ok()) || host != req.app_config().host();
    let mut url =
        if is_named && !host.is_empty() { [connection.scheme(), "://", host].concat() } else { String::new() };
    for segment in segments {
        url.push('/');
        url.extend(utf8_percent_encode(segment, PLAIN));
    }
    (header::LOCATION, url)
}

/// An ETag of what is not a revision: the same for the same parts.
pub fn etag_of(parts: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

/// The ETag of a revision, given as text: `None` for one made by hand that has what no ETag may (a control, a quote, a
/// space, a letter beyond ASCII).
pub fn rev_etag(rev: &str) -> Option<String> {
    let fits = rev.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    fits.then(|| ["\"", rev, "\""].concat())
}

/// Whether the client has this ETag already.
pub fn is_known(req: &HttpRequest, etag: &str) -> bool {
    let given = req.headers().get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or("");
    given.split(',').any(|known| matches!(known.trim(), "*") || known.trim().trim_start_matches("W/") == etag)
}

/// 304 for a client that has the answer with this ETag already, with the headers a 200 would have. Source: RFC 9110,
/// section 15.4.5.
pub fn not_modified(req: &HttpRequest, etag: Option<&str>) -> Option<HttpResponse> {
    let etag = etag.filter(|etag| is_known(req, etag))?;
    let mut answer = HttpResponse::NotModified();
    Some(answer.insert_header((header::ETAG, etag)).insert_header((header::CACHE_CONTROL, MUST_REVALIDATE)).finish())
}
