//! Answers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter::once;

use actix_web::http::{Method, StatusCode, Version, header};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use seqtide::Written;

use crate::connection::Detachable;

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
/// no body, and no more of one is made.
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
    let going_on = req.conn_data::<Detachable>().map(Detachable::answer_goes_on);
    let body = body.inspect(move |_| {
        // It is dropped with the body.
        let _ = &going_on;
    });
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

/// Starts the JSON answer to a write, which says what place that has in its database's feed.
pub fn written(status: StatusCode, written: &Written) -> HttpResponseBuilder {
    let mut answer = json(status);
    answer.insert_header((SEQTIDE_SEQ, written.seq_format.plain(written.seq).to_string()));
    answer
}

/// Headers by which a proxy says how its clients call the server.
const FORWARDED: [header::HeaderName; 3] = [header::FORWARDED, header::X_FORWARDED_HOST, header::X_FORWARDED_PROTO];

/// A `Location`: the server as the client calls it, if it does, and path segments, escaped.
pub fn location(req: &HttpRequest, segments: &[&str]) -> (header::HeaderName, String) {
    let given = req.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let is_forwarded = FORWARDED.iter().any(|name| req.headers().contains_key(name));
    let url = if is_forwarded || req.uri().scheme().is_some() || req.app_config().secure() {
        let connection = req.connection_info();
        let host = connection.host();
        // The framework has a name of its own for a server that is not named, or not in ASCII.
        let is_named = given.is_some() || host != req.app_config().host();
        url(connection.scheme(), if is_named { host } else { "" }, segments)
    } else {
        // The framework would find the same, and keep it with the request, which takes longer than writing it down.
        url("http", given.unwrap_or_default(), segments)
    };
    (header::LOCATION, url)
}

/// Path segments, escaped, behind the server if it has a name.
fn url(scheme: &str, host: &str, segments: &[&str]) -> String {
    let server = if host.is_empty() { [""; 3] } else { [scheme, "://", host] };
    let path = segments.iter().flat_map(|segment| once("/").chain(utf8_percent_encode(segment, PLAIN)));
    // As long as it is where nothing is escaped: a header's value that has room left takes a box more.
    let bytes = server.iter().map(|part| part.len()).chain(segments.iter().map(|segment| 1 + segment.len())).sum();
    let mut url = String::with_capacity(bytes);
    url.extend(server.into_iter().chain(path));
    url
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

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn location_of(uri: &str, headers: &[(&'static str, &'static str)]) -> String {
        let req = TestRequest::with_uri(uri);
        let req = headers.iter().fold(req, |req, header| req.append_header(*header)).to_http_request();
        location(&req, &["db", "a b"]).1
    }

    #[test]
    fn a_location_names_the_server_as_its_client_does() {
        for (headers, server) in [
            (&[("host", "db.example:5984")][..], "http://db.example:5984"),
            (&[("host", "here"), ("x-forwarded-host", "there")], "http://there"),
            (&[("host", "here"), ("x-forwarded-proto", "https")], "https://here"),
            (&[("host", "here"), ("forwarded", "host=there;proto=https")], "https://there"),
            (&[("host", "here"), ("x-forwarded-for", "10.0.0.1")], "http://here"),
            (&[("host", "")], ""),
            (&[("host", "é")], ""),
            (&[], ""),
        ] {
            assert_eq!(location_of("/db/a%20b", headers), format!("{server}/db/a%20b"), "{headers:?}");
        }
        let whole = "https://there/db/a%20b";
        assert_eq!(location_of(whole, &[("host", "here")]), "https://here/db/a%20b");
        assert_eq!(location_of(whole, &[]), whole);
    }

    /// It is found without the framework where that would find the same.
    #[test]
    fn a_location_is_the_one_that_the_framework_finds() {
        for name in ["host", "x-forwarded-for", "x-forwarded-server", "x-real-ip"] {
            let req = TestRequest::default().append_header(("host", "here")).append_header((name, "there"));
            let req = req.to_http_request();
            let connection = req.connection_info();
            let expected = format!("{}://{}/db", connection.scheme(), connection.host());
            assert_eq!(location(&req, &["db"]).1, expected, "{name}");
        }
    }
}
