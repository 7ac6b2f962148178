//! The dashboard's files, which are part of the program: it needs no other host and no folder beside it.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::{Embed, EmbeddedFile};

use crate::error::ApiError;
use crate::reply;

#[derive(Embed)]
#[folder = "$CARGO_MANIFEST_DIR/../dashboards/web"]
struct Pages;

/// What the dashboard's pages may do: nothing but use this server. Scripts and styles are files, never part of a page, and
/// no text becomes a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// A file by its path below the dashboard; the page itself has the empty one.
///
/// # Errors
/// 404.
pub fn answer(req: &HttpRequest, path: &str) -> Result<HttpResponse, ApiError> {
    let path = if path.is_empty() { "index.html" } else { path };
    let file = Pages::get(path).ok_or_else(|| ApiError::not_found("the dashboard has no such file"))?;
    let etag = etag(&file);
    let known = reply::is_known(req, &etag);
    let mut answer = HttpResponse::build(if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK });
    answer
        .insert_header((header::ETAG, etag))
        // Asked about before each use: another version of the program has other files under the same names.
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"));
    Ok(if known { answer.finish() } else { answer.content_type(file.metadata.mimetype()).body(file.data.into_owned()) })
}

fn etag(file: &EmbeddedFile) -> String {
    let half = &file.metadata.sha256_hash()[..16];
    let hex: String = half.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}
