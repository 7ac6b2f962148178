//! Where a revision's body lies.

use super::sequence::Sequence;

/// The key of a body: the sequence at which its revision was written, and which of that write's bodies it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyKey {
    /// The sequence the document moved to when this revision was written.
    pub seq: Sequence,
    /// 0 for the first body written at that sequence; a replicated batch may bring several.
    pub ordinal: u32,
}

/// Where a revision's body lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyPlace {
    /// The body is `{}`: nothing is stored.
    Empty,
    /// A row of `bodies`. It may be gone once no leaf needs it.
    Stored {
        /// The row's key.
        key: BodyKey,
        /// Length of the body's JSON text.
        bytes: u32,
    },
    /// Only the revision's id was ever received, as an ancestor.
    Unknown,
}

impl BodyPlace {
    /// The row of `bodies`, if it is one.
    pub fn key(self) -> Option<BodyKey> {
        match self {
            BodyPlace::Stored { key, .. } => Some(key),
            BodyPlace::Empty | BodyPlace::Unknown => None,
        }
    }

    /// How many bytes of body text lie there.
    pub fn bytes(self) -> u64 {
        match self {
            BodyPlace::Stored { bytes, .. } => u64::from(bytes),
            BodyPlace::Empty | BodyPlace::Unknown => 0,
        }
    }
}
