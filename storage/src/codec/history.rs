//! Value of `history`: a run of ancestors, newest first.

use super::{Malformed, Reader, revision};
use crate::model::rev_tree::Ancestor;

const TAG: u8 = 1;

/// Encodes a chunk.
pub fn encode(chunk: &[Ancestor]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + chunk.len() * 24);
    out.push(TAG);
    for ancestor in chunk {
        revision::put(&mut out, &ancestor.hash, ancestor.deleted, ancestor.body);
    }
    out
}

/// Decodes a chunk.
///
/// # Errors
/// [`Malformed`].
pub fn decode(value: &[u8]) -> Result<Vec<Ancestor>, Malformed> {
    let mut reader = Reader::tagged(value, TAG)?;
    let mut chunk = Vec::new();
    while !reader.rest.is_empty() {
        let revision = revision::read(&mut reader)?;
        chunk.push(Ancestor { hash: revision.hash, deleted: revision.deleted, body: revision.body });
    }
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::tests::{any_hash, any_place};

    proptest! {
        #[test]
        fn chunks_round_trip(chunk in prop::collection::vec((any_hash(), any::<bool>(), any_place()), 0..30)) {
            let chunk: Vec<_> = chunk.into_iter().map(|(hash, deleted, body)| Ancestor { hash, deleted, body }).collect();
            prop_assert_eq!(decode(&encode(&chunk)), Ok(chunk));
        }
    }
}
