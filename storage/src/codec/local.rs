//! Value of `local`: a `_local` document, its revision number and JSON text.

use super::{Malformed, Reader, put_varint};

const TAG: u8 = 1;

/// Encodes a local document.
pub fn encode(revision: u64, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + json.len());
    out.push(TAG);
    put_varint(&mut out, revision);
    out.extend_from_slice(json);
    out
}

/// Decodes a local document: the number n of its revision `0-n`, and the JSON text.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let revision = reader.varint()?;
    Ok((revision, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_documents_round_trip() {
        assert_eq!(decode(&encode(17, b"{}")), Ok((17, &b"{}"[..])));
        assert!(decode(&[]).is_err());
    }
}
