//! What is looked at before a request goes to whom it is for: its method, its length, what it expects.

use actix_web::HttpRequest;
use actix_web::dev::ServiceRequest;
use actix_web::http::header::{self, HeaderMap, HeaderName};
use actix_web::http::{Method, StatusCode};

use crate::error::ApiError;

/// The longest URL, in bytes. Above 65,534 the HTTP library takes a request for malformed.
const URI_BYTES_MAX: usize = 60_000;

const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");

/// Methods that a POST may stand for.
const OVERRIDES: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "DELETE", "COPY"];

/// Takes a POST for the method that its `X-HTTP-Method-Override` names; on another method the header means nothing.
///
/// Source: CouchDB `chttpd:handle_request_int`.
pub fn override_method(req: &mut ServiceRequest) {
    if *req.method() == Method::POST
        && let Some(Some(method)) = overridden(req.headers())
    {
        req.head_mut().method = method;
    }
}

/// The method that a request's header names: inside, `None` when it may not stand for that.
fn overridden(headers: &HeaderMap) -> Option<Option<Method>> {
    let name = headers.get(METHOD_OVERRIDE)?.to_str().unwrap_or_default();
    let known = OVERRIDES.contains(&name);
    // A HEAD is answered as a GET is: the client, which sent a POST, waits for a body.
    let name = if name == "HEAD" { "GET" } else { name };
    Some(Method::from_bytes(name.as_bytes()).ok().filter(|_| known))
}

/// Refuses what no handler needs to see.
///
/// # Errors
/// 400 for a method that may not be overridden to, 414 for a URL that is too long, 417 for an expectation other than
/// `100-continue`.
pub fn check(req: &HttpRequest) -> Result<(), ApiError> {
    if *req.method() == Method::POST && overridden(req.headers()) == Some(None) {
        let reason = format!("X-HTTP-Method-Override is one of {}", OVERRIDES.join(", "));
        return Err(ApiError::bad_request(reason));
    }
    let uri_bytes = req.uri().path_and_query().map_or(0, |uri| uri.as_str().len());
    if uri_bytes > URI_BYTES_MAX {
        let reason = format!("the request uri is too long: {uri_bytes} bytes, at most {URI_BYTES_MAX} are accepted");
        return Err(ApiError::new(StatusCode::URI_TOO_LONG, "too_long", reason));
    }
    let expected = req.headers().get_all(header::EXPECT);
    if let Some(other) = expected.into_iter().find(|value| !value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        let reason = format!("Expect: {other:?} cannot be met; 100-continue can");
        return Err(ApiError::new(StatusCode::EXPECTATION_FAILED, "expectation_failed", reason));
    }
    Ok(())
}
