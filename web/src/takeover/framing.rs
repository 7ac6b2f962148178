//! How bytes of a feed are put on a connection that the framework does not write to any more.

use bytes::Bytes;

/// What is put around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Chunks of HTTP/1.1.
    Chunks,
}

impl Framing {
    /// What comes before so many bytes, of which there is one at least: an empty chunk is the last one.
    pub fn before(self, bytes: usize) -> Bytes {
        match self {
            Framing::Chunks => format!("{bytes:x}\r\n").into(),
        }
    }

    /// What comes behind them.
    pub fn behind(self) -> Bytes {
        match self {
            Framing::Chunks => Bytes::from_static(b"\r\n"),
        }
    }

    /// What says that nothing follows.
    pub fn last(self) -> Bytes {
        match self {
            Framing::Chunks => Bytes::from_static(b"0\r\n\r\n"),
        }
    }

    /// These bytes as they are written; nothing where there are none.
    pub fn around(self, bytes: &[u8]) -> Vec<u8> {
        if bytes.is_empty() {
            return Vec::new();
        }
        [&self.before(bytes.len())[..], bytes, &self.behind()].concat()
    }
}
