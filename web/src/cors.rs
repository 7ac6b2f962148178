//! Which pages may use the server from a browser.

use actix_cors::Cors;
use actix_web::HttpRequest;
use actix_web::body::EitherBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, StatusCode, header};

use crate::config::CorsOrigins;
use crate::error::ApiError;
use crate::reply::{IDEMPOTENCY_REPLAYED, SEQTIDE_SEQ, SEQTIDE_SINCE};
use crate::request_id::REQUEST_ID;
use crate::state::State;

/// Answers preflights, and names the origin in answers to pages that may read them.
pub fn cors(origins: CorsOrigins) -> Cors {
    let allowed = move |origin: &header::HeaderValue, _: &_| origin.to_str().is_ok_and(|text| origins.allows(text));
    Cors::default()
        .allowed_origin_fn(allowed)
        .allowed_methods(["GET", "PUT", "POST", "HEAD", "DELETE", "COPY"])
        .allow_any_header()
        .supports_credentials()
        .expose_headers([
            header::ETAG,
            header::LOCATION,
            header::RETRY_AFTER,
            IDEMPOTENCY_REPLAYED,
            REQUEST_ID,
            SEQTIDE_SEQ,
            SEQTIDE_SINCE,
        ])
        .max_age(600)
}

/// What answers vary with, as the middleware says it.
pub const VARY: &str = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

/// Whether a page sends the request: it names its origin, or asks beforehand what it may send.
pub fn is_from_page(req: &ServiceRequest) -> bool {
    let headers = req.headers();
    headers.contains_key(header::ORIGIN)
        || (*req.method() == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD))
}

/// An answer that no page reads. It tells caches what one to a page would vary with.
pub fn for_no_page<B>(mut answer: ServiceResponse<B>) -> ServiceResponse<EitherBody<B>> {
    answer.headers_mut().append(header::VARY, header::HeaderValue::from_static(VARY));
    answer.map_into_left_body()
}

/// Refuses a WebSocket to a page that may not use the server: a browser lets any page open one anywhere, so what CORS
/// does for other requests must be done here.
///
/// # Errors
/// 403.
pub fn refuse_strange_page(req: &HttpRequest, state: &State) -> Result<(), ApiError> {
    let Some(origin) = req.headers().get(header::ORIGIN) else { return Ok(()) };
    if origin.to_str().is_ok_and(|origin| state.config.cors_origins.allows(origin)) {
        return Ok(());
    }
    let reason = format!("pages of {origin:?} may not connect; `cors_origins` lists those that may");
    Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", reason))
}
