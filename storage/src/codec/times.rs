//! Value of `times`: the update sequence before the first commit of a second.

use super::{Malformed, Reader};
use crate::model::sequence::Sequence;

const TAG: u8 = 1;

/// Encodes a row's value.
pub fn encode(behind: Sequence) -> Vec<u8> {
    [&[TAG], &behind.to_bytes()[..]].concat()
}

/// Decodes it.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<Sequence, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let behind = Sequence::from_bytes(&reader.array()?);
    reader.end()?;
    Ok(behind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::any_seq;

    proptest! {
        #[test]
        fn rows_round_trip(behind in any_seq()) {
            let value = encode(behind);
            prop_assert_eq!(decode(&value), Ok(behind));
            for len in 0..value.len() {
                prop_assert!(decode(&value[..len]).is_err());
            }
        }
    }
}
