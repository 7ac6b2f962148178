//! The dashboard: `/_dashboard/`, a page that shows what the server does, and the figures it is fed with.

mod assets;
mod figures;
mod stream;

use actix_web::HttpResponse;
use actix_web::http::{StatusCode, header};

pub use self::figures::{Figures, sample};
use crate::call::{Answer, Call};

/// Answers a request below `/_dashboard`.
pub fn answer(call: &Call, path: &str) -> Answer {
    match path {
        "figures" => stream::answer(call),
        // The page names its files relative to itself.
        "" if !call.req.path().ends_with('/') => Ok(HttpResponse::build(StatusCode::PERMANENT_REDIRECT)
            .insert_header((header::LOCATION, "_dashboard/"))
            .finish()),
        path => assets::answer(&call.req, path),
    }
}
