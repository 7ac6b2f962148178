//! Words of `multipart/mixed` answers, as CouchDB writes them.

use crate::ids::new_id;

/// The head of a part that is JSON.
pub const JSON_PART: &[u8] = b"\r\nContent-Type: application/json\r\n\r\n";

/// The head of a part that says why there is no document.
pub const JSON_PART_ERROR: &[u8] = b"\r\nContent-Type: application/json; error=\"true\"\r\n\r\n";

/// A boundary no document contains: JSON has no line that begins with it, and nobody knows it beforehand.
pub fn boundary() -> String {
    new_id()
}
