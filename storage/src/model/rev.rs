//! Revision ids: `3-9ac0…`.
//!
//! Source: CouchDB's `couch_doc:parse_rev` and `couch_doc:revid_to_str`. A hash of 32 hex digits is kept as its
//! 16 bytes and printed in lower case; any other text is kept as it is, so that hand-made revisions (`1-a`) work.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

use crate::json::write_json_string;

/// The longest text hash that is accepted, in bytes.
pub const REV_HASH_MAX_BYTES: usize = 128;

/// The part of a revision id after the dash.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum RevHash {
    /// 32 hex digits, as 16 bytes: what CouchDB and Seqtide make themselves.
    Md5([u8; 16]),
    /// Anything else.
    Text(TextHash),
}

/// A hash as text of at most [`REV_HASH_MAX_BYTES`] bytes, which are not 32. Others than this crate make it by
/// [`RevHash::parse`] alone: a longer one would be a row that nobody can read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TextHash(Arc<str>);

impl Deref for TextHash {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl RevHash {
    /// Reads the text after the dash.
    ///
    /// # Errors
    /// [`RevError::Format`] when 32 characters are not hex, [`RevError::TooLong`] above [`REV_HASH_MAX_BYTES`].
    pub fn parse(text: &str) -> Result<RevHash, RevError> {
        if text.len() == 32 {
            let mut digest = [0; 16];
            let read = HEXLOWER_PERMISSIVE.decode_mut(text.as_bytes(), &mut digest);
            return read.map(|_all| RevHash::Md5(digest)).map_err(|_| RevError::Format);
        }
        if text.len() > REV_HASH_MAX_BYTES {
            return Err(RevError::TooLong);
        }
        Ok(RevHash::Text(TextHash(text.into())))
    }

    /// As it was stored, which was parsed before.
    pub(crate) fn stored_text(text: &str) -> RevHash {
        RevHash::Text(TextHash(text.into()))
    }

    /// The bytes that CouchDB compares, hashes and stores: 16 raw bytes, or the text.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            RevHash::Md5(digest) => digest,
            RevHash::Text(text) => text.as_bytes(),
        }
    }
}

/// CouchDB's order of binaries: byte order, a prefix before its extension. The kind decides only between equal bytes.
impl Ord for RevHash {
    fn cmp(&self, other: &Self) -> Ordering {
        let kind = |hash: &RevHash| matches!(hash, RevHash::Text(_));
        self.as_bytes().cmp(other.as_bytes()).then_with(|| kind(self).cmp(&kind(other)))
    }
}

impl PartialOrd for RevHash {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RevHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RevHash::Md5(digest) => f.write_str(HEXLOWER.encode_mut_str(digest, &mut [0; 32])),
            RevHash::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for RevHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One revision of a document, printed as `generation-hash`. Ordered by generation, then hash.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RevId {
    /// How many edits lead here from the root, the root being 1.
    pub generation: u64,
    /// What tells this edit from others of the same generation.
    pub hash: RevHash,
}

impl RevId {
    /// Puts a revision id together.
    pub fn new(generation: u64, hash: RevHash) -> RevId {
        RevId { generation, hash }
    }

    /// Reads `generation-hash`.
    ///
    /// # Errors
    /// [`RevError::Format`] without a dash, without a decimal generation, or with 32 characters that are not hex;
    /// [`RevError::TooLong`] for a hash above [`REV_HASH_MAX_BYTES`].
    pub fn parse(text: &str) -> Result<RevId, RevError> {
        let (generation, hash) = text.split_once('-').ok_or(RevError::Format)?;
        if generation.is_empty() || !generation.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RevError::Format);
        }
        let generation = generation.parse().map_err(|_| RevError::Format)?;
        Ok(RevId { generation, hash: RevHash::parse(hash)? })
    }

    /// Appends it as a JSON string.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.hash {
            RevHash::Md5(digest) => {
                out.push(b'"');
                out.extend_from_slice(itoa::Buffer::new().format(self.generation).as_bytes());
                out.push(b'-');
                out.extend_from_slice(HEXLOWER.encode_mut_str(digest, &mut [0; 32]).as_bytes());
                out.push(b'"');
            }
            RevHash::Text(_) => write_json_string(out, &self.to_string()),
        }
    }
}

impl fmt::Display for RevId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(itoa::Buffer::new().format(self.generation))?;
        f.write_str("-")?;
        fmt::Display::fmt(&self.hash, f)
    }
}

impl fmt::Debug for RevId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a revision id is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RevError {
    /// Not `generation-hash`, or 32 characters that are not hex.
    #[error("Invalid rev format")]
    Format,
    /// The hash is longer than [`REV_HASH_MAX_BYTES`].
    #[error("Invalid rev format: the part after the dash is longer than 128 bytes")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rev(text: &str) -> RevId {
        RevId::parse(text).unwrap()
    }

    #[test]
    fn hex_hashes_print_in_lower_case_and_text_hashes_as_given() {
        assert_eq!(rev("1-ABCDEF00ABCDEF00ABCDEF00ABCDEF00").to_string(), "1-abcdef00abcdef00abcdef00abcdef00");
        for text in ["1-a", "2-", "0-x", "1-abcdefghijklmnop", "17-Zz"] {
            assert_eq!(rev(text).to_string(), text);
        }
    }

    #[test]
    fn a_revision_in_json_is_its_text_in_quotes() {
        for (text, json) in [
            ("12-ABCDEF00ABCDEF00ABCDEF00ABCDEF00", "\"12-abcdef00abcdef00abcdef00abcdef00\""),
            ("3-a\"b", r#""3-a\"b""#),
        ] {
            let mut out = Vec::new();
            rev(text).write_json(&mut out);
            assert_eq!(out, json.as_bytes());
        }
    }

    #[test]
    fn bad_revisions_are_refused() {
        for text in
            ["", "abc", "-a", "x-a", "+1-a", "1.5-a", "1-zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "99999999999999999999-a"]
        {
            assert_eq!(RevId::parse(text), Err(RevError::Format), "{text}");
        }
        assert_eq!(RevId::parse(&format!("1-{}", "a".repeat(129))), Err(RevError::TooLong));
        assert!(RevId::parse(&format!("1-{}", "a".repeat(128))).is_ok());
    }

    #[test]
    fn hashes_compare_as_couchdb_binaries() {
        assert!(rev("1-ffffffffffffffffffffffffffffffff") > rev("1-zz"));
        assert!(rev("1-0") > rev("1-00000000000000000000000000000000"));
        assert!(rev("1-aa") < rev("1-aaa"));
        assert!(rev("10-a") > rev("9-b"));
    }
}
