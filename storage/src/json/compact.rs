//! The pass over JSON text that checks it and leaves out white space and repeated members.
//!
//! White space goes as the text is copied. A repeated member is known only when its successor comes, so what it
//! makes obsolete is noted as a cut of the copy, and all cuts are made together at the end: linear at any depth.

use std::borrow::Cow;
use std::ops::Range;

use super::members::{Member, Members};
use super::{DocumentError, ScanLimits, number, string};

/// Compacts any JSON value: no white space outside strings, a repeated member once (the last, in last place). Numbers
/// and escapes keep their spelling.
///
/// # Errors
/// [`DocumentError::NotJson`]; [`DocumentError::NestedTooDeep`] and [`DocumentError::TooMany`] members.
pub fn compact_value(text: &[u8], limits: &ScanLimits) -> Result<Vec<u8>, DocumentError> {
    let compact = Compact::scan(text, limits)?;
    Ok(compact.into_text().into_bytes())
}

/// A checked text with what is still to be cut from it.
pub(super) struct Compact<'a> {
    text: String,
    /// Sorted by start; one may lie within another.
    cuts: Vec<Range<usize>>,
    /// The members of the outermost object, repeated ones included.
    members: Vec<Member<'a>>,
}

impl<'a> Compact<'a> {
    pub fn scan(text: &'a [u8], limits: &'a ScanLimits) -> Result<Compact<'a>, DocumentError> {
        let text = std::str::from_utf8(text).map_err(|_| DocumentError::NotJson)?;
        let mut scanner = Scanner::new(text, limits);
        scanner.run()?;
        let Scanner { out, mut cuts, members, .. } = scanner;
        cuts.sort_unstable_by_key(|cut| cut.start);
        Ok(Compact { text: out, cuts, members: members.into_list() })
    }

    pub fn is_object(&self) -> bool {
        self.text.starts_with('{')
    }

    /// The outermost object's members that count, in order.
    pub fn members(&self) -> impl Iterator<Item = (usize, &Member<'a>)> {
        self.members.iter().enumerate().filter(|(_, member)| !member.repeated)
    }

    /// The compacted text of a member's value.
    pub fn value(&self, place: usize) -> Cow<'_, str> {
        let member = &self.members[place];
        // What follows a value is the next member's comma, or the closing brace.
        let end = self.members.get(place + 1).map_or(self.text.len(), |next| next.start) - 1;
        self.piece(member.value..end)
    }

    /// The text without the members at these places: an object that had only those is `{}`.
    pub fn into_text_without(mut self, places: &[usize]) -> String {
        let last = self.text.len() - 1;
        let end = |place: usize| self.members.get(place + 1).map_or(last, |next| next.start);
        self.cuts.extend(places.iter().map(|&place| self.members[place].start..end(place)));
        self.cuts.sort_unstable_by_key(|cut| cut.start);
        let mut text = self.into_text();
        // The comma before a cut last member; no string can end in `,}`.
        if text.ends_with(",}") {
            text.remove(text.len() - 2);
        }
        text
    }

    fn into_text(self) -> String {
        match self.piece(0..self.text.len()) {
            Cow::Owned(text) => text,
            Cow::Borrowed(_) => self.text,
        }
    }

    /// A part of the text, the cuts made.
    fn piece(&self, range: Range<usize>) -> Cow<'_, str> {
        let mut cuts = self.cuts.iter().filter(|cut| range.contains(&cut.start)).peekable();
        if cuts.peek().is_none() {
            return Cow::Borrowed(&self.text[range]);
        }
        let mut out = String::with_capacity(range.len());
        let mut kept_from = range.start;
        for cut in cuts {
            if kept_from < cut.start {
                out.push_str(&self.text[kept_from..cut.start]);
            }
            kept_from = kept_from.max(cut.end);
        }
        out.push_str(&self.text[kept_from..range.end]);
        Cow::Owned(out)
    }
}

/// What follows a step of the scan.
enum Next {
    /// A value starts here.
    Value,
    /// A value has ended here.
    AfterValue,
}

struct Scanner<'a> {
    source: &'a str,
    pos: usize,
    /// The source up to here is in `out`, or was white space.
    copied: usize,
    out: String,
    /// The closing bytes of the containers that are open.
    closers: Vec<u8>,
    members: Members<'a>,
    cuts: Vec<Range<usize>>,
    limits: &'a ScanLimits,
}

