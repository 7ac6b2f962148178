//! Which pages may use the server from a browser.

use actix_cors::Cors;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header;
use actix_web::middleware::Next;

use crate::config::CorsOrigins;
use crate::reply::{IDEMPOTENCY_REPLAYED, SEQTIDE_SEQ, SEQTIDE_SINCE};
use crate::request_id::REQUEST_ID;

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

/// Takes what only pages read out of answers to requests that name no origin. `Vary` stays: it is for caches.
pub async fn quiet_without_origin(
    req: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let from_page = req.headers().contains_key(header::ORIGIN);
    let mut answer = next.call(req).await?;
    if !from_page {
        answer.headers_mut().remove(header::ACCESS_CONTROL_ALLOW_CREDENTIALS);
        answer.headers_mut().remove(header::ACCESS_CONTROL_EXPOSE_HEADERS);
    }
    Ok(answer)
}
