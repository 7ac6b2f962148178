//! Requests' targets as people type them, quotes and all: CouchDB's documentation has `curl '.../_all_docs?startkey="a"'`.
//! CouchDB takes them; the framework would refuse them, without a word, before anything here is asked.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, percent_encode};

/// What the framework takes in no query, or in no path. Bytes beyond ASCII are escaped too.
const ESCAPED: &AsciiSet = &AsciiSet::EMPTY.add(b'"').add(b'<').add(b'>').add(b'`');

/// What came in one piece, with what its target has to escape escaped; `None` where that is nothing. A piece of a body
/// stays as it is: no JSON text has the whole of a request's first line in it.
pub fn escaped(piece: &[u8]) -> Option<Vec<u8>> {
    let mut words = piece.splitn(3, |byte| *byte == b' ');
    let (method, target, behind) = (words.next()?, words.next()?, words.next()?);
    let begins = target.starts_with(b"/") && behind.starts_with(b"HTTP/1.");
    if !begins || !method.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    match Cow::from(percent_encode(target, ESCAPED)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(target) => Some([method, target.as_bytes(), behind].join(&b' ')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped_text(piece: &str) -> Option<String> {
        escaped(piece.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn what_people_type_into_a_target_is_escaped_and_nothing_behind_it() {
        let typed = "GET /db/_all_docs?startkey=\"ä <b>`\" HTTP/1.1\r\nX: \"ä\"\r\n\r\n{\"a\":1}";
        assert_eq!(escaped_text(typed), None, "a blank ends a target");
        let typed = typed.replace("ä <b>", "ä<b>");
        let expected = "GET /db/_all_docs?startkey=%22%C3%A4%3Cb%3E%60%22 HTTP/1.1\r\nX: \"ä\"\r\n\r\n{\"a\":1}";
        assert_eq!(escaped_text(&typed).as_deref(), Some(expected));
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for piece in [
            "",
            "GET",
            "GET /db?a=%22b%22&c={[|]}'#e HTTP/1.1\r\n\r\n",
            "GET /\"\r\nHost: here HTTP/2",
            "{\"a\":\"GET /?\\\"b\\\" HTTP/1.1\"}",
            "get /\"a\" HTTP/1.1\r\n",
            "GET http://here/\"a\" HTTP/1.1\r\n",
        ] {
            assert_eq!(escaped_text(piece), None, "{piece}");
        }
    }
}
