//! Request bodies: their size, encoding and type, and where they are parsed.

use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, ResponseError, web};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::time::{Instant, timeout_at};

use crate::bodies::{self, Bodies, Body};
use crate::connection::Cutter;
use crate::error::ApiError;

/// A body above this is parsed on a thread that may block.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// What of a gzipped body is unzipped at once.
const UNZIPPED_BYTES: usize = 64 << 10;

/// In so long so many bytes must come of a body that is not whole: what came of it is kept in memory.
const PROGRESS_TIME: Duration = Duration::from_secs(60);
const PROGRESS_BYTES: usize = 64 << 10;

/// Reads a request's body, of at most `bytes_max` bytes, plain or gzipped.
///
/// # Errors
/// 413 `too_large`; 415 for another encoding; 400 when it is cut short or not properly gzipped; 408 when it comes too
/// slowly; 503 when there is no room for it among the bodies of others.
pub async fn read_body(
    req: &HttpRequest,
    payload: web::Payload,
    bodies: &Bodies,
    bytes_max: usize,
) -> Result<Bytes, ApiError> {
    let gzipped = is_gzipped(req)?;
    let length = req.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > bytes_max as u64) {
        return Err(bodies::too_large(bytes_max));
    }
    let said = length.and_then(|length| usize::try_from(length).ok());
    let body = read_all(payload, bodies, bytes_max, said).await.inspect_err(|error| {
        if error.status_code() == StatusCode::REQUEST_TIMEOUT {
            Cutter::of(req).cut_soon();
        }
    })?;
    if !gzipped {
        return Ok(body);
    }
    let plain = bodies.begin(bytes_max, None);
    apart(move || gunzip(&body, plain)).await
}

async fn read_all<E: Display>(
    payload: impl Stream<Item = Result<Bytes, E>> + Unpin,
    bodies: &Bodies,
    bytes_max: usize,
    said: Option<usize>,
) -> Result<Bytes, ApiError> {
    let mut pieces = Pieces { payload, bytes: 0, due: None };
    let Some(first) = pieces.next().await? else { return Ok(Bytes::new()) };
    if first.len() > bytes_max {
        return Err(bodies::too_large(bytes_max));
    }
    // Most come in one piece, which is not copied.
    let Some(second) = pieces.next().await? else { return Ok(first) };
    let mut body = bodies.begin(bytes_max, said);
    body.add(&first)?;
    let mut next = Some(second);
    while let Some(piece) = next {
        body.add(&piece)?;
        next = pieces.next().await?;
    }
    Ok(body.end())
}

/// A body's pieces as they come.
struct Pieces<P> {
    payload: P,
    /// What came since it was looked at last whether enough does.
    bytes: usize,
    /// By when enough must have come, if it was waited for since.
    due: Option<Instant>,
}

impl<P, E> Pieces<P>
where
    P: Stream<Item = Result<Bytes, E>> + Unpin,
    E: Display,
{
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        // Most of a body is there already, and takes no timer; for one all requests would have room, were it not boxed.
        let next = match self.payload.next().now_or_never() {
            Some(next) => next,
            None => {
                let due = *self.due.get_or_insert_with(|| Instant::now() + PROGRESS_TIME);
                Box::pin(timeout_at(due, self.payload.next())).await.map_err(|_elapsed| too_slow())?
            }
        };
        let next = next
            .transpose()
            .map_err(|error| ApiError::bad_request(format!("the request's body is broken: {error}")))?;
        self.bytes += next.as_ref().map_or(0, Bytes::len);
        if self.bytes >= PROGRESS_BYTES {
            (self.bytes, self.due) = (0, None);
        }
        Ok(next)
    }
}

fn too_slow() -> ApiError {
    let (bytes, secs) = (PROGRESS_BYTES, PROGRESS_TIME.as_secs());
    let reason = format!("of the request's body less than {bytes} bytes came in {secs} s, and not the end of it");
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", reason)
}

/// Parses a body; a large one where other requests do not wait for it.
///
/// # Errors
/// As `parse`; 503 when the server stops.
pub async fn parse<T: Send + 'static>(
    body: Bytes,
    parse: impl FnOnce(&[u8]) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if body.len() <= INLINE_BYTES_MAX { parse(&body) } else { apart(move || parse(&body)).await }
}

