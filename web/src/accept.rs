//! Which media types a client takes, and whether it asks for a WebSocket.

use actix_web::HttpRequest;
use actix_web::http::header::{self, Accept, Header, Quality};
use actix_web::mime::{self, Mime};

use crate::connection::is_websocket;

/// Whether a client takes a media type: the range of its `Accept` header that names the type most closely decides. One
/// that sends no such header takes everything.
///
/// Source: RFC 9110, section 12.5.1.
pub fn accepts(req: &HttpRequest, kind: &str, subtype: &str) -> bool {
    if !req.headers().contains_key(header::ACCEPT) {
        return true;
    }
    let Ok(Accept(ranges)) = Accept::parse(req) else { return false };
    let closest = ranges.iter().max_by_key(|range| closeness(&range.item, kind, subtype));
    closest.is_some_and(|range| closeness(&range.item, kind, subtype) > 0 && range.quality > Quality::ZERO)
}

/// Whether a client wants Server-Sent Events: its `Accept` header names them, and lines no more than them.
pub fn wants_events(req: &HttpRequest) -> bool {
    let Ok(Accept(ranges)) = Accept::parse(req) else { return false };
    let quality = |kind, subtype| {
        let named = ranges.iter().filter(|range| closeness(&range.item, kind, subtype) == 3);
        named.map(|range| range.quality).max().unwrap_or(Quality::ZERO)
    };
    let events = quality("text", "event-stream");
    events > Quality::ZERO && events >= quality("application", "x-ndjson")
}

/// Whether a request asks for a WebSocket: it is among the protocols to which the client would go over.
///
/// Source: RFC 9110, section 7.8; RFC 6455, section 4.2.1.
pub fn wants_websocket(req: &HttpRequest) -> bool {
    req.headers().get_all(header::UPGRADE).any(|value| is_websocket(value.as_bytes()))
}

/// 3 for the type itself, 2 for `kind/*`, 1 for `*/*`, 0 for another.
fn closeness(range: &Mime, kind: &str, subtype: &str) -> u8 {
    match (range.type_(), range.subtype()) {
        (a, b) if a == kind && b == subtype => 3,
        (a, mime::STAR) if a == kind => 2,
        (mime::STAR, mime::STAR) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_closest_range_decides() {
        let takes = |accept: &str| {
            let req = TestRequest::default().insert_header((header::ACCEPT, accept)).to_http_request();
            accepts(&req, "multipart", "mixed")
        };
        for accept in ["*/*", "multipart/*", "multipart/mixed", "text/html, */*;q=0.1", "a/b, multipart/mixed;q=0.5"] {
            assert!(takes(accept), "{accept}");
        }
        for accept in ["application/json", "multipart/related", "*/*, multipart/mixed;q=0", "multipart/*;q=0, */*", "?"]
        {
            assert!(!takes(accept), "{accept}");
        }
        assert!(accepts(&TestRequest::default().to_http_request(), "multipart", "mixed"));
    }

    #[test]
    fn events_are_named_and_lines_are_not_named_before_them() {
        let wants = |accept: &str| {
            wants_events(&TestRequest::default().insert_header((header::ACCEPT, accept)).to_http_request())
        };
        for accept in
            ["text/event-stream", "Text/Event-Stream;q=0.2, */*", "application/x-ndjson;q=0.5, text/event-stream;q=0.5"]
        {
            assert!(wants(accept), "{accept}");
        }
        for accept in ["*/*", "text/*", "text/event-stream;q=0", "application/x-ndjson, text/event-stream;q=0.1", "?"] {
            assert!(!wants(accept), "{accept}");
        }
        assert!(!wants_events(&TestRequest::default().to_http_request()));
    }

    #[test]
    fn a_websocket_is_asked_for_by_its_whole_name() {
        let wants = |upgrade: &str| {
            wants_websocket(&TestRequest::default().insert_header((header::UPGRADE, upgrade)).to_http_request())
        };
        assert!(["websocket", "WebSocket", "foo, websocket"].into_iter().all(wants));
        assert!(!["websockets", "x-websocket", "foo"].into_iter().any(wants));
    }
}
