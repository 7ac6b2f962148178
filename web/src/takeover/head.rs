//! Heads of requests that the framework takes for something else than their senders mean, made what they mean.
//!
//! Targets as people type them, quotes and all: CouchDB's documentation has `curl '.../_all_docs?startkey="a"'`. CouchDB takes
//! them; the framework would refuse them, without a word, before anything here is asked.
//!
//! Offers to go on in HTTP/2, which Java's client makes with each request: who does not take them passes over them (RFC 9110, 7.8).
//! The framework would say that it does, and end the connection behind its answer.

use std::borrow::Cow;

use memchr::memmem;
use percent_encoding::{AsciiSet, percent_encode};

/// What the framework takes in no query, or in no path. Bytes beyond ASCII are escaped too.
const ESCAPED: &AsciiSet = &AsciiSet::EMPTY.add(b'"').add(b'<').add(b'>').add(b'`');

const LINE_END: &[u8] = b"\r\n";

/// What came in one piece, as it is meant; `None` where that is what it is. A piece of a body stays as it is: no JSON text has the
/// whole of a request's first line in it.
pub fn meant(piece: &[u8]) -> Option<Vec<u8>> {
    let mut words = piece.splitn(3, |byte| *byte == b' ');
    let (method, target, behind) = (words.next()?, words.next()?, words.next()?);
    let begins = target.starts_with(b"/") && behind.starts_with(b"HTTP/1.");
    if !begins || !method.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    match (Cow::from(percent_encode(target, ESCAPED)), without_offer(behind)) {
        (Cow::Borrowed(_), None) => None,
        (target, behind_it) => Some([method, target.as_bytes(), behind_it.as_deref().unwrap_or(behind)].join(&b' ')),
    }
}

/// The rest of a head, and what follows it, without an offer to go on in HTTP/2; `None` where there is none.
fn without_offer(behind: &[u8]) -> Option<Vec<u8>> {
    let end = memmem::find(behind, b"\r\n\r\n")?;
    let (head, rest) = behind.split_at(end);
    memmem::find(head, b"h2c")?;
    let lines: Vec<&[u8]> = lines(head).collect();
    lines.iter().find(|line| is_offer(line))?;
    let kept: Vec<Cow<'_, [u8]>> =
        lines.into_iter().filter(|line| !is_offer(line)).filter_map(without_mention).collect();
    Some([&kept.join(LINE_END), rest].concat())
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memmem::find_iter(head, LINE_END).map(|at| at + LINE_END.len()).chain([head.len() + LINE_END.len()]);
    let mut begin = 0;
    ends.map(move |end| &head[std::mem::replace(&mut begin, end)..end - LINE_END.len()])
}

/// A header's name and value.
fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

fn is_offer(line: &[u8]) -> bool {
    header(line)
        .is_some_and(|(name, value)| name.eq_ignore_ascii_case(b"upgrade") && value.eq_ignore_ascii_case(b"h2c"))
}

/// A line without what it says of the offer; `None` where it says nothing else.
fn without_mention(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    match header(line) {
        Some((name, _)) if name.eq_ignore_ascii_case(b"http2-settings") => None,
        Some((name, value)) if name.eq_ignore_ascii_case(b"connection") => {
            let options = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            let of_offer = |option: &[u8]| {
                option.eq_ignore_ascii_case(b"upgrade") || option.eq_ignore_ascii_case(b"http2-settings")
            };
            let others: Vec<&[u8]> = options.filter(|option| !of_offer(option)).collect();
            (!others.is_empty()).then(|| Cow::Owned([name, &others.join(&b", "[..])].join(&b": "[..])))
        }
        _ => Some(Cow::Borrowed(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant_text(piece: &str) -> Option<String> {
        meant(piece.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn what_people_type_into_a_target_is_escaped_and_nothing_behind_it() {
        let typed = "GET /db/_all_docs?startkey=\"ä<b>`\" HTTP/1.1\r\nX: \"ä\"\r\n\r\n{\"a\":1}";
        let expected = "GET /db/_all_docs?startkey=%22%C3%A4%3Cb%3E%60%22 HTTP/1.1\r\nX: \"ä\"\r\n\r\n{\"a\":1}";
        assert_eq!(meant_text(typed).as_deref(), Some(expected));
    }

    #[test]
    fn an_offer_to_go_on_in_http_2_is_passed_over() {
        let body = "\r\n\r\n{\"Upgrade\":\r\nConnection: Upgrade\r\n}";
        for (offer, left) in [
            (
                "Connection: Upgrade, HTTP2-Settings\r\nHost: here\r\nHTTP2-Settings: AAEAA\r\nUpgrade: h2c",
                "Host: here",
            ),
            (
                "Host: here\r\nconnection:keep-alive,upgrade\r\nupgrade:H2C\r\nX-A: h2c",
                "Host: here\r\nconnection: keep-alive\r\nX-A: h2c",
            ),
        ] {
            let request = format!("POST /db HTTP/1.1\r\n{offer}{body}");
            assert_eq!(meant_text(&request), Some(format!("POST /db HTTP/1.1\r\n{left}{body}")));
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for piece in [
            "",
            "GET",
            "GET /db?a=%22b%22&c={[|]}'#e HTTP/1.1\r\n\r\n",
            "GET /a\" b HTTP/1.1\r\n\r\n",
            "GET /\"\r\nHost: here HTTP/2",
            "GET /_feed HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: h2c\r\n\r\n",
            "POST /db HTTP/1.1\r\nConnection: close\r\n\r\nUpgrade: h2c\r\n\r\n",
            "{\"a\":\"GET /?\\\"b\\\" HTTP/1.1\"}",
            "get /\"a\" HTTP/1.1\r\n",
            "GET http://here/\"a\" HTTP/1.1\r\n",
        ] {
            assert_eq!(meant_text(piece), None, "{piece}");
        }
    }
}
