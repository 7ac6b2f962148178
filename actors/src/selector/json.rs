//! Reading compacted JSON text in place: nothing is copied, no tree is built, what is not asked for is skipped.
//!
//! The text was checked when it came in. A text that was not gives wrong values, no panic and no endless loop.

use std::borrow::Cow;

use seqtide_storage::json::write_json_string;

use super::number::Number;

/// The text of one value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Json<'a>(pub &'a str);

/// A value, looked at one level deep.
#[derive(Debug, Clone)]
pub(super) enum Datum<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    String(Cow<'a, str>),
    Array(Elements<'a>),
    Object(Entries<'a>),
}

impl<'a> Json<'a> {
    pub fn datum(self) -> Datum<'a> {
        match self.0.as_bytes().first() {
            Some(b'"') => {
                let (text, _) = split_string(&self.0[1..]);
                Datum::String(text)
            }
            Some(b'{') => Datum::Object(self.entries()),
            Some(b'[') => Datum::Array(Elements { rest: &self.0[1..] }),
            Some(b't') => Datum::Bool(true),
            Some(b'f') => Datum::Bool(false),
            Some(b'-' | b'0'..=b'9') => Datum::Number(Number::parse(self.0)),
            _ => Datum::Null,
        }
    }

    /// The members of an object; none of another value.
    pub fn entries(self) -> Entries<'a> {
        Entries { rest: self.0.strip_prefix('{').unwrap_or_default() }
    }

    /// Writes the value anew, with the fewest escapes. Descends as deep as the value nests.
    pub fn write_plainly(self, out: &mut Vec<u8>) {
        match self.datum() {
            Datum::String(text) => write_json_string(out, &text),
            Datum::Array(elements) => {
                out.push(b'[');
                for (place, element) in elements.enumerate() {
                    out.extend((place > 0).then_some(b','));
                    element.write_plainly(out);
                }
                out.push(b']');
            }
            Datum::Object(entries) => {
                out.push(b'{');
                for (place, (name, value)) in entries.enumerate() {
                    out.extend((place > 0).then_some(b','));
                    write_json_string(out, &name);
                    out.push(b':');
                    value.write_plainly(out);
                }
                out.push(b'}');
            }
            _ => out.extend_from_slice(self.0.as_bytes()),
        }
    }

    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }
}

/// The elements of an array.
#[derive(Debug, Clone)]
pub(super) struct Elements<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        if self.rest.is_empty() || self.rest.starts_with(']') {
            return None;
        }
        let value;
        (value, self.rest) = split_value(self.rest);
        Some(value)
    }
}

/// The members of an object, in order.
#[derive(Debug, Clone)]
pub(super) struct Entries<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let from_name = self.rest.strip_prefix('"')?;
        let (name, from_colon) = split_string(from_name);
        let value;
        (value, self.rest) = split_value(from_colon.get(1..)?);
        Some((name, value))
    }
}

/// The value at the start of a text, and what follows its comma.
fn split_value(text: &str) -> (Json<'_>, &str) {
    let end = end_of_value(text.as_bytes());
    (Json(&text[..end]), text.get(end + 1..).unwrap_or_default())
}

/// The string whose opening quote was before this text, and what follows its closing quote.
fn split_string(text: &str) -> (Cow<'_, str>, &str) {
    let (end, escaped) = end_of_string(text.as_bytes());
    let inner = &text[..end];
    let string = match escaped {
        false => Cow::Borrowed(inner),
        true => Cow::Owned(serde_json::from_str(&format!("\"{inner}\"")).unwrap_or_default()),
    };
    (string, text.get(end + 1..).unwrap_or_default())
}

// Every offset that these give is an ASCII character's or the text's end, and so a place where a `str` may be cut.

/// Where the value at the start of a text ends.
fn end_of_value(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'"') => after_string(bytes, 0),
        Some(b'{' | b'[') => end_of_nested(bytes),
        _ => bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(bytes.len()),
    }
}

fn end_of_nested(bytes: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = after_string(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The offset after the string whose opening quote is at `at`.
fn after_string(bytes: &[u8], at: usize) -> usize {
    let inner = bytes.get(at + 1..).unwrap_or_default();
    (at + 1 + end_of_string(inner).0 + 1).min(bytes.len())
}

/// The offset of the closing quote of a string whose text starts here, and whether there are escapes before it.
fn end_of_string(bytes: &[u8]) -> (usize, bool) {
    let mut at = 0;
    let mut escaped = false;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(plain) if rest[plain] == b'"' => return (at + plain, escaped),
            Some(plain) => (at, escaped) = (at + plain + 2, true),
            None => return (bytes.len(), escaped),
        }
    }
}
