//! Value of `history`: a run of ancestors, newest first.

use super::{Malformed, Reader};
use crate::model::rev_tree::Line;

const TAG: u8 = 1;

/// Encodes a chunk.
pub fn encode(chunk: &Line) -> Vec<u8> {
    [&[TAG], chunk.as_bytes()].concat()
}

/// Decodes a chunk.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<Line, Malformed> {
    Line::read_all(Reader::tagged(value, TAG)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::{any_hash, any_place};
    use crate::model::rev_tree::Ancestor;

    proptest! {
        #[test]
        fn chunks_round_trip(chunk in prop::collection::vec((any_hash(), any::<bool>(), any_place()), 0..30)) {
            let chunk: Line = chunk.into_iter().map(|(hash, deleted, body)| Ancestor { hash, deleted, body }).collect();
            prop_assert_eq!(decode(&encode(&chunk)), Ok(chunk));
        }
    }
}