/// Works on a thread that may block.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, ApiError> + Send + 'static) -> Result<T, ApiError> {
    web::block(work).await.map_err(|_stopping| ApiError::from(seqtide::Error::Stopped))?
}

fn is_gzipped(req: &HttpRequest) -> Result<bool, ApiError> {
    let encoding = req.headers().get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?"));
    // RFC 9110, 8.4.1: in any case, and by an older name.
    match encoding.map(str::to_ascii_lowercase).as_deref() {
        None | Some("identity" | "") => Ok(false),
        Some("gzip" | "x-gzip") => Ok(true),
        Some(other) => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "bad_content_encoding",
            format!("Content-Encoding {other:?} is not supported; send gzip or none"),
        )),
    }
}

fn gunzip(zipped: &[u8], mut plain: Body) -> Result<Bytes, ApiError> {
    let mut unzipped = BufReader::with_capacity(UNZIPPED_BYTES, MultiGzDecoder::new(zipped));
    loop {
        let piece = unzipped.fill_buf();
        let piece = piece.map_err(|_| ApiError::bad_request("Request body is not properly gzipped."))?;
        if piece.is_empty() {
            return Ok(plain.end());
        }
        plain.add(piece)?;
        let length = piece.len();
        unzipped.consume(length);
    }
}

/// Checks that a request says its body is JSON.
///
/// # Errors
/// 415 `bad_content_type`.
pub fn require_json(req: &HttpRequest) -> Result<(), ApiError> {
    if essence(req).eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let reason = "Content-Type must be application/json";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_content_type", reason))
}

/// What kind of content the body is said to be, without parameters; empty where nothing is said.
pub fn essence(req: &HttpRequest) -> &str {
    let given = req.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    given.split(';').next().unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    type Part = Result<Bytes, String>;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_too_slowly_is_not_waited_for() {
        let bodies = Bodies::new(1 << 20);
        let slowly = async |pieces: usize, bytes: usize, every: Duration, ends: bool| {
            let pieces = stream::iter((0..pieces).map(move |_| Part::Ok(vec![b'a'; bytes].into())));
            let pieces = pieces.then(async |piece| {
                tokio::time::sleep(every).await;
                piece
            });
            let pieces = Box::pin(pieces).chain(if ends {
                stream::empty().left_stream()
            } else {
                stream::pending().right_stream()
            });
            let read = read_all(pieces, &bodies, 1 << 20, None).await;
            read.map(|body| body.len()).map_err(|error| error.status_code().as_u16())
        };
        let second = Duration::from_secs(1);
        assert_eq!(slowly(3, 1, PROGRESS_TIME / 4, true).await, Ok(3), "slow as it is");
        assert_eq!(slowly(61, 1, second, true).await, Err(408), "a byte at a time");
        assert_eq!(slowly(3, PROGRESS_BYTES, PROGRESS_TIME - second, true).await, Ok(3 * PROGRESS_BYTES));
        assert_eq!(slowly(3, PROGRESS_BYTES - 1, PROGRESS_TIME - second, true).await, Err(408));
        assert_eq!(slowly(1, PROGRESS_BYTES, second, false).await, Err(408), "nothing more comes");
    }

    #[tokio::test]
    async fn a_body_is_as_long_as_it_may_be_in_however_many_pieces() {
        let read = async |pieces: &[Result<&'static str, &str>]| {
            let pieces = pieces.iter().map(|piece| piece.map(|text| Bytes::from_static(text.as_bytes())));
            let read = read_all(stream::iter(pieces), &Bodies::new(1 << 20), 4, None).await;
            read.map(|body| String::from_utf8(body.to_vec()).unwrap()).map_err(|error| error.status_code().as_u16())
        };
        assert_eq!(read(&[]).await, Ok(String::new()));
        assert_eq!(read(&[Ok("1234")]).await, Ok("1234".to_owned()));
        assert_eq!(read(&[Ok("12345")]).await, Err(413));
        assert_eq!(read(&[Ok("1"), Ok("23"), Ok("4")]).await, Ok("1234".to_owned()));
        assert_eq!(read(&[Ok("1"), Ok("23"), Ok("45")]).await, Err(413));
        assert_eq!(read(&[Ok("1"), Err("cut short")]).await, Err(400));
    }
}
