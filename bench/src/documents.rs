//! The documents that are written, by number: ids that look random, as those that clients make, and 200 bytes each.
//! Each says who wrote it when, for whoever receives it.

use std::io::Write;
use std::ops::Range;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::Error;

/// Bytes of a document, without the members that begin with an underscore.
pub const BYTES: usize = 200;
/// What stands in front of a stamp.
const MARKER: &[u8] = br#""stamp":""#;
/// Digits of a document's number, and of its time in microseconds.
const DIGITS: usize = 12;
/// Bytes of a stamp behind its marker: two numbers with a dash between them.
const STAMP_BYTES: usize = 2 * DIGITS + 1;
const REST: &str = r#"","type":"order","state":"paid","customer":"customer-04711","total":129.95,"placed":"2026-11-21","lines":[{"sku":"A-7","n":2},{"sku":"B-12","n":1}],"note":"at door"}"#;
const JSON: &str = "application/json";
const _: () = assert!(1 + MARKER.len() + STAMP_BYTES + REST.len() == BYTES);

/// Which document it is, and when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Its number among those of its load.
    pub number: u64,
    /// Microseconds from the beginning of the load.
    pub micros: u64,
}

impl Stamp {
    /// The stamp of a document that nobody measures the way of.
    pub fn of(number: u64) -> Stamp {
        Stamp { number, micros: 0 }
    }

    fn parse(text: &[u8; STAMP_BYTES]) -> Option<Stamp> {
        let (number, micros) = (digits(&text[..DIGITS])?, digits(&text[DIGITS + 1..])?);
        (text[DIGITS] == b'-').then_some(Stamp { number, micros })
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0, |value, digit| digit.is_ascii_digit().then(|| 10 * value + u64::from(digit - b'0')))
}

/// Finds stamps in bytes.
pub struct StampFinder(memchr::memmem::Finder<'static>);

impl Default for StampFinder {
    fn default() -> StampFinder {
        StampFinder(memchr::memmem::Finder::new(MARKER))
    }
}

impl StampFinder {
    /// The first stamp, and where the bytes behind it begin; `None` where there is none as a whole.
    pub fn find(&self, bytes: &[u8]) -> Option<(Stamp, usize)> {
        let mut from = 0;
        loop {
            let begin = from + self.0.find(&bytes[from..])? + MARKER.len();
            if let Some(stamp) = Stamp::parse(bytes[begin..].first_chunk()?) {
                return Some((stamp, begin + STAMP_BYTES));
            }
            from = begin;
        }
    }
}

/// A document's id: 32 hex digits.
pub fn id(number: u64) -> String {
    let mut hasher = SipHasher13::new();
    std::hash::Hasher::write_u64(&mut hasher, number);
    format!("{:032x}", hasher.finish128().as_u128())
}

/// Writes a document; `members` are those that begin with an underscore, each with a comma behind it.
fn write_document(stamp: Stamp, members: &str, into: &mut Vec<u8>) {
    let Stamp { number, micros } = stamp;
    into.push(b'{');
    into.extend_from_slice(members.as_bytes());
    into.extend_from_slice(MARKER);
    // Memory takes whatever is written to it.
    let _ = write!(into, "{number:0DIGITS$}-{micros:0DIGITS$}");
    into.extend_from_slice(REST.as_bytes());
}

/// Writes a `PUT` of a new document below a path.
pub fn write_put(path: &str, stamp: Stamp, into: &mut Vec<u8>) {
    write_update(path, stamp, "", into);
}

/// Writes a `PUT` of a document that has the members, `"_rev":"1-x",` for one.
pub fn write_update(path: &str, stamp: Stamp, members: &str, into: &mut Vec<u8>) {
    write_head(format_args!("PUT {path}/{}", id(stamp.number)), JSON, members.len() + BYTES, into);
    write_document(stamp, members, into);
}

/// Writes a `POST` of a document to a path that takes bytes of this type.
pub fn write_post(path: &str, content_type: &str, stamp: Stamp, into: &mut Vec<u8>) {
    write_head(format_args!("POST {path}"), content_type, BYTES, into);
    write_document(stamp, "", into);
}

/// Writes a `_bulk_docs` of new documents to a database.
pub fn write_bulk(database: &str, numbers: Range<u64>, into: &mut Vec<u8>) {
    let mut body = br#"{"docs":["#.to_vec();
    for number in numbers.clone() {
        if number > numbers.start {
            body.push(b',');
        }
        write_document(Stamp::of(number), &format!(r#""_id":"{}","#, id(number)), &mut body);
    }
    body.extend_from_slice(b"]}");
    write_head(format_args!("POST {database}/_bulk_docs"), JSON, body.len(), into);
    into.extend_from_slice(&body);
}

fn write_head(line: std::fmt::Arguments, content_type: &str, length: usize, into: &mut Vec<u8>) {
    let _ = write!(
        into,
        "{line} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
}

/// The revisions in an answer, in its order.
pub fn revs(answer: &[u8]) -> impl Iterator<Item = &str> {
    const BEFORE: &[u8] = br#""rev":""#;
    memchr::memmem::find_iter(answer, BEFORE).filter_map(|at| {
        let rest = &answer[at + BEFORE.len()..];
        std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()
    })
}

/// Asserts that an answer to `_bulk_docs` says of so many documents that they were written.
///
/// # Errors
/// When it says so of fewer.
pub fn expect_revs(answer: &[u8], documents: u64) -> Result<(), Error> {
    let written = revs(answer).count() as u64;
    if written == documents {
        return Ok(());
    }
    let start = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
    Err(Error::Protocol(format!("{written} of {documents} documents were written: {start}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found_in_what_it_was_written_to() {
        let stamp = Stamp { number: 123, micros: 45_678_901 };
        let mut request = Vec::new();
        write_put("/db", stamp, &mut request);
        let body = request.split_off(request.len() - BYTES);
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(document["stamp"], "000000000123-000045678901");
        let finder = StampFinder::default();
        let twice = [&body[..], b",{\"stamp\":\"short\"}", &body[..60]].concat();
        let (found, end) = finder.find(&twice).unwrap();
        assert_eq!(found, stamp);
        assert_eq!(finder.find(&twice[end..]).map(|(found, _)| found), Some(stamp), "what is no stamp is passed over");
        assert_eq!(finder.find(&body[..1 + MARKER.len() + STAMP_BYTES - 1]), None, "half a stamp");
    }

    #[test]
    fn an_answer_that_refuses_a_document_is_an_error() {
        let answer = br#"[{"ok":true,"id":"a","rev":"1-x"},{"id":"b","error":"conflict","reason":"no"}]"#;
        assert_eq!(revs(answer).collect::<Vec<_>>(), ["1-x"]);
        assert!(expect_revs(answer, 1).is_ok());
        assert!(expect_revs(answer, 2).unwrap_err().to_string().contains("conflict"));
    }
}