impl<'a> Scanner<'a> {
    fn new(source: &'a str, limits: &'a ScanLimits) -> Scanner<'a> {
        Scanner {
            source,
            pos: 0,
            copied: 0,
            out: String::with_capacity(source.len()),
            closers: Vec::new(),
            members: Members::new(),
            cuts: Vec::new(),
            limits,
        }
    }

    fn run(&mut self) -> Result<(), DocumentError> {
        loop {
            if let Next::Value = self.value()? {
                continue;
            }
            while !self.closers.is_empty() {
                if let Next::Value = self.separator()? {
                    break;
                }
            }
            if self.closers.is_empty() {
                return self.end();
            }
        }
    }

    fn end(&mut self) -> Result<(), DocumentError> {
        self.skip_space();
        self.copy();
        if self.pos == self.source.len() { Ok(()) } else { Err(DocumentError::NotJson) }
    }

    /// Reads a value, or a container's opening and what comes before its first value.
    fn value(&mut self) -> Result<Next, DocumentError> {
        self.skip_space();
        let end = match self.peek() {
            Some(b'{') => return self.open(b'}'),
            Some(b'[') => return self.open(b']'),
            Some(b'"') => string::scan(self.source.as_bytes(), self.pos).map(|scanned| scanned.end),
            Some(b'-' | b'0'..=b'9') => number::scan(self.source, self.pos),
            _ => self.literal(),
        };
        self.pos = end.ok_or(DocumentError::NotJson)?;
        Ok(Next::AfterValue)
    }

    fn literal(&self) -> Option<usize> {
        let rest = &self.source.as_bytes()[self.pos..];
        let literal = ["null", "true", "false"].iter().find(|literal| rest.starts_with(literal.as_bytes()))?;
        Some(self.pos + literal.len())
    }

    fn open(&mut self, closer: u8) -> Result<Next, DocumentError> {
        let max = self.limits.nesting_max;
        if self.closers.len() >= max {
            return Err(DocumentError::NestedTooDeep { max });
        }
        self.pos += 1;
        self.skip_space();
        if self.peek() == Some(closer) {
            self.pos += 1;
            return Ok(Next::AfterValue);
        }
        self.closers.push(closer);
        if closer == b'}' {
            self.members.open();
            self.member_name()?;
        }
        Ok(Next::Value)
    }

    /// Reads what follows a value: a comma and what comes before the next value, or the container's end.
    fn separator(&mut self) -> Result<Next, DocumentError> {
        self.skip_space();
        let in_object = self.closers.last() == Some(&b'}');
        let byte = self.peek();
        self.pos += 1;
        if byte == Some(b',') {
            if in_object {
                self.member_name()?;
            }
            return Ok(Next::Value);
        }
        if byte.is_none() || byte != self.closers.pop() {
            return Err(DocumentError::NotJson);
        }
        // The outermost object's members are asked for later.
        if in_object && !self.closers.is_empty() {
            self.members.close();
        }
        Ok(Next::AfterValue)
    }

    /// Reads a member's name and the colon after it.
    fn member_name(&mut self) -> Result<(), DocumentError> {
        // One that is known takes ten times the text of a short one.
        let max = self.limits.members_max;
        if self.members.len() >= max {
            return Err(DocumentError::TooMany { what: "members", max });
        }
        self.skip_space();
        let start = self.copied_pos();
        if self.peek() != Some(b'"') {
            return Err(DocumentError::NotJson);
        }
        let scanned = string::scan(self.source.as_bytes(), self.pos).ok_or(DocumentError::NotJson)?;
        let inner = &self.source[self.pos + 1..scanned.end - 1];
        let name = if scanned.escaped { string::unescape(inner) } else { Cow::Borrowed(inner) };
        self.pos = scanned.end;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(DocumentError::NotJson);
        }
        self.pos += 1;
        let member = Member { name, start, value: self.copied_pos(), repeated: false };
        if let Some(cut) = self.members.add(member) {
            self.cut(cut);
        }
        Ok(())
    }

    fn cut(&mut self, cut: Range<usize>) {
        match self.cuts.last_mut() {
            Some(last) if last.end == cut.start => last.end = cut.end,
            _ => self.cuts.push(cut),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.pos).copied()
    }

    fn skip_space(&mut self) {
        let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        if !self.peek().is_some_and(|byte| space(&byte)) {
            return;
        }
        self.copy();
        self.pos += self.source.as_bytes()[self.pos..].iter().take_while(|byte| space(byte)).count();
        self.copied = self.pos;
    }

    /// Copies what has been read since the last white space.
    fn copy(&mut self) {
        self.out.push_str(&self.source[self.copied..self.pos]);
        self.copied = self.pos;
    }

    /// Where the next byte read will lie in the compacted text.
    fn copied_pos(&self) -> usize {
        self.out.len() + (self.pos - self.copied)
    }
}
