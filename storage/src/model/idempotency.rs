//! What makes a request's repetition known: the key its client chose, and a fingerprint of what it asked for.

use std::fmt;
use std::sync::Arc;

use md5::{Digest, Md5};

/// The longest key, in bytes.
pub const IDEMPOTENCY_KEY_MAX_BYTES: usize = 255;

/// A client's name for one write request, the same at every attempt: 1 to [`IDEMPOTENCY_KEY_MAX_BYTES`] printable ASCII
/// characters. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Arc<str>);

/// Why a text is no [`IdempotencyKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdempotencyKeyError {
    /// It has no characters.
    #[error("an idempotency key is 1 to 255 printable ASCII characters, and this one is empty")]
    Empty,
    /// It has too many.
    #[error("an idempotency key is 1 to 255 printable ASCII characters, and this one has {bytes} bytes")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// It has others.
    #[error("an idempotency key is 1 to 255 printable ASCII characters, and this one has others")]
    NotPrintable,
}

impl IdempotencyKey {
    /// Checks a key.
    ///
    /// # Errors
    /// [`IdempotencyKeyError`].
    pub fn new(text: &str) -> Result<IdempotencyKey, IdempotencyKeyError> {
        match text {
            "" => Err(IdempotencyKeyError::Empty),
            _ if text.len() > IDEMPOTENCY_KEY_MAX_BYTES => Err(IdempotencyKeyError::TooLong { bytes: text.len() }),
            _ if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) => Err(IdempotencyKeyError::NotPrintable),
            _ => Ok(IdempotencyKey(text.into())),
        }
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

impl std::borrow::Borrow<str> for IdempotencyKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What tells requests with the same key apart: 128 bits of all that a request asks for.
///
/// MD5, as in revisions: whoever could make two requests with one fingerprint could make two edits with one revision,
/// and would only answer one of their own requests with the other's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; Fingerprint::BYTES]);

impl Fingerprint {
    /// How many bytes a fingerprint takes.
    pub const BYTES: usize = 16;

    /// Starts one of no parts.
    pub fn builder() -> FingerprintBuilder {
        FingerprintBuilder(Md5::new())
    }
}

/// Takes a request part by part.
pub struct FingerprintBuilder(Md5);

impl FingerprintBuilder {
    /// Adds a part. Its length counts too, so that no two lists of parts run into one.
    #[must_use]
    pub fn part(mut self, bytes: impl AsRef<[u8]>) -> FingerprintBuilder {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// The fingerprint of all parts.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_printable_ascii_of_1_to_255_bytes() {
        for good in ["a", "8e03978e-40d5-43dd-bc93-6894a57f9324", "\"quoted key\"", &"k".repeat(255)] {
            assert_eq!(IdempotencyKey::new(good).unwrap().as_str(), good);
        }
        assert_eq!(IdempotencyKey::new(""), Err(IdempotencyKeyError::Empty));
        assert_eq!(IdempotencyKey::new(&"k".repeat(256)), Err(IdempotencyKeyError::TooLong { bytes: 256 }));
        for bad in ["ключ", "a\tb", "a\n", "\u{7f}"] {
            assert_eq!(IdempotencyKey::new(bad), Err(IdempotencyKeyError::NotPrintable), "{bad:?}");
        }
    }

    #[test]
    fn a_fingerprint_depends_on_every_part_and_on_where_it_ends() {
        let of = |parts: &[&str]| parts.iter().fold(Fingerprint::builder(), |all, part| all.part(part)).finish();
        assert_eq!(of(&["PUT", "/db/a", ""]), of(&["PUT", "/db/a", ""]));
        let different = [&["PUT", "/db/a", ""][..], &["PUT", "/db/", "a"], &["PUT", "/db/a"], &["PUT/db/a"], &[]];
        for (at, one) in different.iter().enumerate() {
            assert!(different[at + 1..].iter().all(|other| of(one) != of(other)), "{one:?}");
        }
    }
}
