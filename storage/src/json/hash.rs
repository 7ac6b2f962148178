//! CouchDB's revision hash, made from a body's text in one pass.

use md5::{Digest, Md5};

use super::term::{OpenList, Term};
use super::{Body, string};
use crate::model::rev::{RevHash, RevId};

/// Makes the hash of a new revision: the same edit of the same parent gives the same hash, here and on a CouchDB.
///
/// It is the MD5 of the Erlang term `[deleted, parent's generation or 0, parent's hash or 0, body, []]`; the empty list
/// stands for attachments. An integer of more than 4096 digits is hashed as text, so that a document with one gets
/// another hash than on a CouchDB. Takes up to three times the body's size in memory.
///
/// Source: CouchDB's `couch_db:new_revid`.
pub fn revision_hash(body: &Body, parent: Option<&RevId>, deleted: bool) -> RevHash {
    let text = body.as_str();
    let mut term = Term::with_capacity(96 + 2 * text.len());
    let mut edit = term.open_list();
    (0..5).for_each(|_| edit.count());
    term.atom(if deleted { "true" } else { "false" });
    match parent {
        Some(parent) => {
            term.number(&parent.generation.to_string());
            term.binary(parent.hash.as_bytes());
        }
        None => {
            term.integer(0);
            term.integer(0);
        }
    }
    let mut json = JsonTerm { term, open: Vec::new() };
    json.write(text);
    let mut term = json.term;
    let attachments = term.open_list();
    term.close_list(attachments);
    term.close_list(edit);
    RevHash::Md5(Md5::digest(term.bytes()).into())
}

enum Open {
    Array(OpenList),
    /// `at_name`: whether the next string is a member's name.
    Object {
        members: OpenList,
        at_name: bool,
    },
}

/// Writes JSON as CouchDB holds it in Erlang: an object is a tuple with a list of name and value tuples.
struct JsonTerm {
    term: Term,
    open: Vec<Open>,
}

impl JsonTerm {
    /// Writes a compacted text. Text that is none ends somewhere, wrongly.
    fn write(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at = match byte {
                b'"' => self.string(text, at),
                b'-' | b'0'..=b'9' => self.number(text, at),
                b't' | b'f' | b'n' => self.atom(text, at),
                _ => {
                    self.structure(*byte);
                    at + 1
                }
            };
        }
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' => {
                self.count_element();
                self.term.tuple(1);
                let members = self.term.open_list();
                self.open.push(Open::Object { members, at_name: true });
            }
            b'[' => {
                self.count_element();
                let elements = self.term.open_list();
                self.open.push(Open::Array(elements));
            }
            b'}' | b']' => match self.open.pop() {
                Some(Open::Array(list) | Open::Object { members: list, .. }) => self.term.close_list(list),
                None => {}
            },
            b',' => {
                if let Some(Open::Object { at_name, .. }) = self.open.last_mut() {
                    *at_name = true;
                }
            }
            _ => {}
        }
    }

    /// Counts a value that is no number.
    fn count_element(&mut self) {
        if let Some(Open::Array(elements)) = self.open.last_mut() {
            elements.count();
        }
    }

    fn string(&mut self, text: &str, at: usize) -> usize {
        match self.open.last_mut() {
            Some(Open::Object { members, at_name }) if *at_name => {
                *at_name = false;
                members.count();
                self.term.tuple(2);
            }
            _ => self.count_element(),
        }
        let Some(scanned) = string::scan(text.as_bytes(), at) else {
            return text.len();
        };
        let inner = &text[at + 1..scanned.end - 1];
        if scanned.escaped {
            self.term.binary(string::unescape(inner).as_bytes());
        } else {
            self.term.binary(inner.as_bytes());
        }
        scanned.end
    }

    fn number(&mut self, text: &str, at: usize) -> usize {
        let end = token_end(text, at);
        let is_byte = self.term.number(&text[at..end]);
        if let Some(Open::Array(elements)) = self.open.last_mut() {
            elements.count_number(is_byte);
        }
        end
    }

    fn atom(&mut self, text: &str, at: usize) -> usize {
        self.count_element();
        let end = token_end(text, at);
        self.term.atom(&text[at..end]);
        end
    }
}

fn token_end(text: &str, at: usize) -> usize {
    let token = text.as_bytes()[at..].iter().take_while(|byte| !matches!(byte, b',' | b']' | b'}'));
    at + token.count()
}
