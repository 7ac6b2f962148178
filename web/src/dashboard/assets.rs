//! The dashboard's files, which are part of the program: it needs no other host and no folder beside it.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rust_embed::{Embed, EmbeddedFile};
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::reply;

#[derive(Embed)]
#[folder = "$CARGO_MANIFEST_DIR/../dashboards/web"]
struct Pages;

#[derive(Embed)]
#[folder = "$CARGO_MANIFEST_DIR/../dashboards/examples"]
#[prefix = "examples/"]
struct Examples;

/// What a page may do: nothing but use this server. Scripts and styles are files, or known by their hashes; no text
/// becomes a page.
fn policy(page: &[u8]) -> String {
    let (scripts, styles) = (hashes(page, "script"), hashes(page, "style"));
    format!(
        "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
}

/// Of what stands in a page between tags without attributes. Source: Content Security Policy Level 3, hash sources.
fn hashes(page: &[u8], tag: &str) -> String {
    let page = String::from_utf8_lossy(page);
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let parts = page.split(&open).skip(1).filter_map(|part| part.split_once(&close));
    parts.map(|(text, _)| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(text)))).collect()
}

/// A file by its path below the dashboard; the page itself has the empty one.
///
/// # Errors
/// 404.
pub fn answer(req: &HttpRequest, path: &str) -> Result<HttpResponse, ApiError> {
    let path = if path.is_empty() { "index.html" } else { path };
    let file = Pages::get(path)
        .or_else(|| Examples::get(path))
        .ok_or_else(|| ApiError::not_found("the dashboard has no such file"))?;
    let is_page = file.metadata.mimetype() == "text/html";
    let etag = etag(&file);
    let known = reply::is_known(req, &etag);
    let mut answer = HttpResponse::build(if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK });
    answer
        .insert_header((header::ETAG, etag))
        // Asked about before each use: another version of the program has other files under the same names.
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::CONTENT_SECURITY_POLICY, policy(if is_page { &file.data } else { b"" })))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"));
    Ok(if known { answer.finish() } else { answer.content_type(file.metadata.mimetype()).body(file.data.into_owned()) })
}

fn etag(file: &EmbeddedFile) -> String {
    let half = &file.metadata.sha256_hash()[..16];
    let hex: String = half.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}
