//! The documents that are written, by number: ids that look random, as those that clients make, and 200 bytes each.

use std::io::Write;
use std::ops::Range;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Bytes of a document, without the members that begin with an underscore.
const BYTES: usize = 200;
/// Digits of the number, the one thing in which documents differ.
const DIGITS: usize = 10;
const BEFORE_NUMBER: &str = r#""type":"order","state":"paid","customer":"customer-0004711","total":129.95,"placed":"2026-11-21","lines":[{"sku":"A-7","n":2},{"sku":"B-12","n":1}],"note":"leave it at the door","order":""#;
const AFTER_NUMBER: &str = r#""}"#;
const JSON: &str = "application/json";
const _: () = assert!(1 + BEFORE_NUMBER.len() + DIGITS + AFTER_NUMBER.len() == BYTES);

/// A document's id: 32 hex digits.
pub fn id(number: u64) -> String {
    format!("{:032x}", StdRng::seed_from_u64(number).random::<u128>())
}

/// Writes a document; `members` are those that begin with an underscore, each with a comma behind it.
fn write_document(number: u64, members: &str, into: &mut Vec<u8>) {
    write!(into, "{{{members}{BEFORE_NUMBER}{number:0DIGITS$}{AFTER_NUMBER}").expect("memory takes it");
}

/// Writes a `PUT` of a new document.
pub fn write_put(number: u64, into: &mut Vec<u8>) {
    write_update(number, "", into);
}

/// Writes a `PUT` of a document that has the members.
pub fn write_update(number: u64, members: &str, into: &mut Vec<u8>) {
    write_head(&format!("PUT /db/{}", id(number)), JSON, members.len() + BYTES, into);
    write_document(number, members, into);
}

/// Writes an append of a document to the stream `/stream` of the rival, to which it is bytes.
pub fn write_append(number: u64, into: &mut Vec<u8>) {
    write_head("POST /stream", "application/octet-stream", BYTES, into);
    write_document(number, "", into);
}

/// Writes a `_bulk_docs` of new documents.
pub fn write_bulk(numbers: Range<u64>, into: &mut Vec<u8>) {
    let mut body = br#"{"docs":["#.to_vec();
    for number in numbers.clone() {
        if number > numbers.start {
            body.push(b',');
        }
        write_document(number, &format!(r#""_id":"{}","#, id(number)), &mut body);
    }
    body.extend_from_slice(b"]}");
    write_head("POST /db/_bulk_docs", JSON, body.len(), into);
    into.extend_from_slice(&body);
}

fn write_head(line: &str, content_type: &str, length: usize, into: &mut Vec<u8>) {
    write!(into, "{line} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n")
        .expect("memory takes it");
}

/// The revisions in an answer, in its order.
pub fn revs(answer: &[u8]) -> impl Iterator<Item = &str> {
    const BEFORE: &[u8] = br#""rev":""#;
    memchr::memmem::find_iter(answer, BEFORE).map(|at| {
        let rest = &answer[at + BEFORE.len()..];
        let end = memchr::memchr(b'"', rest).expect("the end of a text");
        std::str::from_utf8(&rest[..end]).expect("a revision")
    })
}
