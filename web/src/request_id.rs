//! A name for each request: the header `X-Couch-Request-ID` of its answer, and in the log if it failed.

use std::hash::{BuildHasher, RandomState};

use actix_web::HttpResponse;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};

/// The header.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-couch-request-id");

/// Names the request in its answer, and logs a failure of the server's.
pub fn name_answer<B>(mut answer: ServiceResponse<B>) -> ServiceResponse<B> {
    let id = new_id();
    if answer.status().is_server_error() {
        log(&id, answer.request().method(), answer.request().path(), answer.response());
    }
    if let Ok(value) = HeaderValue::try_from(id) {
        answer.headers_mut().insert(REQUEST_ID, value);
    }
    answer
}

/// Ten random hex digits, as CouchDB's. They come from the keys of a new hasher, which are others each time and cost no
/// system call.
pub fn new_id() -> String {
    let random = RandomState::new().hash_one(());
    let digit = |place| char::from_digit((random >> (4 * place)) as u32 & 0xf, 16).unwrap_or('0');
    (0..10).map(digit).collect()
}

/// Logs a request of this name that failed by the server's fault.
pub fn log<B>(id: &str, method: &Method, path: &str, answer: &HttpResponse<B>) {
    // Who knows the name of a connection may change what it follows.
    let path = if path.starts_with("/_feed/") { "/_feed/…" } else { path };
    let reason = answer.error().map(ToString::to_string).unwrap_or_default();
    let status = answer.status().as_u16();
    // What is above 500 is not there, or not possible now: clients that try again would fill the log.
    if answer.status() == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::warn!(request = id, %method, path, status, reason, "a request failed");
    } else {
        tracing::debug!(request = id, %method, path, status, reason, "a request was refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_ten_hex_digits_and_nobody_elses() {
        let [one, other] = [new_id(), new_id()];
        assert_ne!(one, other);
        for id in [one, other] {
            assert!(id.len() == 10 && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')), "{id}");
        }
    }
}
