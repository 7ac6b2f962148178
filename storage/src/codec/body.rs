//! Value of `bodies`: whose body it is, and its JSON text.

use super::{Malformed, Reader, put_text};

const TAG: u8 = 1;

/// Encodes a body.
pub fn encode(id: &str, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + id.len() + json.len());
    put(&mut out, id, json);
    out
}

/// Appends a body.
pub(crate) fn put(out: &mut Vec<u8>, id: &str, json: &[u8]) {
    out.push(TAG);
    put_text(out, id);
    out.extend_from_slice(json);
}

/// Decodes a body: the document's id, and the JSON text.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let id = reader.text()?;
    let json = reader.rest();
    let object = json.first() == Some(&b'{') && json.last() == Some(&b'}') && json.len() >= 2;
    if object { Ok((id, json)) } else { Err(Malformed("a body that is no object")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_round_trip() {
        assert_eq!(decode(&encode("é", b"{\"a\":1}")), Ok(("é", &b"{\"a\":1}"[..])));
        assert!(decode(&encode("a", b"")).is_err());
    }
}
