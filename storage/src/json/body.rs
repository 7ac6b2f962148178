//! A document's body.

use bytes::Bytes;

/// A document's body: compacted JSON text of an object without special members, `{…}`. Cloning shares the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Body(Bytes);

impl Body {
    /// `{}`.
    pub fn empty() -> Body {
        Body(Bytes::from_static(b"{}"))
    }

    /// Takes back a text that a [`Body`] gave and storage kept. Other text gives wrong hashes and answers, no panic.
    pub fn from_stored(text: Bytes) -> Body {
        Body(text)
    }

    /// Takes a text that a scan made.
    pub(super) fn from_scan(text: String) -> Body {
        if text == "{}" { Body::empty() } else { Body(exact(text)) }
    }

    /// Tells whether the object has no members.
    pub fn is_empty(&self) -> bool {
        self.members().is_empty()
    }

    /// The text, braces included.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The text, braces included; empty for stored bytes that are no UTF-8.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The text between the braces, so that an answer can put `_id` and `_rev` in front.
    pub fn members(&self) -> &[u8] {
        self.0.get(1..self.0.len().saturating_sub(1)).unwrap_or_default()
    }
}

/// Bytes without spare capacity: bodies are kept in memory by the thousands.
pub(super) fn exact(text: String) -> Bytes {
    Bytes::from(text.into_boxed_str().into_boxed_bytes())
}
