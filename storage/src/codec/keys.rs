//! Keys that are not plain text: each field big-endian.

use super::{Malformed, Reader};
use crate::model::body_place::BodyKey;
use crate::model::doc_id::DocId;
use crate::model::sequence::Sequence;

/// Key of `by_seq`.
pub fn seq(seq: Sequence) -> [u8; Sequence::BYTES] {
    seq.to_bytes()
}

/// Reads a key of `by_seq`.
///
/// # Errors
/// [`Malformed`] when it is not 13 bytes.
pub fn read_seq(key: &[u8]) -> Result<Sequence, Malformed> {
    key.try_into().map(Sequence::from_bytes).map_err(|_| Malformed("key is not 13 bytes"))
}

/// Key of `bodies`: the sequence, then the ordinal.
pub fn body(key: BodyKey) -> [u8; Sequence::BYTES + 4] {
    let mut out = [0u8; Sequence::BYTES + 4];
    out[..Sequence::BYTES].copy_from_slice(&key.seq.to_bytes());
    out[Sequence::BYTES..].copy_from_slice(&key.ordinal.to_be_bytes());
    out
}

/// Reads a key of `bodies`.
///
/// # Errors
/// [`Malformed`] when it is not 17 bytes.
pub fn read_body(key: &[u8]) -> Result<BodyKey, Malformed> {
    let mut reader = Reader::new(key);
    let seq = Sequence::from_bytes(&reader.array()?);
    let ordinal = u32::from_be_bytes(reader.array()?);
    reader.end()?;
    Ok(BodyKey { seq, ordinal })
}

/// Key of `history`: the document's id, then the chunk's number.
pub fn history(id: &DocId, chunk: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(id.as_str().len() + 4);
    out.extend_from_slice(id.as_str().as_bytes());
    out.extend_from_slice(&chunk.to_be_bytes());
    out
}

/// Key that is a number: of `blocks` the block's, of `times` seconds, of `transaction_ages` the place in the order.
pub fn number(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Reads a key that is a number.
///
/// # Errors
/// [`Malformed`] when it is not 8 bytes.
pub fn read_number(key: &[u8]) -> Result<u64, Malformed> {
    key.try_into().map(u64::from_be_bytes).map_err(|_| Malformed("key is not 8 bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::any_seq;

    proptest! {
        #[test]
        fn body_keys_round_trip_in_order(a in (any_seq(), any::<u32>()), b in (any_seq(), any::<u32>())) {
            let key = |(seq, ordinal)| BodyKey { seq, ordinal };
            prop_assert_eq!(read_body(&body(key(a))), Ok(key(a)));
            prop_assert_eq!(key(a).cmp(&key(b)), body(key(a)).cmp(&body(key(b))));
        }

        #[test]
        fn numbers_round_trip_in_order(a: u64, b: u64) {
            prop_assert_eq!(read_number(&number(a)), Ok(a));
            prop_assert_eq!(a.cmp(&b), number(a).cmp(&number(b)));
        }
    }
}
